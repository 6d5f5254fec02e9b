"""What deviated first in one workflow, and what followed: from its record, its rows and both sides' comparison. Pure.

all that went wrong, in the order of time
    what the run itself mended ──► mended
    the first of the rest ───────► the first deviation
    all others, and what the case did about it ──► its consequences
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from host.domain.control import ENDS as ENDED
from host.domain.control import Control
from host.domain.workflow import Workflow
from host.evaluation import deviations as sort
from host.evaluation.diagnosis import Consequence, Deviation, Diagnosis, Reconciled
from host.evaluation.events import Event, events
from host.evaluation.reconcile import Comparison, Finding, Kind
from shared_contracts.record import Checkpoint, Record, Status

_LATEST = datetime.max.replace(tzinfo=UTC)


def diagnose(record: Record, row: Mapping[str, Any], workflow: Workflow, compared: Comparison) -> Diagnosis:
    """Name the first deviation; `row` is what the record was assembled from, `compared` may be of all workflows."""
    findings = [one for one in compared.findings if one.case == str(record.workflow_id)]
    known = sorted(events(record, row, workflow, findings), key=lambda one: (_time(one.at), one.rank))
    left = [one for one in known if not one.mended]
    first = _deviation(record, left[0]) if left else None
    return Diagnosis(
        workflow_id=record.workflow_id,
        kind=record.kind,
        state=record.state,
        status=record.status,
        reason=record.reason,
        ended_well=_ended_well(record, deviates=first is not None),
        said=_said(record, first),
        reconciliation=_reconciled(compared, findings),
        first_deviation=first,
        consequences=tuple(sorted(_after(record, workflow, left), key=lambda one: _time(one.at))),
        mended=tuple(_deviation(record, one) for one in known if one.mended),
    )


def _time(at: datetime | None) -> datetime:
    return _LATEST if at is None else at


def _ended_well(record: Record, *, deviates: bool) -> bool | None:
    if Control(record.control_state) not in ENDED:
        return None
    return record.status is Status.COMPLETED and not deviates


def _reconciled(compared: Comparison, findings: Iterable[Finding]) -> Reconciled:
    own = replace(compared, findings=tuple(findings))
    return Reconciled(
        compared=compared.compared,
        untracked=own.of(Kind.UNTRACKED),
        missing=own.of(Kind.MISSING),
        duplicate=own.of(Kind.DUPLICATE),
    )


def _after(record: Record, workflow: Workflow, left: list[Event]) -> Iterator[Consequence]:
    """Give what went wrong later, and what the case did about it."""
    if left:
        told = {event.seq for event in left}
        yield from (_following(record, event) for event in left[1:])
        yield from (one for one in _moves(record, workflow, left[0]) if one.checkpoint not in told)


def _recorded(record: Record, event: Event) -> int | None:
    """Give the move that recorded it: the first that is not older."""
    if event.seq is not None or event.at is None:
        return event.seq
    return next((point.seq for point in record.checkpoints if point.at >= event.at), None)


def _sentence(event: Event) -> str:
    where = "" if event.tool is None else f"{event.tool}: "
    return f"{where}{event.found.said}"


def _deviation(record: Record, event: Event) -> Deviation:
    return Deviation(
        at=event.at,
        checkpoint=_recorded(record, event),
        step_id=event.step_id,
        code=event.code,
        label=event.found.label,
        cause=event.found.cause,
        cause_known_by=event.known_by if event.known_by or event.found.cause is None else "record",
        turn=event.turn,
        said=_sentence(event),
        evidence=event.evidence,
    )


def _following(record: Record, event: Event) -> Consequence:
    return Consequence(
        at=event.at,
        checkpoint=_recorded(record, event),
        step_id=event.step_id,
        code=event.code,
        label=event.found.label,
        said=_sentence(event),
        evidence=event.evidence,
    )


def _moves(record: Record, workflow: Workflow, first: Event) -> Iterator[Consequence]:
    """What the case did about it: each wait before another try, what is to be undone, and its end."""
    told = {workflow.retry_state: "It waits to try again", workflow.compensation_state: "What was made is to be undone"}
    for point in record.checkpoints:
        if first.at is None or point.at < first.at:
            continue
        if point.to.state in told and point.from_ is not None and point.from_.state != point.to.state:
            yield _move(point, told[point.to.state])
        elif Control(point.to.control_state) in ENDED and _is_no_answer(point):
            yield _move(point, f"The case ended as {point.to.state}")


def _is_no_answer(point: Checkpoint) -> bool:
    """Tell an end that something led to from one that is the business's own: its answer, or what its rules ask for."""
    own = point.reason in sort.ENDS and sort.ENDS[point.reason] is None and point.reason != "compensated"
    return Control(point.to.control_state) is not Control.COMPLETED and not own


def _move(point: Checkpoint, said: str) -> Consequence:
    return Consequence(
        at=point.at,
        checkpoint=point.seq,
        step_id=None,
        code=point.reason,
        label=None,
        said=f"{said} ({point.reason}).",
        evidence=point.evidence,
    )


def _said(record: Record, first: Deviation | None) -> str:
    """Say it in one sentence."""
    stands = f"{record.state} ({record.reason})"
    if first is not None:
        return f"First deviation, {first.label.value}: {first.said}"
    if record.status in {Status.RUNNING, Status.WAITING}:
        return f"Nothing deviates so far; the case is under way in {stands}."
    if record.status is Status.COMPLETED:
        return f"Nothing deviates; the case has its answer, {stands}."
    return f"Nothing deviates; the case ended as the rules and the people meant, as {stands}."
