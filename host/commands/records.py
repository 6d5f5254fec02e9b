"""`show`, `list`, `explain`, `ledger`: read, assemble, write. They need no tool server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from host.commands import record_sheet, sheets
from host.commands.exits import CommandError, Exit
from host.commands.lookup import found_id, recorded, rows_of
from host.commands.output import console, write_json
from host.commands.workplace import reading
from host.domain.reasons import handover_class
from host.explain import explain
from host.record import handover_reason, status
from host.settings import Settings
from host.store import record as store
from host.views import ClassCount, Ledger, LedgerEntry, ListedEffect, ListedWorkflow, ReasonCount, WorkflowList
from host.workflows.catalogue import BY_RELEASE, CURRENT, state_names
from shared_contracts.base import dump
from shared_contracts.record import HandoverReason


@dataclass(frozen=True, slots=True)
class Selection:
    """Which workflows a list is to have."""

    state: str | None
    kind: str | None
    exceptions: bool
    before: UUID | None
    most: int


async def show(settings: Settings, name: str, *, as_json: bool) -> None:
    """Read one record."""
    async with reading(settings) as pool:
        row = await rows_of(pool, await found_id(pool, name))
    record = recorded(row)
    if as_json:
        write_json(dump(record))
    else:
        record_sheet.record(console(), settings, record, row)


async def listed(settings: Settings, wanted: Selection, *, as_json: bool) -> None:
    """Read one page of workflows."""
    _check(wanted)
    async with reading(settings) as pool, pool.connection() as connection:
        reasons = None
        if wanted.exceptions:
            rows = await store.exceptions(connection, wanted.most)
            reasons = await store.exception_reasons(connection)
        else:
            before = store.LATEST if wanted.before is None else wanted.before
            rows = await store.page(connection, wanted.state, wanted.kind, before, wanted.most)
    more = rows[-1].workflow_id if len(rows) == wanted.most and not wanted.exceptions else None
    classes = None if reasons is None else ranked(reasons)
    page = WorkflowList(classes=classes, workflows=tuple(_listed(row) for row in rows), next_before=more)
    if as_json:
        write_json(dump(page))
    else:
        sheets.workflows(console(), page)


def _check(wanted: Selection) -> None:
    known = state_names()
    if wanted.state is not None and wanted.state not in known:
        raise CommandError(
            Exit.BAD_INPUT, f"there is no state {wanted.state!r}", f"The states are: {', '.join(known)}."
        )
    if wanted.kind is not None and wanted.kind not in CURRENT:
        raise CommandError(Exit.BAD_INPUT, f"there is no kind {wanted.kind!r}", f"The kinds are: {', '.join(CURRENT)}.")
    if wanted.exceptions and (wanted.state, wanted.kind, wanted.before) != (None, None, None):
        mend = "Leave --state, --kind and --before out."
        raise CommandError(Exit.BAD_INPUT, "--exceptions is a list of its own", mend)


def _listed(row: store.Summary) -> ListedWorkflow:
    fields = asdict(row)
    effects, alerts = fields.pop("effects"), fields.pop("alerts")
    held, wake_reason = fields.pop("held"), fields.pop("wake_reason")
    return ListedWorkflow(
        **fields,
        status=status(row.control_state, wake_reason, held=held),
        handover_reason=handover_reason(row.control_state, row.reason),
        effects=None if effects is None else tuple(ListedEffect(**effect) for effect in effects),
        alerts=None if alerts is None else tuple(alerts),
    )


def ranked(reasons: Mapping[str, int]) -> tuple[ClassCount, ...]:
    """Put the classes of reasons in order: what is to be improved first comes first."""
    of_class: dict[HandoverReason, list[ReasonCount]] = {}
    for reason, cases in sorted(reasons.items(), key=lambda one: (-one[1], one[0])):
        of_class.setdefault(handover_class(reason).value, []).append(ReasonCount(reason=reason, cases=cases))
    counted = (
        ClassCount(handover_reason=name, cases=sum(one.cases for one in of), reasons=tuple(of))
        for name, of in of_class.items()
    )
    return tuple(sorted(counted, key=lambda one: (-one.cases, one.handover_reason)))


async def explained(settings: Settings, name: str, *, everything: bool, as_json: bool) -> None:
    """Answer the questions about one run."""
    async with reading(settings) as pool:
        row = await rows_of(pool, await found_id(pool, name))
    record = recorded(row)
    answers = explain(record, row, BY_RELEASE[record.kind, record.release], everything=everything)
    if as_json:
        write_json(dump(answers))
    else:
        sheets.explanation(console(), answers)


async def ledger(settings: Settings, name: str | None, most: int, *, as_json: bool) -> None:
    """Export calls."""
    async with reading(settings) as pool:
        workflow_id = None if name is None else await found_id(pool, name)
        async with pool.connection() as connection:
            rows = await store.entries(connection, workflow_id, most)
    page = Ledger(calls=tuple(_entry(row) for row in rows))
    if as_json:
        write_json(dump(page))
    else:
        sheets.ledger(console(), page)


def _entry(row: dict[str, Any]) -> LedgerEntry:
    effect = row.pop("effect")
    compensation = row.pop("compensation_state")
    sent = tuple(datetime.fromisoformat(at) for at in row.pop("attempted_at") or ())
    return LedgerEntry(
        **{**row, "arguments": tuple(row["arguments"]), "jtis": tuple(row["jtis"])},
        retry_times=sent[1:],
        idempotency_key=None if effect is None else effect["idempotency_key"],
        effect_outcome=None if effect is None else effect["outcome"],
        external_id=None if effect is None else effect["external_id"],
        compensation_state="none" if compensation is None else compensation,
    )
