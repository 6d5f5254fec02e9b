"""Why a run stands where it stands: fixed questions, answered from the record and its rows alone. Pure.

A trace that is missing is not read as a call that was not made: where the record does not know, the answer says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from host.domain.draft import steps
from host.domain.unworded import identifier, refused_of
from host.domain.workflow import Workflow
from host.views import Answer, Explanation
from shared_contracts.record import Attempt, Call, EngineRead, Record, Status
from shared_contracts.tools import TOOLS

Row = Mapping[str, Any]
NONE = ("none",)


@dataclass(frozen=True, slots=True)
class Run:
    """What the questions are asked of."""

    record: Record
    row: Row
    workflow: Workflow

    @property
    def refusals(self) -> tuple[str, ...]:
        """Give the proposals that came to nothing, in no words of theirs: `kessai show` has those."""
        return tuple(
            f"refused {r['code']}: {r['tool'] or 'no tool of ours'} ({r['call_id'] or 'no id'})"
            for r in refused_of(self.row)
        )

    @property
    def sends(self) -> tuple[tuple[Call, Attempt | EngineRead], ...]:
        """Give every request that left, or tried to."""
        return tuple((call, one) for call in self.record.calls for one in _of(call))


def _of(call: Call) -> tuple[Attempt | EngineRead, ...]:
    return (*call.attempts, *call.engine_reads)


def explain(record: Record, row: Row, workflow: Workflow, *, everything: bool) -> Explanation:
    """Answer the three closing questions; with `everything` also those of an incident and of an audit."""
    run = Run(record, row, workflow)
    return Explanation(
        workflow_id=record.workflow_id,
        closing=_asked(CLOSING, run),
        incident=_asked(INCIDENT, run) if everything else (),
        trace=_asked(TRACE, run) if everything else (),
    )


Answered = tuple[str, Iterable[str]]
Question = tuple[str, Callable[[Run], Answered]]


def _asked(questions: Iterable[Question], run: Run) -> tuple[Answer, ...]:
    answers = ((text, *ask(run)) for text, ask in questions)
    return tuple(Answer(question=text, answer=answer, details=tuple(details)) for text, answer, details in answers)


def _requested(run: Run) -> Answered:
    sent = sum(len(call.attempts) for call in run.record.calls)
    details = [
        f"{call.step_id} {identifier(call.call_id)} {call.tool}: {len(call.attempts)} sent"
        + (f", first {call.attempts[0].at.isoformat()}" if call.attempts else "")
        for call in run.record.calls
    ]
    counted = f"yes, {sent} request{'s' if sent > 1 else ''}" if sent else "no request left the host"
    return counted, (*details, *run.refusals)


def _recorded(run: Run) -> Answered:
    record = run.record
    calls = [f"{call.step_id} {call.tool}: {call.execution_state}{_last_error(call)}" for call in record.calls]
    effects = [
        f"effect {effect.name}: {effect.outcome or 'no outcome yet'}"
        + (f", {effect.external_id}" if effect.external_id else "")
        + (f", verified {effect.verified_at.isoformat()}" if effect.verified_at else ", not verified")
        for effect in record.effects
    ]
    return f"{record.state} ({record.reason}), control {record.control_state}", (*calls, *effects)


def _last_error(call: Call) -> str:
    errors = [one.error for one in _of(call) if one.error is not None]
    return f", last error {errors[-1].code}" if errors and call.execution_state != "verified" else ""


def _met(run: Run) -> Answered:
    record, workflow = run.record, run.workflow
    verified = {effect.name for effect in record.effects if effect.verified_at is not None}
    details = [f"{name}: {'met' if name in verified else 'not met'}; {_condition(name)}" for name in workflow.effects]
    if record.state == workflow.success:
        checked = "its answer was checked by code against what was observed in this run"
        return f"yes, {'every expected effect is verified' if workflow.effects else checked}", details
    if record.status is Status.COMPLETED:
        return f"yes: the answer is {record.state} ({record.reason}), which needs no effect", details
    details += [f"left to a person: {step}" for step in steps(record.draft)]
    ended = record.status in {Status.NEEDS_HUMAN, Status.FAILED, Status.STOPPED}
    return f"no, it ended as {record.state}" if ended else f"not yet, it stands in {record.state}", details


def _condition(name: str) -> str:
    tool = TOOLS[name]
    read = tool.read_back
    back = "" if read is None else f", read back by {read.tool}: {', '.join(read.matches)}"
    return f"{tool.success_when or 'any well-formed answer'}{back}"


def _proposed(run: Run) -> Answered:
    details = [f"{c.step_id} {identifier(c.call_id)}: {c.tool}, action {c.fingerprint[:12]}…" for c in run.record.calls]
    return f"{len(details)} calls, {len(run.refusals)} refused proposals", (*details, *run.refusals) or NONE


def _arguments(run: Run) -> Answered:
    wrong = [line for line in run.refusals if line.startswith(("refused arguments_invalid", "refused call_id"))]
    return "no, not all of them" if wrong else "yes, every call fitted its schema", wrong


def _authorised(run: Run) -> Answered:
    decided = [
        f"decision {d.n}: {d.outcome} by {d.rule_version} ({d.reason}) for {d.facts.get('tool_name', '-')}"
        for d in run.record.decisions
        if d.subject == "authorization"
    ]
    who = run.row["workflow"]["principal"]
    return f"the rules, for {who} under {run.record.versions.authz}", decided or NONE


def _started(run: Run) -> Answered:
    lines = [f"{call.step_id} {_name(call, one)} at {one.at.isoformat()}: {_arrived(one)}" for call, one in run.sends]
    answered = any(_arrived(one) == "answered" for _, one in run.sends)
    return "yes" if answered else "not that anybody knows", lines or NONE


def _name(call: Call, one: Attempt | EngineRead) -> str:
    return f"{call.tool} #{one.n}" if isinstance(one, Attempt) else f"{one.tool} ({one.purpose})"


def _arrived(one: Attempt | EngineRead) -> str:
    if one.outcome is None:
        return "under way"
    if one.outcome in {"unknown", "cut_off"} or (one.error is not None and one.error.code == "no_answer"):
        return "nobody knows"
    return "it never left" if one.error is not None and one.error.code == "unreachable" else "answered"


def _kind(run: Run) -> Answered:
    lines = [f"{call.step_id} {_name(call, one)}: {_said(one)}" for call, one in run.sends]
    return "as listed" if lines else "nothing came back", lines or NONE


def _said(one: Attempt | EngineRead) -> str:
    if one.error is None:
        return "no answer yet" if one.outcome is None else "a fact"
    return f"{one.error.category} error {one.error.code}"


def _stopped(run: Run) -> Answered:
    record = run.record
    last = record.checkpoints[-1]
    handed = "" if record.handover_reason is None else f"; a person has it for {record.handover_reason}"
    return f"{record.reason}{handed}", (
        f"checkpoint {last.seq}: {last.event} by {last.actor} at {last.at.isoformat()}",
    )


def _request(run: Run) -> Answered:
    w = run.row["workflow"]
    who = f"principal {w['principal']} of {w['tenant_id']}, for {w['resource']}"
    return f"request {w['request_id']} started run {run.record.run_id}", (who, f"taken in {w['created_at']}")


def _allowed(run: Run) -> Answered:
    lines = [f"decision {d.n} ({d.subject}): {d.outcome}, {d.reason}, {d.rule_version}" for d in run.record.decisions]
    return f"{len(lines)} decisions", lines or NONE


def _versions(run: Run) -> Answered:
    lines = [f"{call.step_id} {call.tool} version {call.contract_version}" for call in run.record.calls]
    return "as listed" if lines else "no tool was called", lines or NONE


def _evidence(run: Run) -> Answered:
    pinned = (f"{name} {version}" for name, version in run.record.versions.told().items())
    return ", ".join(pinned), dict.fromkeys(ref for point in run.record.checkpoints for ref in point.evidence) or NONE


def _detours(run: Run) -> Answered:
    events = {"transient", "due", "next_attempt", "cut_off", "authority_lost", "unknown_effect", "adopted"}
    lines = [
        f"checkpoint {p.seq} at {p.at.isoformat()}: {p.event} ({p.reason}) in {p.to.state}"
        for p in run.record.checkpoints
        if p.event in events or p.reason in events
    ]
    recoveries = run.row["workflow"]["recoveries"]
    return f"{len(lines)} detours, {recoveries} recoveries", lines or NONE


def _used(run: Run) -> Answered:
    last = run.record.checkpoints[-1]
    verified = [f"{c.step_id} {c.tool}" for c in run.record.calls if c.execution_state == "verified"]
    return f"the end rests on {', '.join(last.evidence) or 'no evidence of its own'}", verified or NONE


CLOSING: tuple[Question, ...] = (
    ("Was there a real call request?", _requested),
    ("What did the engine record?", _recorded),
    ("Does the result meet the completion condition?", _met),
)
INCIDENT: tuple[Question, ...] = (
    ("What was proposed?", _proposed),
    ("Did the arguments pass?", _arguments),
    ("Who authorised it?", _authorised),
    ("Did the tool really start?", _started),
    ("Was the answer a fact, a business error or a protocol error?", _kind),
    ("Why did it stop?", _stopped),
)
TRACE: tuple[Question, ...] = (
    ("Which request started which run?", _request),
    ("What did the planner propose at which step?", _proposed),
    ("Which policy allowed or denied it?", _allowed),
    ("Which tool version was called?", _versions),
    ("Which evidence and rule version does the result come from?", _evidence),
    ("Where did retries, recovery or a stop happen?", _detours),
    ("Which observations did the final answer use?", _used),
)
