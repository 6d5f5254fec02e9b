"""What a kind lacks for the engine to drive every case of it to an end; a kind with a gap is carried by no program.

Invariant: in each state that a planner is asked in there is a tool to offer, and a move on whatever the engine may say.
"""

from __future__ import annotations

from collections.abc import Iterator

from host.domain.control import Actor
from host.domain.workflow import Workflow, states

# What the engine may say of a case of any kind; beside these, of what a kind does itself: `transient` and its effects.
SAID_OF_EVERY_KIND = (
    "limit", "attempts_exhausted", "undecidable", "denied", "planner_exhausted", "planner_needs_human",
)  # fmt: skip


class IncompleteKindError(Exception):
    """A kind has gaps; the text names them."""


def complete(*workflows: Workflow) -> tuple[Workflow, ...]:
    """Give the kinds as they are; raises IncompleteKindError before any case could be stuck in one."""
    for workflow in workflows:
        found = tuple(gaps(workflow))
        if found:
            raise IncompleteKindError(f"the kind {workflow.kind} is not complete: {'; '.join(found)}")
    return workflows


def gaps(workflow: Workflow) -> Iterator[str]:
    """Name the states in which the engine would be at a loss, and why."""
    waits = {workflow.retry_state, workflow.approval_state, workflow.compensation_state}
    asked = [state for state in states(workflow) if state not in workflow.ends and state not in waits]
    for state in asked:
        if not workflow.tools.get(state):
            yield f"{state} offers no tool, so no planner is asked in it"
    for state in (*asked, *(() if workflow.retry_state is None else (workflow.retry_state,))):
        unheard = [word for word in SAID_OF_EVERY_KIND if workflow.transition(state, word, Actor.ENGINE) is None]
        if unheard:
            yield f"{state} has no move on {', '.join(unheard)}"
