"""The one person of a matrix who says yes, and what persons type; and the cases that need a person, many at a time.

Invariant: cases get where they wait for somebody by what happens to their answers on the wire, never by a hand in the
database.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from host.evaluation.contract_wire import wire
from host.evaluation.crash import shop
from host.evaluation.crash.lane import ENDED_SECONDS, Lane, kill, until
from host.evaluation.crash.names import SERVER, WORKER
from host.stack import assembly
from host.stack.processes import run_to_end
from host.store import crash

TRUST_SECONDS_MAX = 60.0
REASON = ("--reason", "Because the matrix says so.", "--as", shop.OPERATOR)
LOOKS = 3  # of an engine that cannot find something out
SEEN_NOT, IN_DOUBT = "seen_not", "in_doubt"


async def trust_approver(lane: Lane) -> None:
    """Make the approver's key, and let it count on both sides."""
    await lane.run(lane.command("approver", "add", shop.APPROVER, "--no-passphrase"))
    public = lane.file("approvers") / f"{shop.APPROVER}.json"
    owner = assembly.host_owner_dsn(lane.parts)
    await lane.run(lane.command("approver", "trust", str(public), KESSAI_MIGRATE_DSN=owner))
    await run_to_end(lane.parts.home, assembly.trust_approver(lane.parts, public), TRUST_SECONDS_MAX)


async def decision(lane: Lane, act: str, workflow_id: UUID) -> tuple[str, ...]:
    """Give the words that say yes or no to what is asked right now."""
    async with lane.pool.connection() as connection:
        digest = await crash.asked_for(connection, workflow_id)
    reason = () if act == "approve" else ("--reason", "Not ours.")
    return (act, str(workflow_id), "--as", shop.APPROVER, "--yes", "--digest", digest, *reason)


async def approve_when_asked(lane: Lane, workflow_id: UUID) -> None:
    """Say yes as soon as the case waits for it."""
    await lane.waiting(workflow_id)
    await lane.run(lane.command(*await decision(lane, "approve", workflow_id)))


async def waiting(lane: Lane) -> UUID:
    """Give a case that waits for a yes; the worker that brought it there goes on."""
    await lane.keep(SERVER)
    await lane.keep(WORKER)
    taken = await lane.take(shop.returning(lane.number(), dear=True))
    await lane.waiting(taken)
    return taken


async def stocked(lane: Lane, kind: str, count: int) -> None:
    """Have so many cases that a person has: with a notice that nobody could look up, or a return nobody heard of."""
    await lane.keep(SERVER)
    await lane.drop(WORKER)
    lost = (
        {"find_notice": LOOKS * count} if kind == SEEN_NOT else {"create_return": count, "find_return": LOOKS * count}
    )
    async with wire(lane.links.server_url) as way:
        with way.losing(**lost):
            away = lane.worker(KESSAI_SERVER_URL=way.url, KESSAI_AUDIENCE=lane.links.audience)
            worker = await lane.started(away, {})
            cases = [await lane.take(shop.returning(lane.number(), dear=False)) for _ in range(count)]
            await asyncio.gather(*(_reviewed(lane, one) for one in cases))
            await kill(worker)
    lane.stock[kind] = [*lane.stock.get(kind, []), *cases]


async def _reviewed(lane: Lane, workflow_id: UUID) -> None:
    async def has() -> bool:
        found = await lane.position(workflow_id)
        return found is not None and found.state == "NEEDS_REVIEW"

    await until(has, 2 * ENDED_SECONDS)


async def to_be_undone(lane: Lane) -> UUID:
    """Give a case that is to be undone, and nobody who does it yet."""
    await lane.drop(WORKER)
    workflow_id = lane.stock[SEEN_NOT].pop()
    await lane.run(lane.command("review", str(workflow_id), "compensate", *REASON))
    return workflow_id
