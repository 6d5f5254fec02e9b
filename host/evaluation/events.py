"""What went wrong in one workflow, each with its part, place and evidence: what a diagnosis puts in order. Pure.

    refused output · sends and reads · calls · the ledger against its own history · both sides · the end

What the comparison finds has the time of the call that it belongs to. `mended`: the run itself went on from it, as it
is meant to: a send that was repeated and answered, a proposal that was followed by another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from host.domain.control import ENDS as ENDED
from host.domain.control import Control
from host.domain.unworded import identifier
from host.domain.workflow import Workflow
from host.evaluation import deviations as sort
from host.evaluation.deviations import Sorted
from host.evaluation.diagnosis import Label, TurnSeen
from host.evaluation.reconcile import Finding
from host.evaluation.turns import KnownBy, known, seen, turns_of_refusals
from host.handover.agreement import disagreements
from shared_contracts.record import Call, Checkpoint, Record, Status
from shared_contracts.tools import TOOLS

Row = Mapping[str, Any]
_REFUSED_TOO_OFTEN = frozenset({"planner_exhausted", "limit"})


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; `rank` orders what one commit wrote: what went wrong before what came of it."""

    at: datetime | None
    rank: int
    code: str
    found: Sorted
    step_id: str | None = None
    tool: str | None = None
    seq: int | None = None
    evidence: tuple[str, ...] = ()
    mended: bool = False
    known_by: KnownBy | None = None
    turn: TurnSeen | None = None


def events(record: Record, row: Row, workflow: Workflow, findings: Iterable[Finding]) -> Iterator[Event]:
    """Gather all of it, in no order."""
    own = [*_refused(record, row), *_answered(record, row), *_calls(record, row), *_parted(record, row)]
    found = [_finding(record, row, one) for one in findings]
    left = [*_end(record, row, workflow)] if all(one.mended for one in own) else []
    yield from (_as_notice(record, one) for one in (*own, *found, *left))


def _as_notice(record: Record, event: Event) -> Event:
    """Where all but the notice is there, what is wrong with it is of the notice, not of the line to it."""
    if event.tool not in TOOLS or TOOLS[event.tool].external_id != "message_id":
        return event
    there = any(call.tool == event.tool and call.execution_state == "verified" for call in record.calls)
    of_the_line = event.found.label in {Label.CONNECTION, Label.PERSISTENCE}
    if there or not of_the_line:
        return event
    return replace(event, found=replace(event.found, label=Label.EXTERNAL_NOTIFICATION))


def _refused(record: Record, row: Row) -> Iterator[Event]:
    for refusal, point in zip(row["refusals"], turns_of_refusals(record, row), strict=True):
        at = datetime.fromisoformat(refusal["at"])
        found = sort.of_output(refusal["code"], refusal["tool"])
        if refusal["code"] == "unbacked_completion_claim" and _accepted(record, at):
            found = sort.ACCEPTED
        if found is not None:
            ids = () if refusal["call_id"] is None else (identifier(str(refusal["call_id"])),)
            named = refusal["tool"] if refusal["tool"] in TOOLS else None
            event = Event(at, 0, refusal["code"], found, evidence=ids, mended=_went_on(record, at))
            yield _by_turn(event, point, row, named)


def _by_turn(event: Event, point: Checkpoint | None, row: Row, tool: str | None) -> Event:
    """Hold a cause against the turn that it is about, where there was one."""
    cause, by = known(event.found.cause, None if point is None else point.turn, tool)
    return replace(event, found=replace(event.found, cause=cause), known_by=by, turn=seen(point, row))


def _went_on(record: Record, at: datetime) -> bool:
    """Tell whether the planner proposed something better afterwards, and was not stopped for what it had refused."""
    # what is proposed in the same commit came after all that was refused in it, since a send ends the commit
    better = any(call.undoes is None and call.times.proposed >= at for call in record.calls)
    return better and record.reason not in _REFUSED_TOO_OFTEN


def _accepted(record: Record, at: datetime) -> bool:
    """Tell whether something was answered by then whose reaching the state nobody had seen yet."""
    return any(
        call.times.returned is not None
        and call.times.returned <= at
        and (call.times.verified is None or call.times.verified > at)
        and call.error is None
        for call in record.calls
    )


def _answered(record: Record, row: Row) -> Iterator[Event]:
    calls = {call.step_id: call for call in record.calls}
    for attempt in row["attempts"]:
        code, call = attempt["outcome"], calls[f"{record.workflow_id}.{attempt['step']}"]
        found = None if code in {None, "success"} else sort.ANSWERS[code]
        if found is not None:
            at = datetime.fromisoformat(attempt["ended_at"])
            ids = (identifier(call.call_id), attempt["jti"])
            yield Event(at, 0, code, found, call.step_id, call.tool, evidence=ids, mended=_answered_at_last(call))


def _answered_at_last(call: Call) -> bool:
    """Tell whether the call was done all the same, or had the business's own answer."""
    meant = call.error is not None and sort.ANSWERS[call.error.code] is None
    return call.execution_state == "verified" or meant


def _calls(record: Record, row: Row) -> Iterator[Event]:
    """What only the call as a whole says."""
    answers = {(attempt["step"], attempt["outcome"]) for attempt in row["attempts"]}
    for call in record.calls:
        if call.error is None or (_number(call), call.error.code) in answers:
            continue
        found = sort.ANSWERS[call.error.code]
        if found is not None:
            yield _event_of(record, call, 0, call.error.code, found)


def _parted(record: Record, row: Row) -> Iterator[Event]:
    calls = {call.step_id: call for call in record.calls}
    for one in disagreements(row):
        yield _event_of(record, calls[one["step_id"]], 1, one["what"], sort.PARTED[one["what"]])


def _event_of(record: Record, call: Call, rank: int, code: str, found: Sorted) -> Event:
    times = call.times
    at = next((t for t in (times.delivered, times.returned, times.started) if t is not None), times.proposed)
    made = (e.external_id for e in record.effects if e.step_id == call.step_id and e.external_id)
    ids = (identifier(call.call_id), *made)
    return Event(at, rank, code, found, call.step_id, call.tool, evidence=ids)


def _number(call: Call) -> int:
    return int(call.step_id.rpartition(".")[2])


def _finding(record: Record, row: Row, finding: Finding) -> Event:
    """Place a finding at the call that it belongs to: by its token, else as the last call of its tool."""
    steps = {attempt["jti"]: attempt["step"] for attempt in row["attempts"]}
    step = steps.get(finding.id)
    own = [call for call in record.calls if (_number(call) == step if step is not None else call.tool == finding.tool)]
    ids = tuple(dict.fromkeys(one for one in (finding.id, finding.key) if one is not None))
    found = sort.FINDINGS[finding.why]
    if not own:
        return Event(None, 2, finding.why.value, found, tool=finding.tool, evidence=ids)
    return replace(_event_of(record, own[-1], 2, finding.why.value, found), tool=finding.tool, evidence=ids)


def _end(record: Record, row: Row, workflow: Workflow) -> Iterator[Event]:
    """Say what the end itself says, or what it leaves behind."""
    last = record.checkpoints[-1]
    if Control(record.control_state) not in ENDED:
        return
    reason = sort.ENDS[record.reason] if record.handover_reason is not None else None
    if reason is not None:
        ended = Event(last.at, 3, record.reason, reason, *_last_call(record), seq=last.seq, evidence=last.evidence)
        yield _by_turn(ended, last, row, None)
        return
    verified = {effect.name for effect in record.effects if effect.verified_at is not None}
    undone = record.compensations != ()
    if workflow.effects and verified.issuperset(workflow.effects) and record.state != workflow.success and not undone:
        yield Event(last.at, 3, "state_behind_effects", sort.BEHIND, seq=last.seq, evidence=_external(record))
    for call in record.calls:
        if call.execution_state == "requested" and call.attempts == () and record.status is not Status.STOPPED:
            yield _event_of(record, call, 3, "never_sent", sort.UNSENT)


def _last_call(record: Record) -> tuple[str | None, str | None]:
    """Give step and tool of the call that was in hand at the end; none where it was answered well."""
    open_calls = [call for call in record.calls if call.execution_state not in {"verified", "waiting_for_approval"}]
    return (open_calls[-1].step_id, open_calls[-1].tool) if open_calls else (None, None)


def _external(record: Record) -> tuple[str, ...]:
    return tuple(effect.external_id for effect in record.effects if effect.external_id is not None)
