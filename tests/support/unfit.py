"""Returns with one thing taken out that a kind needs in order to act by itself, for each such thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from host.domain.control import Control
from host.domain.principals import AuthorizationSet
from host.domain.suitability import Condition
from host.domain.workflow import Workflow
from host.engine.parts import Kind, Parts
from host.workflows.returns import ENDS, OWNERS, RETURNS, TRANSITIONS, S
from shared_contracts.contract import Scope, Tool
from shared_contracts.tools import TOOLS

# every field that an update needs filled, blank
BLANKS: dict[str, Any] = {
    "version": "", "targets": "", "after": (), "preconditions": (), "timeout_seconds": 0, "attempts_max": 0,
    "owner": "", "business_owner": "", "side_effect": "", "idempotency_key": "", "idempotency_retention_days": 0,
    "reconcile_with": "", "ambiguous_failure": None, "success_when": None, "external_id": "", "verify": None,
    "compensate_with": "", "compensate_within_hours": 0, "forbidden_when": (), "evidence": (), "audit_items": (),
}  # fmt: skip


@dataclass(frozen=True)
class Without:
    """What is changed, and what is said of it; a tool that is changed to None is taken out of the registry."""

    condition: Condition
    says: str
    workflow: Mapping[str, Any] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    approvers: bool = True

    def kind(self) -> Workflow:
        return replace(RETURNS, **self.workflow)

    def registry(self) -> dict[str, Tool]:
        changed = {name: replace(TOOLS[name], **fields) for name, fields in self.tools.items() if fields is not None}
        return {**{name: tool for name, tool in TOOLS.items() if name not in self.tools}, **changed}

    def authorization(self, known: AuthorizationSet) -> AuthorizationSet:
        return known if self.approvers else known.model_copy(update={"approvers": ()})

    def of(self, parts: Parts) -> Parts:
        """The same engine, with this thing gone."""
        ((_, kind),) = parts.kinds.items()
        workflow = self.kind()
        return replace(
            parts,
            kinds={(workflow.kind, workflow.release): Kind(workflow, kind.moves)},
            registry=self.registry(),
            authorization=self.authorization(parts.authorization),
        )


def no_move(on: str) -> dict[str, Any]:
    return {"transitions": tuple(row for row in TRANSITIONS if row.on != on)}


def ends(state: S, *control: Control) -> dict[str, Any]:
    """Let a state end as another control state, or not at all."""
    others = {name: known for name, known in ENDS.items() if name != state}
    return {"ends": {**others, state: control} if control else others}


def unowned(state: S) -> dict[str, Any]:
    return {"owners": {**OWNERS, state: " "}}


C = Condition
BY_ALL = {name: {"scope": Scope.RETURNS_WRITE} for name in TOOLS}
# fmt: off
UNFIT: dict[str, Without] = {
    "the successful state": Without(C.STATES_UNDEFINED, "No state means that a case is done.", {"success": ""}),
    "the success among the ends": Without(
        C.STATES_UNDEFINED, "COMPLETED means done, and is no end that completes a case.", ends(S.COMPLETED)),
    "a success that completes": Without(
        C.STATES_UNDEFINED, "COMPLETED means done, and is no end that completes a case.",
        ends(S.COMPLETED, Control.STOPPED)),
    "the way to success": Without(
        C.STATES_UNDEFINED, "No moves lead from RECEIVED to COMPLETED.", no_move("eligible")),
    "the owner of a state": Without(C.STATES_UNDEFINED, "ELIGIBLE has no owner.", unowned(S.ELIGIBLE)),
    "the idempotency key of a return": Without(
        C.UPDATE_NOT_RECOVERABLE, "create_return has no idempotency key.",
        tools={"create_return": {"idempotency_key": ""}}),
    "the look-up of a return": Without(
        C.UPDATE_NOT_RECOVERABLE, "create_return has no look-up that tells what a lost answer was.",
        tools={"create_return": {"reconcile_with": ""}}),
    "a look-up that looks up": Without(
        C.UPDATE_NOT_RECOVERABLE, "create_return has no look-up that tells what a lost answer was.",
        tools={"create_return": {"reconcile_with": "get_return"}}),
    "what cancels a return": Without(
        C.UPDATE_NOT_RECOVERABLE, "create_return can be neither cancelled nor compensated.",
        tools={"create_return": {"compensate_with": ""}}),
    "the cancelling tool": Without(
        C.UPDATE_NOT_RECOVERABLE, "create_return can be neither cancelled nor compensated.",
        tools={"cancel_return": None}),
    "the time to cancel in": Without(
        C.UPDATE_NOT_RECOVERABLE, "create_return can be neither cancelled nor compensated.",
        tools={"create_return": {"compensate_within_hours": 0}}),
    "the key of the later notice": Without(
        C.UPDATE_NOT_RECOVERABLE, "send_return_notice has no idempotency key.",
        tools={"send_return_notice": {"idempotency_key": ""}}),
    "the contract of a return": Without(
        C.UPDATE_NOT_RECOVERABLE, "create_return has no contract.", tools={"create_return": None}),
    "the state that waits for approval": Without(
        C.APPROVAL_NOT_KEPT, "create_return may need an approval, and no state waits for one.",
        {"approval_state": None}),
    "the approver's move": Without(
        C.APPROVAL_NOT_KEPT, "No move out of WAITING_APPROVAL is an approver's.", no_move("approved")),
    "what is approved": Without(
        C.APPROVAL_NOT_KEPT, "Nothing says what a person would approve of create_return.", {"approvable": None}),
    "every approver": Without(
        C.APPROVAL_NOT_KEPT, "The authorization set authz-v7 has no approver.", approvers=False),
    "a second credential": Without(
        C.ONE_CREDENTIAL, "Every tool of it is of one family, returns, and runs under that family's one credential.",
        tools=BY_ALL),
    "the scope for reading alone": Without(
        C.ONE_CREDENTIAL, "get_order only reads, under returns:write, which also updates.",
        tools={"get_order": {"scope": Scope.RETURNS_WRITE}}),
    "the scope of a look-up": Without(
        C.ONE_CREDENTIAL, "find_return only reads, under returns:write, which also updates.",
        tools={"find_return": {"scope": Scope.RETURNS_WRITE}}),
    "the state that waits for a retry": Without(
        C.NO_WAY_TO_WAIT, "No state waits until something can be tried again.", {"retry_state": None}),
    "the end of such a wait": Without(C.NO_WAY_TO_WAIT, "Nothing ends the wait in RETRY_WAIT.", no_move("due")),
    "the end with a person": Without(
        C.NO_WAY_TO_WAIT, "No end hands a case over to a person.", ends(S.NEEDS_REVIEW, Control.FAILED)),
    "whoever goes on by hand": Without(
        C.NO_WAY_TO_WAIT, "Nobody owns NEEDS_REVIEW, where cases are handed over.", unowned(S.NEEDS_REVIEW)),
}
# fmt: on
