"""The six contract tests of one update tool, made from its row and run against a tool server.

    normal · extra field · permission violation · duplicate execution · ambiguous failure · post-condition not met

Invariant: a test holds by what the tool server's own tables count and by what the ledger has; an answer alone proves
nothing. A trial that could not be made has failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from host.domain.outcome import Outcome, Rejected, Success, Unknown
from host.engine.parts import new_id
from host.engine.wellformed import fault_of_arguments
from host.evaluation import contract_shop as shop
from host.evaluation.contract_bench import READER, Bench, PreparationError, Ran
from host.evaluation.contract_documents import Test, Trial
from host.evaluation.contract_kind import S
from host.store.errors import StoppedError
from shared_contracts.contract import Tool

UNDECLARED = {"bank_account": "0001"}
NOT_SUCCESS = "rejected"
LAST_ATTEMPT = 1_000  # as high as a token can say
EVERY = 1_000_000  # answers, of which none arrives


@dataclass(frozen=True, slots=True)
class Seen:
    """Whether something held, and what it is known by."""

    held: bool
    said: str


Made = Callable[[Bench, Tool], Awaitable[Seen]]


async def normal(bench: Bench, tool: Tool) -> Seen:
    """One call that nothing is wrong with: verified, with an id, and once there."""
    arguments = await bench.arguments(tool)
    before = await bench.counted(tool)
    ran = await bench.run(tool, arguments)
    count = (await bench.counted(tool)).since(before)
    held = _done(ran) and (count.sent, count.worked, count.made) == (1, 1, 1)
    return Seen(held, f"{_told(ran)}; {count}")


async def extra_field(bench: Bench, tool: Tool) -> Seen:
    """A member that the contract does not declare: refused here before it leaves, and there before it is worked on."""
    arguments = {**await bench.arguments(tool), **UNDECLARED}
    before = await bench.counted(tool)
    here = fault_of_arguments(tool, arguments)
    there = await bench.ask(tool, arguments, new_id())
    count = (await bench.counted(tool)).since(before)
    held = here is not None and _refused(there, "invalid_arguments") and (count.made, count.worked) == (0, 0)
    return Seen(held, f"engine {here.code if here else 'accepts it'}; tool server {_word(tool, there)}; {count}")


async def permission_violation(bench: Bench, tool: Tool) -> Seen:
    """Somebody who may only read: no call leaves, and a token that can only read changes nothing."""
    arguments = await bench.arguments(tool)
    before = await bench.counted(tool)
    ran = await bench.run(tool, arguments, READER)
    unasked = (await bench.counted(tool)).since(before)
    there = await bench.ask(bench.reading(tool), arguments, new_id())
    count = (await bench.counted(tool)).since(before)
    denied = (ran.state, ran.reason, unasked.sent, unasked.logged) == (S.NEEDS_REVIEW, "scope_missing", 0, 0)
    held = denied and _refused(there, "scope_missing") and (count.made, count.worked) == (0, 0)
    return Seen(held, f"{_told(ran)}; {unasked}; tool server {_word(tool, there)}; {count}")


async def duplicate_execution(bench: Bench, tool: Tool) -> Seen:
    """The same intention twice: one thing, and its id both times."""
    arguments, task = await bench.arguments(tool), new_id()
    before = await bench.counted(tool)
    first = await bench.settled(tool, arguments, task, await bench.ask(tool, arguments, task))
    second = await bench.ask(tool, arguments, task, attempt=LAST_ATTEMPT)
    count = (await bench.counted(tool)).since(before)
    ids = (_id(tool, first), _id(tool, second))
    held = ids[0] is not None and ids[0] == ids[1] and count.made == 1
    return Seen(held, f"{_word(tool, first)}, then {_word(tool, second)}; {count}")


async def ambiguous_failure(bench: Bench, tool: Tool) -> Seen:
    """The answer is lost after the thing was made: it is looked up, adopted and not made again."""
    arguments = await bench.arguments(tool)
    before = await bench.counted(tool)
    with bench.wire.losing(**{tool.name: 1}):
        ran = await bench.run(tool, arguments)
    count = (await bench.counted(tool)).since(before)
    held = _done(ran) and ran.looks >= 1 and (count.sent, count.made) == (1, 1)
    return Seen(held, f"{_told(ran)}; {tool.reconcile_with} asked {ran.looks} times; {count}")


async def post_condition(bench: Bench, tool: Tool) -> Seen:
    """HTTP 200 that is no success for the business: no success here, and a person gets it."""
    if tool.success_when is None:
        return Seen(False, "the contract names no success")
    arguments = await bench.arguments(tool)
    about = (tool.name, tool.reconcile_with, tool.verify.tool if tool.verify else tool.name)
    with bench.wire.saying(about, tool.success_when.field, NOT_SUCCESS):
        ran = await bench.run(tool, arguments)
    held = ran.state == S.NEEDS_REVIEW and ran.effect == "rejected" and ran.queued and ran.sends == 1
    queued = "in the exception queue" if ran.queued else "NOT in the exception queue"
    return Seen(held, f"answered 200 with {tool.success_when.field} {NOT_SUCCESS!r}: {_told(ran)}; {queued}")


async def never_resent(bench: Bench, tool: Tool) -> Seen:
    """No answer and no look-up arrives: nobody knows, so that a person gets it and nothing sends it again."""
    arguments = await bench.arguments(tool)
    before = await bench.counted(tool)
    with bench.wire.losing(**{tool.name: EVERY, tool.reconcile_with: EVERY}):
        ran = await bench.run(tool, arguments)
    after = await bench.again(tool, ran)
    count = (await bench.counted(tool)).since(before)
    unknown = (ran.state, ran.reason, ran.effect) == (S.NEEDS_REVIEW, "unknown_effect", None)
    held = unknown and ran.queued and not after.due and (count.sent, after.sends) == (1, 1)
    return Seen(held, f"{_told(after)}; due again: {'yes' if after.due else 'no'}; {count}")


async def unapproved(bench: Bench, tool: Tool) -> Seen:
    """What needs an approval is refused without one by the tool server itself."""
    if tool.approval_required_when == "":
        return Seen(True, "the contract asks for no approval")
    before = await bench.counted(tool)
    there = await bench.ask(tool, shop.arguments(tool, shop.DEAR, {}), new_id())
    count = (await bench.counted(tool)).since(before)
    held = _refused(there, "approval_required") and (count.made, count.worked) == (0, 0)
    return Seen(held, f"without an approval: {_word(tool, there)}; {count}")


SIX: Mapping[Test, Made] = {
    "normal": normal,
    "extra_field": extra_field,
    "permission_violation": permission_violation,
    "duplicate_execution": duplicate_execution,
    "ambiguous_failure": ambiguous_failure,
    "post_condition": post_condition,
}


async def six(bench: Bench, tool: Tool) -> tuple[Trial, ...]:
    """Make all six, one after the other, so that what is counted is of one of them."""
    found = []
    for name, make in SIX.items():
        seen = await tried(make, bench, tool)
        found.append(Trial(name=name, held=seen.held, said=seen.said))
    return tuple(found)


async def tried(make: Made, bench: Bench, tool: Tool) -> Seen:
    """Make one; what keeps it from being made is said, and it did not hold."""
    try:
        return await make(bench, tool)
    except PreparationError as error:
        return Seen(False, f"it could not be tried: {error}")
    except StoppedError:
        return Seen(False, "it could not be tried: an earlier finding has stopped the work")


def _done(ran: Ran) -> bool:
    return ran.state == S.DONE and ran.effect == "succeeded" and ran.external_id is not None


def _told(ran: Ran) -> str:
    made = "" if ran.external_id is None else f", {ran.external_id}"
    return f"case {ran.workflow_id} {ran.state} ({ran.reason}){made}"


def _refused(outcome: Outcome, code: str) -> bool:
    return isinstance(outcome, Rejected) and outcome.error.code == code


def _id(tool: Tool, outcome: Outcome) -> Any:
    return outcome.result.get(tool.external_id) if isinstance(outcome, Success) else None


def _word(tool: Tool, outcome: Outcome) -> str:
    match outcome:
        case Success():
            return f"answers {_id(tool, outcome)}"
        case Rejected(error):
            return f"refuses: {error.code}"
        case Unknown(error):
            return f"leaves in doubt: {error.code}"
