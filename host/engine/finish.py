"""A planner says that the task is done: believed only as far as code can check it against this run's observations.

Invariant: what ends a case is the finding of the kind's own criterion, made of observations; of the planner's answer
nothing is stored but that it agreed. An answer that names evidence which nobody observed here is refused whole.
"""

from __future__ import annotations

from typing import Any

from host.domain.control import Actor, Control
from host.domain.proposals import Final, PlannerFault
from host.domain.step import Step

_NOT_DONE = PlannerFault("unbacked_completion_claim", "The task is not done; propose the next call.")
_INVENTED = PlannerFault("unbacked_completion_claim", "The answer names evidence that was not observed in this run.")


def finish(step: Step, final: Final) -> PlannerFault | None:
    """Make the move that the answer means, or say why it is refused."""
    workflow, task, seen = step.workflow, step.state.task, step.state.evidence.seen()
    if workflow.finish is None:
        return _NOT_DONE
    observed = {
        str(one.result["evidence_ref"]) for one in seen if one.result is not None and "evidence_ref" in one.result
    }
    references = _references(final.evidence_refs)
    if not references or not observed.issuperset(references) or not isinstance(final.answer, dict):
        return _INVENTED
    finding = workflow.finish(task.case, seen, final)
    row = None if finding is None else workflow.transition(task.state, finding.event, Actor.ENGINE, ends=True)
    if finding is None or row is None:
        return _NOT_DONE
    step.found(finding)
    if Control.COMPLETED in workflow.ends[row.target]:
        step.end(finding.event, finding.reason, Control.COMPLETED, references)
    else:
        step.review(finding.event, finding.reason, references)
    return None


def _references(given: Any) -> tuple[str, ...]:
    """Read what a planner named; anything that is no list of texts is no evidence."""
    if not isinstance(given, tuple | list) or not all(isinstance(one, str) for one in given):
        return ()
    return tuple(dict.fromkeys(given))
