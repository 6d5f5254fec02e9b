"""The registration form of a tool, generated from its row: what people read, sign and exchange as YAML.

Invariant: a form decides nothing, the row does; `form_yaml` writes and reads it without loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field

from shared_contracts.base import Contract
from shared_contracts.contract import Ambiguous, ContractSuite, ExecutesAt, Risk, Tool, Verification
from shared_contracts.form_fields import fields_of

Names = tuple[str, ...]
Source = Literal["run-bound-resource", "model-proposed"]

SUBJECT = "the token's subject, inside its tenant, task, customer and resource"
BACKOFF = "min(30 s, 1 s * 2^attempt) + 0 to 500 ms at random"  # the engine's one formula, as the form states it
FIRST = "start"  # stands in `called_after` of a tool that needs nothing before it


class FormInput(Contract):
    """What goes in: which arguments, from where, and whether others are refused."""

    required: Names = ()
    additional_properties: bool | None = None
    sources: dict[str, Source] = Field(default_factory=dict)


class FormAuthorization(Contract):
    """Who may call, and what must be true of the target."""

    actor_scope: str
    preconditions: Names = ()


class FormReadBack(Contract):
    """Which tool reads the effect again, what must agree, and how long and how often it is looked for."""

    tool: str
    matches: Names
    delay_seconds: float = Field(ge=0)  # before the first look
    poll_seconds: float = Field(gt=0)  # before the second, doubled before each further one
    looks: int = Field(ge=1)


class FormCompensation(Contract):
    """What takes the effect back, and how soon."""

    by: str
    within_hours: int = Field(ge=1)


class ToolForm(Contract):
    """One tool's form. Only the name is compulsory to load; `lint` says what a complete form lacks."""

    name: str = Field(pattern=r"^[a-z_]{1,64}$")
    version: str | None = None
    summary: str | None = None
    owner: str | None = None
    business_owner_confirmed_by: str | None = None
    # who, on what, when
    risk: Risk | None = None
    access: Literal["read", "update"] | None = None
    executes_at: ExecutesAt | None = None
    subject: str | None = None
    credential: str | None = None
    authorization: FormAuthorization | None = None
    targets: str | None = None
    called_after: Names = ()
    allowed_states: Names = ()
    forbidden_when: Names = ()
    approval_required_when: str | None = None
    # what goes in, what comes out
    resource_argument: str | None = None  # the one that must name the run's own object
    input: FormInput | None = None
    output: dict[str, str] = Field(default_factory=dict)
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    # the effect, and how it is known
    side_effect: str | None = None
    success_evidence: Names = ()
    success_when: str | None = None
    pending_when: Names = ()  # accepted, not done
    unknown_when: Names = ()  # the answer itself says that nobody knows
    external_id: str | None = None
    verification: Verification | None = None
    read_back: FormReadBack | None = None
    looks_up: bool | None = None  # it finds effects by their key; nothing else may reconcile
    # trying again, and taking back
    timeout_seconds: int | None = Field(default=None, ge=1)
    max_attempts: int | None = Field(default=None, ge=1)
    retryable: bool | None = None
    backoff: str | None = None
    idempotency_key: str | None = None
    idempotency_retention_days: int | None = Field(default=None, ge=1)
    ambiguous_failure: Ambiguous | None = None
    reconcile_with: str | None = None
    compensation: FormCompensation | None = None
    audit_items: Names = ()
    contract_suite: ContractSuite | None = None

    @property
    def updates(self) -> bool:
        """Tell whether the form is that of a tool which changes something outside."""
        declared = self.access == "update" or self.side_effect is not None
        return declared or self.risk not in {None, Risk.READ}


def _given(text: str) -> str | None:
    return None if text == "" else text


def _counted(number: int) -> int | None:
    return None if number == 0 else number


def _compensation(tool: Tool) -> FormCompensation | None:
    if tool.compensate_with == "" or tool.compensate_within_hours == 0:
        return None
    return FormCompensation(by=tool.compensate_with, within_hours=tool.compensate_within_hours)


def _input(tool: Tool) -> FormInput:
    properties = tool.input_schema["properties"]
    return FormInput(
        required=tuple(tool.input_schema["required"]),
        additional_properties=tool.input_schema["additionalProperties"],
        sources={
            name: "model-proposed" if name in tool.proposed_arguments else "run-bound-resource" for name in properties
        },
    )


def form(tool: Tool, allowed_states: Sequence[str] = ()) -> ToolForm:
    """Fill in the form from the row; the states come from the workflow kind that offers the tool."""
    return ToolForm(
        name=tool.name,
        version=_given(tool.version),
        summary=_given(tool.summary),
        owner=_given(tool.owner),
        business_owner_confirmed_by=_given(tool.business_owner),
        risk=tool.risk,
        access="update" if tool.writes else "read",
        executes_at=tool.executes_at,
        subject=SUBJECT,
        credential=f"a task token for this one call; the database role of the {tool.family} family",
        authorization=FormAuthorization(actor_scope=tool.scope.value, preconditions=tool.preconditions),
        targets=_given(tool.targets),
        called_after=tool.after if tool.after or tool.writes else (FIRST,),
        allowed_states=tuple(allowed_states),
        forbidden_when=tool.forbidden_when,
        approval_required_when=_given(tool.approval_required_when),
        resource_argument=_given(tool.resource_argument),
        input=_input(tool),
        output=fields_of(tool.output_schema),
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        side_effect=_given(tool.side_effect),
        success_evidence=tool.evidence,
        success_when=None if tool.success_when is None else str(tool.success_when),
        pending_when=tool.pending_values,
        unknown_when=tool.doubtful_values,
        external_id=_given(tool.external_id),
        verification=tool.verification,
        read_back=None if tool.verify is None else FormReadBack(**asdict(tool.verify)),
        looks_up=tool.looks_up,
        timeout_seconds=_counted(tool.timeout_seconds),
        max_attempts=_counted(tool.attempts_max),
        retryable=tool.retryable,
        backoff=BACKOFF,
        idempotency_key=_given(tool.idempotency_key),
        idempotency_retention_days=_counted(tool.idempotency_retention_days),
        ambiguous_failure=tool.ambiguous_failure,
        reconcile_with=_given(tool.reconcile_with),
        compensation=_compensation(tool),
        audit_items=tool.audit_items,
        contract_suite=tool.contract_suite,
    )
