"""Take a person's signed decision: verify it, write it down, and move the case by it, in one commit.

Of two decisions one counts; the other is told whose. Nothing here decides for anybody, and no time that passes does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID, uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from host.domain.control import REFUSED, WAITED, Actor, Control, Execution
from host.domain.outcome import CallError
from host.domain.principals import AuthorizationSet
from host.domain.state import Asked, State, from_row
from host.domain.step import Step
from host.domain.wait import ENDED, Wait
from host.engine.approval import request_of
from host.engine.parts import Kind
from host.engine.wake import Wake
from host.store import approvals, ledger
from host.store.errors import ApprovalOverError, ApproverKeyError, InvariantError, StaleWorkflowError
from host.store.pool import Pool
from shared_contracts.approval import (
    LIFETIME,
    ApprovalEvent,
    Name,
    Void,
    VoidError,
    held_against,
    key_id,
    opened,
    public_key,
    right_to_decide,
)
from shared_contracts.errors import Category

DENIED = CallError("approval_denied", Category.AUTHORIZATION, "an approver said no")


APPROVED = Wait("approved", 0.0)


class ApprovalRefusedError(Exception):
    """The decision does not count; the message says why and what would be possible. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What a decision is taken with; no worker and no tool server has to run."""

    pool: Pool
    kinds: Mapping[tuple[str, str], Kind]
    authorization: AuthorizationSet
    wake: Wake


async def waiting(desk: Desk, workflow_id: UUID) -> tuple[State, Asked]:
    """Read a case that waits for a decision, and what is asked; raises ApprovalRefusedError."""
    state = await load_case(desk, workflow_id)
    asked = state.evidence.asked
    if asked is None or state.task.state != desk.kinds[state.task.kind, state.task.release].workflow.approval_state:
        raise ApprovalRefusedError(not_waiting(state))
    return state, asked


async def load_case(desk: Desk, workflow_id: UUID) -> State:
    """Read a case; raises ApprovalRefusedError where there is none."""
    async with desk.pool.connection() as connection:
        row = await ledger.load(connection, workflow_id)
    if row is None:
        raise ApprovalRefusedError(_VOID[Void.OTHER_WORKFLOW])
    state = from_row(row)
    if (state.task.kind, state.task.release) not in desk.kinds:
        raise ApprovalRefusedError(f"the case is of release {state.task.release}, which this program does not carry")
    return state


async def take_decision(desk: Desk, text: str, looked_seconds: float) -> ApprovalEvent:
    """Record a signed decision and wake the case; raises ApprovalRefusedError."""
    async with desk.pool.connection() as connection:
        keys = {key.kid: key for key in await approvals.keys(connection)}

    def key_of(kid: str) -> tuple[Name, Ed25519PublicKey] | None:
        return (keys[kid].name, public_key(keys[kid].x)) if kid in keys else None

    try:
        event = opened(text, key_of)
        workflow_id = UUID(event.workflow_id)
    except VoidError as error:
        raise ApprovalRefusedError(_VOID[error.why]) from error
    except ValueError as error:
        raise ApprovalRefusedError(_VOID[Void.OTHER_WORKFLOW]) from error
    state, asked = await waiting(desk, workflow_id)
    step = _decided(desk, state, asked, event)
    step.record_decision(event, key_id(text), text, looked_seconds)
    try:
        async with desk.pool.connection() as connection, connection.transaction():
            if step.state.ended():
                await ledger.commit_steps(connection, step.rows("approvals", 1.0, ENDED))
            else:
                await ledger.commit_steps(connection, step.rows("approvals", 1.0, APPROVED))
                await desk.wake(connection, workflow_id)
    except StaleWorkflowError as error:
        raise ApprovalRefusedError(not_waiting(await load_case(desk, workflow_id))) from error
    except ApproverKeyError as error:  # revoked since it was looked for
        raise ApprovalRefusedError(_VOID[Void.UNKNOWN_KEY]) from error
    except ApprovalOverError as error:
        raise ApprovalRefusedError(_VOID[Void.EXPIRED]) from error
    except InvariantError as error:
        if "approval_pkey" not in str(error):
            raise
        raise ApprovalRefusedError(_VOID[Void.USED]) from error  # its id is another decision's
    return event


def decision_on(
    state: State, asked: Asked, approver: Name, decision: Literal["approve", "deny"], reason: str
) -> ApprovalEvent:
    """Put together what is signed; its time is the database's, by whose clock it will be judged.

    Raises pydantic.ValidationError.
    """
    return ApprovalEvent(
        event_id=uuid4().hex,
        workflow_id=str(state.task.workflow_id),
        version=asked.version,
        tenant_id=state.task.tenant_id,
        subject=state.task.principal,
        tool=asked.action.tool,
        resource=asked.action.resource,
        action_digest=asked.action_digest,
        decision=decision,
        reason=reason,
        approver=approver,
        requested_at=asked.expires_at - LIFETIME,
        decided_at=asked.read_at,
        expires_at=asked.expires_at,
    )


def _decided(desk: Desk, state: State, asked: Asked, event: ApprovalEvent) -> Step:
    """Put the move together that the decision makes; raises ApprovalRefusedError."""
    kind = desk.kinds[state.task.kind, state.task.release]
    held = event if event.decision == "approve" else event.model_copy(update={"decision": "approve"})
    why = held_against(held, request_of(state, asked), desk.authorization.approvers, asked.read_at)
    if why is None and (event.requested_at, event.expires_at) != (asked.expires_at - LIFETIME, asked.expires_at):
        why = Void.OTHER_VERSION  # a request has its time from the database; a substitute's turn depends on it
    if why is not None:
        raise ApprovalRefusedError(f"{_VOID[why]}{_who_may(desk, asked, held) if why in _BY_ANOTHER else ''}")
    step = Step(state, kind.workflow, kind.moves, claim=False, active_ms=0)
    if event.decision == "approve":
        step.mark_call(Execution.REQUESTED)
        step.business("approved", WAITED, "approved", Actor.APPROVER)
    else:
        step.mark_call(Execution.FAILED, error=DENIED)
        step.go(REFUSED, "approval_denied")
        step.end("denied", "approval_denied", Control.COMPLETED, actor=Actor.APPROVER)
    return step


def _who_may(desk: Desk, asked: Asked, event: ApprovalEvent) -> str:
    """Name those whose decision would count now, by the rights that refused this one."""
    people = desk.authorization.approvers
    could = [
        one.name
        for one in people
        if right_to_decide(event.model_copy(update={"approver": one.name}), asked.action.amount, people) is None
    ]
    return f"; who may now: {', '.join(could) or 'nobody'}"


def not_waiting(state: State) -> str:
    """Say what the case is doing instead, and who was first."""
    asked = state.evidence.asked
    decided = "" if asked is None or asked.decided is None else f"; {asked.decided[0]} decided: {asked.decided[1]}"
    return f"the case waits for nobody's decision, it is in {state.task.state}{decided}; see `kessai show`"


# what another person's decision would mend
_BY_ANOTHER = frozenset({Void.OWN_REQUEST, Void.NO_APPROVER, Void.OVER_LIMIT, Void.OUT_OF_TURN})
_VOID: dict[Void, str] = {
    Void.MALFORMED: "this is no decision as `kessai approve` writes it",
    Void.UNKNOWN_KEY: "nobody's key signed this; `kessai approver add` makes one and trusts it",
    Void.BAD_SIGNATURE: "the signature does not hold: the decision was changed, or another key signed it",
    Void.OTHER_KEY: "the key belongs to another approver",
    Void.OTHER_TENANT: "the decision is about another tenant's case",
    Void.OTHER_WORKFLOW: "the decision is about another case",
    Void.OTHER_VERSION: "the decision is about an earlier request; look at the case again",
    Void.OTHER_REQUESTER: "the decision names another requester",
    Void.OTHER_TOOL: "the decision is about another tool",
    Void.OTHER_RESOURCE: "the decision is about another order",
    Void.OTHER_ACTION: "what would be done is not what was decided on; look at the case again",
    Void.DENIED: "the decision is a denial",
    Void.OWN_REQUEST: "nobody decides on what they asked for themselves",
    Void.NO_APPROVER: "this person is no approver of the tenant in the authorization set",
    Void.OVER_LIMIT: "the amount is above this approver's limit",
    Void.OUT_OF_TURN: "a substitute decides only once the request is as old as the rules say",
    Void.FROM_THE_FUTURE: "the decision's time lies ahead, or before the request; check the clock",
    Void.EXPIRED: "its time is up, and nothing was decided; `kessai reapply` makes a new case of it",
    Void.USED: "the decision was used before",
}
