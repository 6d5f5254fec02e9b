"""Undo what was done: the calls that a workflow kind names, made by code and judged like any other.

    plan (pure) → the stored call → authorise → COMMIT → act → verify → plan …

No planner is asked and none of the case's own budget is spent; there is a bound and a deadline of its own. Under a stop
nothing is undone but what a named person has released.
"""

from __future__ import annotations

from host.domain.control import PROPOSED, Actor, Control, Execution
from host.domain.outcome import CallError
from host.domain.proposals import ToolCall
from host.domain.state import State, Undoing
from host.domain.step import Step
from host.domain.undo import Impossible, NextCall, Undo, Undone
from host.domain.wait import Wait, halted
from host.domain.workflow import Version, Workflow, unmet
from host.engine.parts import Parts
from shared_contracts.errors import Category

AWAY_SECONDS = 30.0
OVERDUE = CallError("overdue", Category.TRANSIENT, "its time is up")


def plan(workflow: Workflow, state: State, undoing: Undoing) -> Undo:
    """Say what comes next, from the ledger alone."""
    wrong = next(call.tool for call in state.evidence.calls if call.step == undoing.step)
    return workflow.undo(state.task.case, wrong, state.evidence.made_ids(), state.evidence.seen_undoing())


def compensate(parts: Parts, step: Step, undoing: Undoing) -> Wait | None:
    """Store the next call, or end it. Expects control `planning` or `tool_proposed`."""
    state = step.state
    since_commit = (step.active_ms - state.control.active_ms) / 1000  # an answer may have been long in coming
    if undoing.seconds_left <= since_commit:
        return end_overdue(step)
    if state.control.updates_stopped or state.control.reads_stopped:
        return halt(step, reads=state.control.reads_stopped)
    if state.control.control is Control.TOOL_PROPOSED:
        return None
    match plan(step.workflow, state, undoing):
        case Impossible(reason):
            return step.review("not_compensable", reason)
        case Undone() if not _as_contracted(parts, step, undoing):
            return step.review("not_compensable", "version_changed")
        case Undone():
            return step.compensated()
        case NextCall(name, arguments):
            tool = parts.registry.get(name)
            if tool is None:
                return step.review("not_compensable", "no_tool_left")
            call_id = f"undo_{len(state.evidence.calls) + 1}_{undoing.step}"
            step.open_call(ToolCall(call_id, name, dict(arguments)), tool, Execution.REQUESTED)
            return step.go(PROPOSED)


def end_overdue(step: Step) -> None:
    """It was not undone in time; what was about to be sent for it is not."""
    if step.state.control.control is Control.TOOL_PROPOSED:
        step.mark_call(Execution.FAILED, error=OVERDUE)
    step.overdue()


def halt(step: Step, *, reads: bool) -> Wait:
    """Wait for the end of a stop; what has to be undone by a time waits no longer than that."""
    undoing = step.state.evidence.undoing
    return halted(reads=reads) if undoing is None else Wait("compensation", max(0.0, undoing.seconds_left))


def await_tool(undoing: Undoing) -> Wait:
    """Wait for a tool that is away just now: there is time until what has to be undone is overdue."""
    return Wait("compensation", min(AWAY_SECONDS, max(0.0, undoing.seconds_left)))


def _as_contracted(parts: Parts, step: Step, undoing: Undoing) -> bool:
    """Tell whether all that undid it was called under today's contracts, as the move demands."""
    row = step.workflow.transition(step.state.task.state, "compensated", Actor.ENGINE)
    own = (call for call in step.state.evidence.calls if call.step >= undoing.first_step)
    return row is not None and all(
        not unmet(row, {Version.CONTRACT: call.contract_version}, {Version.CONTRACT: parts.registry[call.tool].version})
        for call in own
    )
