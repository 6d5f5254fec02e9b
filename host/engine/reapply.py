"""Take a waiting case back, or make a new case of one that ended with nothing done. Each is a person's own act.

A case that has ended stays as it ended. The new one names it, begins with the rules and prices of today, and asks for
every approval anew.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from host.domain.control import REFUSED, Actor, Control, Execution
from host.domain.outcome import CallError
from host.domain.state import State
from host.domain.step import Step
from host.domain.wait import ENDED
from host.engine.accept import ANEW, Origin, Pins, Taken, accept, beginning, read_case
from host.engine.approve import ApprovalRefusedError, Desk, load_case, not_waiting, waiting
from host.store import ledger
from host.store.errors import StaleWorkflowError
from shared_contracts.errors import Category

WITHDRAWN = CallError("withdrawn", Category.AUTHORIZATION, "the requester took it back")
NOTHING_DONE = frozenset({"absent", "rejected"})


class NotPossibleError(Exception):
    """The case is not where this can be done; the message says where it is and what can. Nothing was changed."""


async def withdraw(desk: Desk, workflow_id: UUID, by: str) -> None:
    """End a case that waits for an approval, for its requester; raises ApprovalRefusedError."""
    state, _ = await waiting(desk, workflow_id)
    kind = desk.kinds[state.task.kind, state.task.release]
    step = Step(state, kind.workflow, kind.moves, claim=False, active_ms=0)
    step.mark_call(Execution.FAILED, error=WITHDRAWN)
    step.go(REFUSED, "withdrawn")
    step.end("withdrawn", "withdrawn", Control.COMPLETED, actor=Actor.OPERATOR)
    step.note("withdrawn", by)
    try:
        async with desk.pool.connection() as connection:
            await ledger.commit_steps(connection, step.rows("withdrawals", 1.0, ENDED))
    except StaleWorkflowError as error:
        raise ApprovalRefusedError(not_waiting(await load_case(desk, workflow_id))) from error


async def reapply(desk: Desk, workflow_id: UUID, pins: Pins, as_of: datetime | None) -> Taken:
    """Take the same case in anew, as one that supersedes the old; done twice it is one. Raises NotPossibleError."""
    old = await load_case(desk, workflow_id)
    task = old.task
    why = _unsettled(desk, old)
    if why is not None:
        raise NotPossibleError(why)
    principal = desk.authorization.by_name().get(task.principal)
    if principal is None or principal.tenant_id != task.tenant_id:
        raise NotPossibleError(f"{task.principal} may ask for nothing any more; submit the case for somebody who may")
    document = {**task.case, "kind": task.kind, "request_id": f"{ANEW}{workflow_id}", "requested_at": None}
    workflows = {kind.workflow.kind: kind.workflow for kind in desk.kinds.values()}
    kind, case = await beginning(desk.pool, desk.kinds, *read_case(document, workflows))
    return await accept(desk.pool, kind, case, Origin(principal, as_of, workflow_id), pins, desk.wake)


def _unsettled(desk: Desk, old: State) -> str | None:
    """Say what has to be settled before the case may be tried again; None where nothing was done and it has ended."""
    workflow = desk.kinds[old.task.kind, old.task.release].workflow
    done = [effect.name for effect in old.evidence.effects if effect.outcome not in NOTHING_DONE]
    if not old.control.closed and (
        old.control.control not in {Control.STOPPED, Control.COMPLETED} or not workflow.is_end(old.task.state)
    ):
        return f"the case is in {old.task.state}; only one that has ended with nothing done can be tried again"
    if done:
        return f"the case has made {', '.join(done)}; what was done stays, and is not asked for again"
    return None
