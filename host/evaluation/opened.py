"""A place of its own with real programs at work in it, for an evaluation or a demonstration.

    mail server ┐
    wires ──────┼─ this process      databases ─ tool server ─ worker: processes as the stack starts them
    clock ──────┘

Invariant: nothing outlives the block that it was opened for, however that ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import psycopg

from host.database import database
from host.domain.principals import AuthorizationSet
from host.engine.accept import Pins
from host.engine.approve import Desk
from host.engine.wake import queue_app, waker
from host.evaluation import place
from host.evaluation.commit_wire import commit_wire
from host.evaluation.conduct import Bench
from host.evaluation.lift import Lifts
from host.evaluation.mail import SENDER, Mail, mail_server
from host.evaluation.outages import Outages
from host.evaluation.people import People, trusted_people
from host.evaluation.plan import KIND, Plan
from host.evaluation.watch import Watch
from host.evaluation.wire import Change, Conflict, Wire, wire
from host.rights import kinds
from host.settings import Settings, for_worker
from host.stack import assembly, processes
from host.stack.assembly import StackParts
from host.stack.ports import LOOPBACK
from host.stack.postgres import PostgresChoice
from host.stack.processes import Running
from host.stack.roles import Side
from host.store import trial
from host.store.pool import Pool
from host.workflows.catalogue import CURRENT
from shared_contracts.evaluation import FaultKind
from shared_contracts.evaluation_retail import DELIVERED_ON

POOL_SIZE, OWNERS_POOL_SIZE = 8, 4
T = TypeVar("T")
ALIVE_SECONDS = 0.5
NO_LIMIT = "100000"  # calls a second: what is evaluated is not how it paces itself


@dataclass(frozen=True, slots=True)
class Opened:
    """The place with everything in it at work."""

    parts: StackParts
    bench: Bench
    mail: Mail
    line: Wire


@asynccontextmanager
async def opened(settings: Settings, authorization: AuthorizationSet, todo: Plan, root: Path) -> AsyncIterator[Opened]:
    """Give the place in `root` with real programs at work in it, for as long as the block lasts."""
    choice = PostgresChoice(settings.postgres_bin, settings.postgres_os_user)
    async with (
        mail_server(todo.orders(), frozenset(todo.struck(at_mail=True))) as mail,
        wire(todo.struck(at_mail=False)) as line,
        place.databases(root, choice) as parts,
        commit_wire(parts.server.port, line.note) as commits,
        database(assembly.host_dsn(parts), POOL_SIZE) as pool,
        database(assembly.host_owner_dsn(parts), OWNERS_POOL_SIZE) as owner,
    ):
        line.upstream, line.conflict, line.arm = place.free_port(parts), _mover(owner), commits.arm
        await place.load(parts, todo.over.more, DELIVERED_ON)
        await place.remove(parts, todo.removed)
        named = [one for one in authorization.approvers if one.name in todo.approvers()]
        tools, worker = _settings(settings, todo, mail)
        ways = {"KESSAI_SERVER_URL": line.url}
        if todo.has(FaultKind.COMMIT_LOST):
            ways["KESSAI_DSN"] = commits.dsn(assembly.host_dsn(parts))
        programs = place.programs(parts, line.upstream, tools, worker, ways)
        running, people = await asyncio.gather(place.start(parts, programs), trusted_people(parts, owner, named))
        line.change = _changer(assembly.owner_dsn(parts, Side.TOOLS), people, todo.deciders())
        outages = Outages(parts, programs, running, (pool, owner))
        line.outage = outages.strike
        queue = queue_app(assembly.host_dsn(parts))
        async with queue.open_async():
            known = await kinds(pool)
            bench = Bench(
                pool=pool,
                owner=owner,
                tools_owner=assembly.owner_dsn(parts, Side.TOOLS),
                desk=Desk(pool, known, authorization, waker(queue)),
                kind=known[KIND, CURRENT[KIND].release],
                pins=Pins(todo.over.order_snapshot, todo.over.policy_version, todo.over.authz_version),
                people=people,
                watch=Watch(pool, _Alongside(parts, running, Lifts(pool, owner)).look, outages.steady),
                outages=outages,
                line=line,
            )
            yield Opened(parts, bench, mail, line)


@dataclass
class _Alongside:
    """What is looked at while cases run: that both programs live, and that no stop stays."""

    parts: StackParts
    running: Mapping[str, Running]
    lifts: Lifts
    _looked: float = 0.0

    async def look(self) -> None:
        """Raise StackError where a program has died."""
        await self.lifts.look()
        if (now := time.monotonic()) < self._looked + ALIVE_SECONDS:
            return
        self._looked = now
        for one in self.running.values():
            if not one.process.alive():
                raise processes.failed(self.parts.home, one, "ended while cases ran")


def _settings(settings: Settings, todo: Plan, mail: Mail) -> tuple[dict[str, str], dict[str, str]]:
    """Give the two programs what differs from the stack's own: no pace, this mail server, so many at a time."""
    tools = {
        "KESSAI_TOOLS_RATE_PRINCIPAL": NO_LIMIT, "KESSAI_TOOLS_RATE_TENANT": NO_LIMIT,
        "KESSAI_TOOLS_SMTP_HOST": LOOPBACK, "KESSAI_TOOLS_SMTP_PORT": str(mail.port),
        "KESSAI_TOOLS_SMTP_TLS": "none", "KESSAI_TOOLS_MAIL_FROM": SENDER,
    }  # fmt: skip
    worker = for_worker(settings) | {
        "KESSAI_CONCURRENCY": str(todo.concurrency), "KESSAI_RATE_PRINCIPAL": NO_LIMIT, "KESSAI_RATE_TENANT": NO_LIMIT,
    }  # fmt: skip
    return tools, worker


def _mover(owner: Pool) -> Conflict:
    async def move(workflow_id: str) -> str:
        async with owner.connection() as connection:
            version = await trial.move_row(connection, UUID(workflow_id))
        return f"the row of {workflow_id} went to version {version}"

    return move


def _changer(tools_owner: str, people: People, deciders: Mapping[str, str]) -> Change:
    """Give what the shop does behind a yes: by the order that it is about, and by who said it."""

    async def change(kind: FaultKind, order_id: str) -> str:
        async with await psycopg.AsyncConnection.connect(tools_owner, autocommit=True) as owner:
            if kind is FaultKind.ORDER_CHANGED:
                return f"the shop sent {order_id} to {await trial.move_order(owner, order_id)}"
            _, kid = people.keys[deciders[order_id]]
            return f"the shop revoked the key of {await trial.revoke_approver(owner, kid)}"

    return change


async def watched(there: Opened, work: Awaitable[T]) -> T:
    """Do something while somebody looks; whatever ends the looking ends it."""
    async with asyncio.TaskGroup() as group:
        looking = group.create_task(there.bench.watch.look())
        done = await work
        looking.cancel()
        return done
