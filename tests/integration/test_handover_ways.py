"""What a handover sheet offers is what the acts themselves take, and what it does not offer is what they refuse."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from host.domain.acting import By
from host.engine.approve import ApprovalRefusedError, waiting
from host.engine.drive import drive
from host.engine.parts import Parts
from host.engine.reapply import NotPossibleError, reapply, withdraw
from host.engine.review import adopt, close, order_compensation, release
from shared_contracts.tools import TOOLS
from tests.support.approvals import APPROVERS, decide, desk, trust
from tests.support.engine import PINS, advance_clock, asynchronous, engage, engine, no_wake, settle, take
from tests.support.fake_tools import FakeTools, rejected
from tests.support.handovers import LOOKING, names, sheet_of
from tests.support.raw_sql import in_doubt

ITO = By("ito", "test", "sha256:of-a-test")
Situation = Callable[[Parts, FakeTools], Awaitable[UUID]]


async def doubtful(parts: Parts, tools: FakeTools) -> UUID:
    return await in_doubt(parts, tools)


async def nothing_made(parts: Parts, tools: FakeTools) -> UUID:
    tools.script["get_order"] = [rejected("scope_missing")]
    workflow_id = await take(parts)
    await drive(parts, workflow_id)
    return workflow_id


async def notice_refused(parts: Parts, tools: FakeTools) -> UUID:
    tools.script["send_return_notice"] = [rejected("notice_rejected")]
    workflow_id = await take(parts)
    await settle(parts, workflow_id)
    return workflow_id


async def closed(parts: Parts, tools: FakeTools) -> UUID:
    workflow_id = await nothing_made(parts, tools)
    await close(desk(parts), workflow_id, ITO, "settled by hand", accept_unknown=False)
    return workflow_id


async def closed_in_doubt(parts: Parts, tools: FakeTools) -> UUID:
    workflow_id = await in_doubt(parts, tools)
    await close(desk(parts), workflow_id, ITO, "nobody will ever know", accept_unknown=True)
    return workflow_id


async def waiting_under_a_stop(parts: Parts, tools: FakeTools) -> UUID:
    tools.refund = 60_000
    workflow_id = await take(parts)
    await drive(parts, workflow_id)
    engage(parts, "updates")
    return workflow_id


async def expired(parts: Parts, tools: FakeTools) -> UUID:
    tools.refund = 60_000
    workflow_id = await take(parts)
    await drive(parts, workflow_id)
    advance_clock(parts, 24 * 3600)
    await drive(parts, workflow_id)
    return workflow_id


async def wrong(parts: Parts, tools: FakeTools) -> UUID:
    tools.script["create_return"] = [tools.but(order_id="A-9")]
    workflow_id = await take(parts)
    await drive(parts, workflow_id)
    return workflow_id


async def uncorrected(parts: Parts, tools: FakeTools) -> UUID:
    tools.script["send_return_notice"] = [tools.but(order_id="A-9")]
    workflow_id = await take(parts)
    await drive(parts, workflow_id)
    advance_clock(parts, 24 * 3600)
    await drive(parts, workflow_id)
    return workflow_id


async def corrected(parts: Parts, tools: FakeTools) -> UUID:
    tools.script["send_return_notice"] = [tools.but(order_id="A-9")]
    workflow_id = await take(parts)
    await drive(parts, workflow_id)
    await release(desk(parts), workflow_id, ITO)
    await settle(parts, workflow_id)
    return workflow_id


async def cancelled_unseen(parts: Parts, tools: FakeTools) -> UUID:
    workflow_id = await notice_refused(parts, tools)
    tools.script["get_return"] = [rejected("unavailable")] * 9
    await order_compensation(desk(parts), workflow_id, ITO, "wrong", TOOLS)
    await settle(parts, workflow_id)
    return workflow_id


async def approve(parts: Parts, workflow_id: UUID) -> None:
    await waiting(desk(parts), workflow_id)
    await decide(parts, workflow_id)


SITUATIONS: dict[str, tuple[Situation, tuple[str, ...]]] = {
    "an effect in doubt": (doubtful, ("review adopt", "review close unknown")),
    "nothing was made": (nothing_made, ("review close",)),
    "a return, and its notice refused": (notice_refused, ("review adopt", "review compensate", "review close")),
    "closed, and nothing was made": (closed, ("reapply",)),
    "closed in doubt": (closed_in_doubt, ("review adopt",)),
    "it waits for an approval under a stop": (waiting_under_a_stop, ("approve", "deny", "withdraw", "resume")),
    "nobody approved it": (expired, ("reapply",)),
    "a wrong return": (wrong, ("compensate", "resume")),
    "a wrong notice that was not corrected in time": (uncorrected, ("review compensate", "review close")),
    "a wrong notice that was corrected": (corrected, ("review close",)),
    "a cancellation that nobody has seen": (cancelled_unseen, ("review adopt", "review close")),
}
ACTS: dict[str, Callable[[Parts, UUID], Awaitable[object]]] = {
    "review adopt": lambda parts, one: adopt(parts, one, ITO, no_wake),
    "review compensate": lambda parts, one: order_compensation(desk(parts), one, ITO, "wrong", TOOLS),
    "review close": lambda parts, one: close(desk(parts), one, ITO, "settled", accept_unknown=False),
    "review close unknown": lambda parts, one: close(desk(parts), one, ITO, "settled", accept_unknown=True),
    "reapply": lambda parts, one: reapply(desk(parts), one, PINS, None),
    "withdraw": lambda parts, one: withdraw(desk(parts), one, "ito"),
    "approve": approve,
    "compensate": lambda parts, one: release(desk(parts), one, ITO),
}
# it may be said of a case where all is known, too, and changes nothing of what it does
IDLE = {"review close unknown"}


@pytest.mark.parametrize("situation", SITUATIONS)
@asynchronous
async def test_a_situation_offers_these_acts(situation: str):
    begin, offered = SITUATIONS[situation]
    tools = FakeTools()
    async with engine(tools, approvers=APPROVERS) as parts:
        sheet = await sheet_of(parts, await begin(parts, tools))
    unknown = any("--accept-unknown" in one["command"] for one in sheet["possible"])
    found = [f"{name} unknown" if unknown and name == "review close" else name for name in names(sheet)]
    assert found == [*offered, *LOOKING]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("situation", SITUATIONS)
@asynchronous
async def test_an_act_is_taken_where_it_is_offered_and_refused_where_it_is_not(situation: str, act: str):
    begin, offered = SITUATIONS[situation]
    tools = FakeTools()
    async with engine(tools, approvers=APPROVERS) as parts:
        trust(parts, "tanaka")
        workflow_id = await begin(parts, tools)
        tools.script = {}
        if act in offered:
            await ACTS[act](parts, workflow_id)
        elif act not in IDLE:
            before = await sheet_of(parts, workflow_id)
            with pytest.raises((NotPossibleError, ApprovalRefusedError)):
                await ACTS[act](parts, workflow_id)
            after = await sheet_of(parts, workflow_id)
            assert {**after, "made_at": None} == {**before, "made_at": None}
