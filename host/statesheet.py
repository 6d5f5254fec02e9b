"""The state sheet of a workflow kind, as a person would write it on paper. Pure, and derived from the kind's table.

Five groups stand for the states: where a case begins, where it is worked on, where it waits, where it ends, and the
exceptions, which a person has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from host.domain.control import Control
from host.domain.workflow import RESUME, Workflow, states
from host.views import StateRow, StateSheet

Group = Literal["begin", "work", "wait", "end", "exception"]
ORDER: tuple[Group, ...] = ("begin", "work", "wait", "end", "exception")


def sheet(workflow: Workflow) -> StateSheet:
    """Give the sheet, grouped."""
    rows = [_row(workflow, state) for state in states(workflow)]
    ordered = sorted(rows, key=lambda row: ORDER.index(row.group))
    return StateSheet(kind=workflow.kind, release=workflow.release, states=tuple(ordered))


def allowed_states(tool: str, workflows: Iterable[Workflow]) -> tuple[str, ...]:
    """Name the states in which a planner may be shown the tool."""
    return tuple(state for workflow in workflows for state, tools in workflow.tools.items() if tool in tools)


def _row(workflow: Workflow, state: str) -> StateRow:
    return StateRow(
        state=state,
        group=_group(workflow, state),
        entry=tuple(_entry(workflow, state)),
        allowed_tools=workflow.tools.get(state, ()),
        terminal=workflow.is_end(state),
        owner=workflow.owners[state],
    )


def _group(workflow: Workflow, state: str) -> Group:
    if state == workflow.initial:
        return "begin"
    if workflow.is_end(state):
        return "exception" if Control.NEEDS_HUMAN in workflow.ends[state] else "end"
    if workflow.tools.get(state):
        return "work"
    return "exception" if state in workflow.tools else "wait"  # named with no tool: code undoes something there


def _entry(workflow: Workflow, state: str) -> Iterable[str]:
    """Write each way in once: events that share sources, actors and versions stand together."""
    if state == workflow.initial:
        yield "received: a case that fits its kind, from an authorised requester"
    ways: dict[tuple[str, str, str], list[str]] = {}
    for row in workflow.transitions:
        if state == row.target or (row.target == RESUME and _resumed(workflow, state)):
            actors = " or ".join(actor.value for actor in row.by)
            ways.setdefault((_sources(workflow, row.source), actors, ", ".join(row.reads)), []).append(row.on)
    for (sources, actors, reads), events in ways.items():
        yield f"{', '.join(events)} from {sources} by {actors}, under {reads}"


def _sources(workflow: Workflow, sources: tuple[str, ...]) -> str:
    still_open = {state for state in states(workflow) if not workflow.is_end(state)}
    return "any open state" if still_open == set(sources) else ", ".join(sources)


def _resumed(workflow: Workflow, state: str) -> bool:
    """Tell whether a retry may have left this state."""
    return any(state in row.source for row in workflow.transitions if row.target == workflow.retry_state)
