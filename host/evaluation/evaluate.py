"""One evaluation from beginning to end: a place opened for it, every case in it, and what was seen as a report.

Invariant: a report is made of a run that came to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg

from host.domain.principals import AuthorizationSet
from host.evaluation import place
from host.evaluation.conduct import Run, conduct
from host.evaluation.notes import NotedCase, Notes, keep_notes
from host.evaluation.opened import Opened, opened, watched
from host.evaluation.plan import KIND, Plan
from host.evaluation.report import reported, signer
from host.settings import Settings, home_root
from host.store import trial
from host.store.asked import asked_of
from host.workflows.catalogue import CURRENT
from shared_contracts.evaluation import FaultKind
from shared_contracts.evaluation_report import (
    NO_MODEL,
    Conditions,
    CostRates,
    EvaluationReport,
    FaultEvidence,
    Place,
    Scope,
    ToolTested,
)
from shared_contracts.evaluation_signature import signed
from shared_contracts.tools import TOOLS

_SEEN: dict[FaultKind, Place] = {
    FaultKind.WORKER_KILLED: "process", FaultKind.SERVER_KILLED: "process", FaultKind.DATABASE_RESTART: "process",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands in the report and is not seen of its cases: what they are, what things cost, the tools' own tests."""

    scope: Scope
    rates: CostRates
    tested: tuple[ToolTested, ...]


async def evaluated(
    settings: Settings, authorization: AuthorizationSet, todo: Plan, beside: Beside, done: Callable[[Run], None]
) -> EvaluationReport:
    """Run it; raises UnfitError, StackError, NotReadyError."""
    began, made_at = time.monotonic(), datetime.now(UTC)
    async with opened(settings, authorization, todo, place.home_of(home_root(settings))) as there:
        runs = await _run(there, todo, done)
        addresses = await _addresses(there.bench.tools_owner)
        notes = Notes(
            scope=beside.scope,
            made_at=made_at,
            seconds=0.0,
            conditions=_conditions(todo),
            rates=beside.rates,
            contract_tests=beside.tested,
            cases=tuple(_noted(there, run, addresses) for run in runs),
            unplaced=there.mail.unplaced(),
        )
        report = await reported(there.parts, there.bench.pool, notes)
        took = {"seconds": round(time.monotonic() - began, 3)}
        await keep_notes(there.bench.owner, notes.model_copy(update=took))
        return signed(report.model_copy(update=took), signer(there.parts))


async def _run(there: Opened, todo: Plan, done: Callable[[Run], None]) -> list[Run]:
    """Let the cases run, to where nothing is on its way any more."""

    async def work() -> list[Run]:
        runs = await conduct(there.bench, todo.cases, todo.concurrency, todo.seed, done)
        await there.line.settled()
        return runs

    return await watched(there, work())


async def _addresses(tools_owner: str) -> trial.Addresses:
    async with await psycopg.AsyncConnection.connect(tools_owner, autocommit=True) as connection:
        return await trial.addresses(connection)


def _noted(there: Opened, run: Run, addresses: trial.Addresses) -> NotedCase:
    """Note what no database can say of a case."""
    case = run.prepared.case
    order, whose = str(case.request["order_id"]), addresses.get((case.tenant, str(case.request["customer_id"])))
    return NotedCase(
        case=case,
        workflow_ids=tuple(run.workflow_ids),
        seconds=round(run.seconds, 3),
        mailed=there.mail.of(order),
        astray=there.mail.astray(order, whose),
        named=there.mail.named(order),
        evidence=_evidence(there, run),
    )


def _evidence(there: Opened, run: Run) -> FaultEvidence | None:
    """Give what was seen of the case's fault by whoever made it."""
    case = run.prepared.case
    if case.fault is None:
        return None
    order = str(case.request["order_id"])
    match case.fault.kind:
        case FaultKind.APPROVAL_EXPIRY:
            if run.turned is None:
                return None
            after = f", after the yes of {case.decision.by}" if case.decision is not None and case.decision.by else ""
            return FaultEvidence(seen="clock", fired=1, details=(f"{order}: {run.turned}{after}",))
        case FaultKind.NOTICE_FAILURE:
            turned = [one for one in there.mail.turned if one.order_id == order]
            said = tuple(f"{one.at.isoformat(timespec='milliseconds')} {one.message_id} refused: 550" for one in turned)
            return FaultEvidence(seen="mail", fired=len(turned), details=said)
        case _:
            said = tuple(one.said for one in there.line.struck if one.order_id == order)
            return FaultEvidence(seen=_SEEN.get(case.fault.kind, "wire"), fired=len(said), details=said)


def _conditions(todo: Plan) -> Conditions:
    workflow = CURRENT[KIND]
    used = sorted({name for names in workflow.tools.values() for name in names} - todo.removed)
    return Conditions(
        dataset_sha256=todo.dataset,
        seed=todo.seed,
        concurrency=todo.concurrency,
        order_snapshot=todo.over.order_snapshot,
        policy=todo.over.policy_version,
        authz=todo.over.authz_version,
        workflow_release=workflow.release,
        tools={name: TOOLS[name].version for name in used},
        approvals={what: asked for what, _, asked in asked_of((workflow,), (TOOLS[name] for name in used))},
        planner="conformance",
        model=NO_MODEL,
        changed_component=todo.changed,
    )
