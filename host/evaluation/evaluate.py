"""One evaluation from beginning to end: a place of its own, real programs, every case, and what was seen as a report.

    mail server ┐
    wires ──────┼─ this process      databases ─ tool server ─ worker: processes as the stack starts them
    clock ──────┘

Invariant: nothing outlives it, however it ends, and a report is made of a run that came to its end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

from host.database import database
from host.domain.principals import AuthorizationSet
from host.engine.accept import Pins
from host.engine.approve import Desk
from host.engine.wake import queue_app, waker
from host.evaluation import place, seen
from host.evaluation.audit import Auditors, reconciled
from host.evaluation.commit_wire import commit_wire
from host.evaluation.conduct import Bench, Run, conduct
from host.evaluation.lift import Lifts
from host.evaluation.mail import SENDER, Mail, mail_server
from host.evaluation.outages import Outages
from host.evaluation.people import trusted_people
from host.evaluation.plan import KIND, Over, Plan, UnfitError
from host.evaluation.score import scored
from host.evaluation.watch import Watch
from host.evaluation.wire import Conflict, Wire, wire
from host.rights import kinds
from host.settings import Settings, for_worker, home_root
from host.stack import assembly, processes
from host.stack.assembly import StackParts
from host.stack.ports import LOOPBACK
from host.stack.postgres import PostgresChoice
from host.stack.processes import Running
from host.stack.roles import Side
from host.store import handover, trial, trial_tools
from host.store.pool import Pool
from host.store.trial_tools import Provider
from host.workflows.catalogue import BY_RELEASE, CURRENT
from shared_contracts.evaluation import EvaluationCase, FaultKind
from shared_contracts.evaluation_report import (
    NO_MODEL,
    Conditions,
    CostRates,
    Entry,
    EvaluationReport,
    FaultEvidence,
    Place,
    RunLimits,
    ToolTested,
)
from shared_contracts.evaluation_retail import DELIVERED_ON
from shared_contracts.tools import TOOLS

POOL_SIZE, OWNERS_POOL_SIZE = 8, 4
T = TypeVar("T")
ALIVE_SECONDS = 0.5
_SEEN: dict[FaultKind, Place] = {
    FaultKind.WORKER_KILLED: "process", FaultKind.SERVER_KILLED: "process", FaultKind.DATABASE_RESTART: "process",
}  # fmt: skip
NO_LIMIT = "100000"  # calls a second: what is evaluated is not how it paces itself


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands in the report and is not seen of its cases: what things cost, and the tools' own tests."""

    rates: CostRates
    tested: tuple[ToolTested, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """The place with everything in it at work."""

    parts: StackParts
    bench: Bench
    lifts: Lifts
    mail: Mail
    line: Wire
    over: Over


async def evaluated(
    settings: Settings, authorization: AuthorizationSet, todo: Plan, beside: Beside, done: Callable[[Run], None]
) -> EvaluationReport:
    """Run it; raises UnfitError, StackError, NotReadyError."""
    began, made_at = time.monotonic(), datetime.now(UTC)
    async with opened(settings, authorization, todo) as there:
        runs = await _run(there, todo, done)
        auditors = Auditors(*(assembly.auditor_dsn(there.parts, side) for side in (Side.HOST, Side.TOOLS)))
        provider = await trial_tools.read(auditors.tools)
        entries = await _entries(there, runs, provider)
        return EvaluationReport(
            format="kessai-evaluation/1",
            made_at=made_at,
            seconds=round(time.monotonic() - began, 3),
            build=there.parts.build.code,
            conditions=_conditions(todo),
            rates=beside.rates,
            limits=_limits(),
            contract_tests=beside.tested,
            cases=entries,
            compared=(await reconciled(auditors)).as_compared(),
            stops=tuple(there.lifts.said),
        )


@asynccontextmanager
async def opened(settings: Settings, authorization: AuthorizationSet, todo: Plan) -> AsyncIterator[Opened]:
    """Give the place with real programs at work in it, for as long as the block lasts."""
    root = place.home_of(home_root(settings))
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
        named = [one for one in authorization.approvers if one.name in todo.approvers()]
        tools, worker = _settings(settings, todo, mail)
        ways = {"KESSAI_SERVER_URL": line.url}
        if todo.has(FaultKind.COMMIT_LOST):
            ways["KESSAI_DSN"] = commits.dsn(assembly.host_dsn(parts))
        programs = place.programs(parts, line.upstream, tools, worker, ways)
        running, people = await asyncio.gather(place.start(parts, programs), trusted_people(parts, owner, named))
        outages = Outages(parts, programs, running, (pool, owner))
        line.outage = outages.strike
        queue = queue_app(assembly.host_dsn(parts))
        async with queue.open_async():
            known = await kinds(pool)
            lifts = Lifts(pool, owner)
            bench = Bench(
                pool=pool,
                owner=owner,
                tools_owner=assembly.owner_dsn(parts, Side.TOOLS),
                desk=Desk(pool, known, authorization, waker(queue)),
                kind=known[KIND, CURRENT[KIND].release],
                pins=_pins(todo.over),
                people=people,
                watch=Watch(pool, _Alongside(parts, running, lifts).look, outages.steady),
                outages=outages,
                line=line,
            )
            yield Opened(parts, bench, lifts, mail, line, todo.over)


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


async def _run(there: Opened, todo: Plan, done: Callable[[Run], None]) -> list[Run]:
    """Let the cases run, to where nothing is on its way any more."""

    async def work() -> list[Run]:
        runs = await conduct(there.bench, todo.cases, todo.concurrency, todo.seed, done)
        await there.line.settled()
        return runs

    return await watched(there, work())


async def watched(there: Opened, work: Awaitable[T]) -> T:
    """Do something while somebody looks; whatever ends the looking ends it."""
    try:
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(there.bench.watch.look())
            done = await work
            looking.cancel()
            return done
    except ExceptionGroup as several:
        raise several.exceptions[0] from None


async def _entries(there: Opened, runs: Sequence[Run], provider: Provider) -> tuple[Entry, ...]:
    everybodys = seen.keys_of(provider, (one for run in runs for one in run.workflow_ids))
    made = [await _entry(there, run, provider, everybodys) for run in runs]
    return tuple(sorted(made, key=lambda entry: entry.id))


async def _entry(there: Opened, run: Run, provider: Provider, everybodys: frozenset[str]) -> Entry:
    case = run.prepared.case
    async with there.bench.pool.connection() as connection:
        found = [await handover.read(connection, one) for one in run.workflow_ids]
    workflows = seen.Workflows(tuple(one for one in found if one is not None), BY_RELEASE)
    _refuse_other_versions(case, workflows, there.over)
    outside = seen.outside(case, provider, seen.keys_of(provider, run.workflow_ids), everybodys)
    mailed = there.mail.of(str(case.request["order_id"]))
    got = seen.got(case, workflows, provider, outside, mailed, run.seconds)
    return scored(case, got, _evidence(there, run), _limits())


def _evidence(there: Opened, run: Run) -> FaultEvidence | None:
    """Give what was seen of the case's fault by whoever made it."""
    case = run.prepared.case
    if case.fault is None:
        return None
    order = str(case.request["order_id"])
    match case.fault.kind:
        case FaultKind.APPROVAL_EXPIRY:
            return None if run.turned is None else FaultEvidence(seen="clock", fired=1, details=(run.turned,))
        case FaultKind.NOTICE_FAILURE:
            turned = [one for one in there.mail.turned if one.order_id == order]
            said = tuple(f"{one.at.isoformat(timespec='milliseconds')} {one.message_id} refused: 550" for one in turned)
            return FaultEvidence(seen="mail", fired=len(turned), details=said)
        case _:
            said = tuple(one.said for one in there.line.struck if one.order_id == order)
            return FaultEvidence(seen=_SEEN.get(case.fault.kind, "wire"), fired=len(said), details=said)


def _refuse_other_versions(case: EvaluationCase, workflows: seen.Workflows, over: Over) -> None:
    pinned = asdict(_pins(over))
    for versions in seen.versions(workflows):
        differing = [
            f"{name} {getattr(versions, name)}" for name, due in pinned.items() if getattr(versions, name) != due
        ]
        if differing:
            raise UnfitError((f"{case.id} ran under other data than the pinned: {', '.join(differing)}",))


def _pins(over: Over) -> Pins:
    return Pins(over.order_snapshot, over.policy_version, over.authz_version)


def _conditions(todo: Plan) -> Conditions:
    workflow = CURRENT[KIND]
    used = sorted({name for names in workflow.tools.values() for name in names})
    return Conditions(
        dataset_sha256=todo.dataset,
        seed=todo.seed,
        concurrency=todo.concurrency,
        order_snapshot=todo.over.order_snapshot,
        policy=todo.over.policy_version,
        authz=todo.over.authz_version,
        workflow_release=workflow.release,
        tools={name: TOOLS[name].version for name in used},
        planner="conformance",
        model=NO_MODEL,
        changed_component=todo.changed,
    )


def _limits() -> RunLimits:
    limits = CURRENT[KIND].limits
    return RunLimits(calls=limits.calls, refused_proposals=limits.refusals, active_seconds=limits.active_seconds)
