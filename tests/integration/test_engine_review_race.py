"""Two persons, or a person and a driver, on one case at once: one of them does it, the other is told, nothing twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from host.domain.acting import By
from host.engine.drive import drive, load
from host.engine.parts import Parts
from host.engine.reapply import NotPossibleError, reapply
from host.engine.review import adopt, close, order_compensation, release
from tests.integration.test_engine_compensate import unverified, wrong_return
from tests.integration.test_engine_review import in_doubt
from tests.support.approvals import desk
from tests.support.engine import PINS, asynchronous, engine, no_wake, rows, settle, take
from tests.support.fake_tools import FakeTools, unknown

ROUNDS = 20
SATO, ITO = By("sato", "operator", "sha256:of-a-test"), By("ito", "operator", "sha256:of-a-test")
Act = Callable[[Parts, UUID, By], Awaitable[object]]
UNDER_WAY = "SELECT count(*) FROM attempt WHERE outcome IS NULL"
UNDOINGS = "SELECT count(*) FROM compensation WHERE workflow_id = %(id)s"
NOTED = """
SELECT action FROM audit WHERE workflow_id = %(id)s
   AND action IN ('effect_adopted', 'compensation_ordered', 'review_closed', 'compensation_released')
 ORDER BY audit_id
"""


async def adopts(parts: Parts, case: UUID, by: By) -> object:
    return await adopt(parts, case, by, no_wake)


async def orders(parts: Parts, case: UUID, by: By) -> object:
    return await order_compensation(desk(parts), case, by, "the wrong cup", parts.registry)


async def closes(parts: Parts, case: UUID, by: By) -> object:
    return await close(desk(parts), case, by, "settled by hand", accept_unknown=True)


async def releases(parts: Parts, case: UUID, by: By) -> object:
    return await release(desk(parts), case, by)


async def both(parts: Parts, case: UUID, one: Act, other: Act) -> list[object]:
    """Let two act at once; gives what each was told."""
    return await asyncio.gather(one(parts, case, SATO), other(parts, case, ITO), return_exceptions=True)


def told(outcomes: list[object]) -> int:
    """How many were told that it cannot be; whatever else they meet is a fault."""
    assert [one for one in outcomes if isinstance(one, BaseException) and not isinstance(one, NotPossibleError)] == []
    return sum(isinstance(one, NotPossibleError) for one in outcomes)


async def doubtful(parts: Parts, tools: FakeTools) -> UUID:
    return await in_doubt(parts, tools, "create_return", done=True)


async def unseen(parts: Parts, tools: FakeTools) -> UUID:
    return await unverified(parts, tools, told=False)


PAIRS: dict[str, tuple[Callable[[Parts, FakeTools], Awaitable[UUID]], Act, Act]] = {
    "adopt and adopt": (doubtful, adopts, adopts),
    "adopt and compensate": (unseen, adopts, orders),
    "adopt and close": (unseen, adopts, closes),
    "close and compensate": (unseen, closes, orders),
    "close and close": (unseen, closes, closes),
    "compensate and compensate": (unseen, orders, orders),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_of_two_who_act_at_once_one_does_it_and_the_other_is_told(pair: str):
    begin, one, other = PAIRS[pair]
    won: Counter[str] = Counter()

    @asynchronous
    async def run() -> None:
        for _ in range(ROUNDS):
            tools = FakeTools()
            async with engine(tools) as parts:
                case = await begin(parts, tools)
                refused = told(await both(parts, case, one, other))
                acts = [name for (name,) in await rows(parts, NOTED, id=case)]
                assert len(acts) == 2 - refused
                # a closed case can still be gone on with, by who comes after
                assert refused == 1 or (acts[0], one is not other) == ("review_closed", True)
                act = acts[-1]
                won[act] += 1
                state = await settle(parts, case)
                names = Counter(name for name, _ in tools.executed)
                assert names["create_return"] == 1
                assert names["cancel_return"] == (act == "compensation_ordered")
                assert names["send_return_notice"] == (act == "effect_adopted")
                assert state.control.closed is (act == "review_closed")
                assert await rows(parts, UNDER_WAY) == [(0,)]

    run()
    assert won.total() == ROUNDS


@asynchronous
async def test_two_who_release_an_undoing_at_once_are_both_recorded_and_it_is_undone_once():
    for _ in range(ROUNDS):
        tools = FakeTools()
        async with engine(tools) as parts:
            case = await wrong_return(parts, tools)
            assert told(await both(parts, case, releases, releases)) == 0
            assert await rows(parts, NOTED, id=case) == [("compensation_released",)] * 2
            assert (await settle(parts, case)).task.reason == "compensated"
            assert len(tools.cancelled) == 1


@asynchronous
async def test_a_case_that_a_worker_drives_is_neither_adopted_nor_ordered_to_be_undone_nor_closed():
    tools = FakeTools()
    async with engine(tools) as parts:
        case = await doubtful(parts, tools)
        await adopt(parts, case, SATO, no_wake)
        outcomes: list[object] = []

        async def meanwhile(request: Any) -> Any:
            outcomes.extend([await attempted(act, parts, case) for act in (adopts, orders, closes, releases)])
            return tools.honest(request)

        tools.script["send_return_notice"] = [meanwhile]
        assert (await drive(parts, case)).task.state == "COMPLETED"
        assert told(outcomes) == 4
    assert [name for name, _ in tools.executed] == ["create_return", "send_return_notice"]


async def attempted(act: Act, parts: Parts, case: UUID) -> object:
    (outcome,) = await asyncio.gather(act(parts, case, ITO), return_exceptions=True)
    return outcome


@asynchronous
async def test_a_case_whose_units_another_one_contests_is_adopted_and_the_other_gets_none_of_them():
    tools = FakeTools()
    async with engine(tools) as parts:
        first = await doubtful(parts, tools)
        second = await take(parts, request_id="second")
        state = await drive(parts, second)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unsettled_elsewhere")
        with pytest.raises(NotPossibleError, match="made nothing"):
            await adopt(parts, second, SATO, no_wake)
        await adopt(parts, first, SATO, no_wake)
        assert (await settle(parts, first)).task.state == "COMPLETED"
        await close(desk(parts), second, SATO, "the first one stands", accept_unknown=False)
        anew = (await reapply(desk(parts), second, PINS, None)).workflow_id
        assert (await load(parts, anew)).task.state == "RECEIVED"
    assert len(tools.returns) == 1


@asynchronous
async def test_of_two_who_look_at_once_for_a_lost_cancellation_one_is_told_and_none_is_made_again():
    tools = FakeTools()
    async with engine(tools) as parts:
        case = await unseen(parts, tools)
        tools.script["cancel_return"] = [tools.then(unknown())]
        tools.script["find_return"] = [unknown()] * 3
        await order_compensation(desk(parts), case, SATO, "the wrong cup", parts.registry)
        assert (await settle(parts, case)).task.reason == "unknown_effect"
        tools.script.clear()
        looked = await asyncio.gather(*(adopt(parts, case, by, no_wake) for by in (SATO, ITO)), return_exceptions=True)
        assert told(looked) == 1
        (known,) = [one for one in looked if not isinstance(one, BaseException)]
        assert (known.effect.name, known.known, known.adopted) == ("cancel_return", "verified", None)
        assert await rows(parts, UNDOINGS, id=case) == [(1,)]
    assert len(tools.cancelled) == 1
