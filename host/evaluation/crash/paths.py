"""Every way in which something is written, as a table: who is killed on it, how it begins, where it has to end.

A row says nothing of commits: how many there are, and which, is counted by a run of the row without a kill.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from host.evaluation.crash import people, shop
from host.evaluation.crash.documents import Effects
from host.evaluation.crash.lane import Lane
from host.evaluation.crash.names import COMMAND, SERVER, WORKER, Victim
from host.evaluation.crash.people import IN_DOUBT, REASON, SEEN_NOT
from host.store import crash

NOTHING = Effects(returns=0, notices=0, cancellations=0, corrections=0)
RETURNED = Effects(returns=1, notices=1, cancellations=0, corrections=0)
UNDONE = Effects(returns=1, notices=1, cancellations=1, corrections=1)
DONE, COMPENSATED = "COMPLETED/notice_verified", "NEEDS_REVIEW/compensated"
READ = "COMPLETED/documents_complete_after_normalization"


@dataclass(frozen=True, slots=True)
class Begun:
    """What was begun: `words` are the command that is due; `cases` finds what has to be one case in the end."""

    cases: Callable[[], Awaitable[list[UUID]]]
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """One row. `stock`: cases of that kind are made beforehand. `decided`: a person says yes when the case asks.

    `expires`: nobody decides, and the host's clock passes the time for it.
    """

    name: str
    victim: Victim
    what: str
    end: str
    effects: Effects
    begin: Callable[[Lane], Awaitable[Begun]]
    stock: str | None = None
    decided: bool = False
    expires: bool = False


def _of(workflow_id: UUID, *words: str) -> Begun:
    async def cases() -> list[UUID]:
        return [workflow_id]

    return Begun(cases, words)


async def _return(lane: Lane) -> Begun:
    return _of(await lane.take(shop.returning(lane.number(), dear=False)))


async def _dear_return(lane: Lane) -> Begun:
    return _of(await lane.take(shop.returning(lane.number(), dear=True)))


async def _investigation(lane: Lane) -> Begun:
    return _of(await lane.take(shop.investigating(lane.number())))


async def _run(lane: Lane) -> Begun:
    """The whole return in one command, which also takes it in."""
    number = lane.number()
    document, file = shop.returning(number, dear=False), lane.file(f"case-{number}.json")
    file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")

    async def cases() -> list[UUID]:
        async with lane.pool.connection() as connection:
            return await crash.of_request(connection, str(document["request_id"]))

    await lane.drop(WORKER)
    return Begun(cases, ("run", str(file), "--json"))


async def _approve(lane: Lane) -> Begun:
    case = await people.waiting(lane)
    return _of(case, *await people.decision(lane, "approve", case))


async def _deny(lane: Lane) -> Begun:
    case = await people.waiting(lane)
    return _of(case, *await people.decision(lane, "deny", case))


async def _withdraw(lane: Lane) -> Begun:
    case = await people.waiting(lane)
    return _of(case, "withdraw", str(case))


async def _reapply(lane: Lane) -> Begun:
    old = await people.waiting(lane)
    await lane.run(lane.command("withdraw", str(old)))

    async def cases() -> list[UUID]:
        async with lane.pool.connection() as connection:
            return await crash.following(connection, old)

    return Begun(cases, ("reapply", str(old), "--as-of", shop.AS_OF))


async def _expire(lane: Lane) -> Begun:
    case = await people.waiting(lane)
    await lane.drop(WORKER)
    return _of(case)


async def _close(lane: Lane) -> Begun:
    case = lane.stock[SEEN_NOT].pop()
    return _of(case, "review", str(case), "close", *REASON)


async def _compensate(lane: Lane) -> Begun:
    case = lane.stock[SEEN_NOT].pop()
    return _of(case, "review", str(case), "compensate", *REASON)


async def _release(lane: Lane) -> Begun:
    case = await people.to_be_undone(lane)
    async with lane.owner.connection() as owner:
        await crash.forget_queue(owner)
        await crash.stop_updates(owner)
    return _of(case, "compensate", str(case), "--as", shop.OPERATOR)


async def _undo(lane: Lane) -> Begun:
    return _of(await people.to_be_undone(lane))


async def _undo_meanwhile(lane: Lane) -> Begun:
    """The worker that is there begins at once."""
    case = lane.stock[SEEN_NOT].pop()
    await lane.run(lane.command("review", str(case), "compensate", *REASON))
    return _of(case)


async def _adopt(lane: Lane) -> Begun:
    case = lane.stock[IN_DOUBT].pop()
    return _of(case, "review", str(case), "adopt", "--as", shop.OPERATOR)


async def _adopted(lane: Lane) -> Begun:
    begun = await _adopt(lane)
    await lane.drop(WORKER)
    await lane.run(lane.command(*begun.words))
    return Begun(begun.cases)


def _seen_not(name: str, victim: Victim, what: str, end: str, effects: Effects, begin: _Begin) -> Path:
    return Path(name, victim, what, end, effects, begin, stock=SEEN_NOT)


_Begin = Callable[[Lane], Awaitable[Begun]]
# fmt: off
TABLE: tuple[Path, ...] = (
    Path("return/worker", WORKER, "a return and its notice", DONE, RETURNED, _return),
    Path("return/tool-server", SERVER, "the same, at the tool server", DONE, RETURNED, _return),
    Path("return/run", COMMAND, "taken in and driven by kessai run", DONE, RETURNED, _run),
    Path("approved/worker", WORKER, "a return that waits for a yes", DONE, RETURNED, _dear_return, decided=True),
    Path("approved/tool-server", SERVER, "the same, at the tool server", DONE, RETURNED, _dear_return, decided=True),
    Path("investigation/worker", WORKER, "an investigation, which only reads", READ, NOTHING, _investigation),
    Path("investigation/tool-server", SERVER, "the same, at the tool server", READ, NOTHING, _investigation),
    Path("approve", COMMAND, "somebody says yes", DONE, RETURNED, _approve),
    Path("deny", COMMAND, "somebody says no", "REJECTED/approval_denied", NOTHING, _deny),
    Path("withdraw", COMMAND, "whoever asked asks no more", "REJECTED/withdrawn", NOTHING, _withdraw),
    Path("reapply", COMMAND, "a case is asked for anew", "WAITING_APPROVAL/approval_required", NOTHING, _reapply),
    Path("expiry/worker", WORKER, "nobody says yes in time", "EXPIRED/expired", NOTHING, _expire, expires=True),
    _seen_not("close", COMMAND, "a person closes a case", "NEEDS_REVIEW/unverified_effect/closed", RETURNED, _close),
    _seen_not("compensate", COMMAND, "a person has it undone", COMPENSATED, UNDONE, _compensate),
    _seen_not("release", COMMAND, "it is undone although updates are stopped", COMPENSATED, UNDONE, _release),
    _seen_not("undoing/worker", WORKER, "cancellation and correcting notice", COMPENSATED, UNDONE, _undo),
    _seen_not("undoing/tool-server", SERVER, "the same, at the tool server", COMPENSATED, UNDONE, _undo_meanwhile),
    Path("adopt", COMMAND, "what was made is adopted", DONE, RETURNED, _adopt, stock=IN_DOUBT),
    Path("adopted/worker", WORKER, "an adopted case goes on to its notice", DONE, RETURNED, _adopted, stock=IN_DOUBT),
)
# fmt: on
BY_NAME: dict[str, Path] = {path.name: path for path in TABLE}
