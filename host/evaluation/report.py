"""A report from the databases of a run and its notes: by the run itself at its end, and by whoever doubts it later.

    host's rows, tool server's log and tables ──► what was seen of each case, both sides compared
    the run's own notes ───────────────────────► what no database can say

Invariant: both make it by the same code, so that the second equals the first where nothing was changed in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from host.database import database
from host.evaluation import mailed, place, seen
from host.evaluation.audit import Auditors, reconciled
from host.evaluation.notes import NotedCase, Notes, kept_notes
from host.evaluation.plan import KIND, UnfitError
from host.evaluation.score import scored
from host.settings import Settings, home_root
from host.stack import assembly
from host.stack.assembly import StackParts
from host.stack.files import read_secret
from host.stack.postgres import PostgresChoice
from host.stack.roles import Side
from host.store import handover, stops, trial_tools
from host.store.pool import Pool
from host.store.trial_tools import Provider
from host.workflows.catalogue import BY_RELEASE, CURRENT
from shared_contracts.evaluation_report import FORMAT, Conditions, Entry, EvaluationReport, RunLimits, Stopped
from shared_contracts.evaluation_signature import signed
from shared_contracts.seal import Signer, signer_of

POOL_SIZE = 4


async def recomputed(settings: Settings) -> EvaluationReport:
    """Make the report of the last run once more; raises UnfitError, StackError, NotReadyError."""
    root = place.home_of(home_root(settings))
    choice = PostgresChoice(settings.postgres_bin, settings.postgres_os_user)
    async with place.kept(root, choice) as parts, database(assembly.host_dsn(parts), POOL_SIZE) as pool:
        notes = await kept_notes(pool)
        if notes is None:
            raise UnfitError((f"no evaluation came to its end in {root}",))
        return signed(await reported(parts, pool, notes), signer(parts))


def signer(parts: StackParts) -> Signer:
    """Give the key of the home in which the cases were run; raises StackError where it lies open."""
    return signer_of("host", read_secret(parts.keys.seal_host).encode())


async def reported(parts: StackParts, pool: Pool, notes: Notes) -> EvaluationReport:
    """Count everything that the databases can say; nobody has signed it yet. Raises UnfitError, NotReadyError."""
    auditors = Auditors(*(assembly.auditor_dsn(parts, side) for side in (Side.HOST, Side.TOOLS)))
    provider = await trial_tools.read(auditors.tools)
    compared = (await reconciled(auditors)).as_compared()
    untracked = (*compared.untracked, *mailed.nobodys(notes, provider))
    async with pool.connection() as connection:
        history, scopes = await stops.stopped_since(connection, 0), await stops.scopes(connection)
    return EvaluationReport(
        format=FORMAT,
        scope=notes.scope,
        made_at=notes.made_at,
        seconds=notes.seconds,
        build=parts.build.code,
        conditions=notes.conditions,
        rates=notes.rates,
        limits=_limits(),
        contract_tests=notes.contract_tests,
        cases=await _entries(pool, notes, provider),
        compared=compared.model_copy(update={"untracked": untracked}),
        stops=tuple(Stopped(cause=one.cause, reason=one.reason, workflow_id=one.workflow_id) for one in history),
        stopped=tuple(one.scope for one in scopes if one.engaged),
        signature="",
    )


async def _entries(pool: Pool, notes: Notes, provider: Provider) -> tuple[Entry, ...]:
    everybodys = seen.keys_of(provider, (one for noted in notes.cases for one in noted.workflow_ids))
    made = [await _entry(pool, notes, noted, provider, everybodys) for noted in notes.cases]
    return tuple(sorted(made, key=lambda entry: entry.id))


async def _entry(pool: Pool, notes: Notes, noted: NotedCase, provider: Provider, everybodys: frozenset[str]) -> Entry:
    workflows = await _workflows(pool, noted.workflow_ids)
    _refuse_other_versions(noted.case.id, workflows, notes.conditions)
    keys = seen.keys_of(provider, noted.workflow_ids)
    outside = seen.outside(noted.case, provider, keys, everybodys)
    mails = mailed.own(noted, provider, everybodys - keys)
    sent = seen.Sent(mails.mailed, mailed.taken(notes))
    got = seen.got(noted.case, workflows, provider, outside, sent, noted.seconds)
    wrong = mailed.wrong(mails, outside, got.return_ids, notes.unplaced)
    got = got.model_copy(update={"wrong_notices": tuple(dict.fromkeys((*got.wrong_notices, *wrong)))})
    return scored(noted.case, got, noted.evidence, _limits())


async def _workflows(pool: Pool, ids: Sequence[UUID]) -> seen.Workflows:
    async with pool.connection() as connection:
        found = [await handover.read(connection, one) for one in ids]
    return seen.Workflows(tuple(one for one in found if one is not None), BY_RELEASE)


def _refuse_other_versions(case: str, workflows: seen.Workflows, conditions: Conditions) -> None:
    pinned = {name: getattr(conditions, name) for name in ("order_snapshot", "policy", "authz")}
    for versions in seen.versions(workflows):
        differing = [
            f"{name} {getattr(versions, name)}" for name, due in pinned.items() if getattr(versions, name) != due
        ]
        if differing:
            raise UnfitError((f"{case} ran under other data than the pinned: {', '.join(differing)}",))


def _limits() -> RunLimits:
    limits = CURRENT[KIND].limits
    return RunLimits(calls=limits.calls, refused_proposals=limits.refusals, active_seconds=limits.active_seconds)
