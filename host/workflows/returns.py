"""Returns: read the order, judge by rules, wait for a person where one must decide, issue, notify, prove.

    RECEIVED → ORDER_VERIFIED → ELIGIBLE ─────────────────→ RETURN_CREATED → COMPLETED
        └→ REJECTED  └→ REJECTED  └→ WAITING_APPROVAL → APPROVED ─┘
    from any state: RETRY_WAIT (and back), NEEDS_REVIEW, COMPENSATION_REQUIRED

Rules decide every branch; a planner can only propose the call that the state allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from host.domain.control import NEXT_ATTEMPT, PROPOSED, REOPENED, WAITED, Actor, Control
from host.domain.limits import Limits
from host.domain.proposals import NeedsHuman, PlannerDecision, PlannerView, ToolCall
from host.domain.severe import Severe
from host.domain.undo import Impossible, NextCall, Undo, Undone
from host.domain.workflow import RESUME, Approvable, Ended, Finding, Seen, T, Transition, Version, Workflow
from host.workflows.returns_messages import message
from shared_contracts.base import Contract, Identifier, Moment, Money, Prose, parse
from shared_contracts.digest import digest
from shared_contracts.policies import PolicyFacts
from shared_contracts.record import Result
from shared_contracts.returns import Ask, ReturnLines, ReturnReason, Ruling, RulingOutcome, rule


class ReturnsCase(Contract):
    """A return request as it comes in. `message` is untrusted and decides nothing."""

    kind: Literal["returns"]
    request_id: Identifier | None = None
    customer_id: Identifier
    order_id: Identifier
    lines: ReturnLines
    reason: ReturnReason
    message: Prose
    requested_at: Moment | None = None
    asks: Annotated[tuple[Ask, ...], Field(max_length=3)] = ()


class ReturnsResult(Result):
    """What a return came to."""

    return_id: str | None
    message_id: str | None


class S(StrEnum):
    """The twelve states of a return."""

    RECEIVED = "RECEIVED"
    ORDER_VERIFIED = "ORDER_VERIFIED"
    ELIGIBLE = "ELIGIBLE"
    REJECTED = "REJECTED"
    WAITING_APPROVAL = "WAITING_APPROVAL"
    APPROVED = "APPROVED"
    EXPIRED = "EXPIRED"
    RETURN_CREATED = "RETURN_CREATED"
    COMPLETED = "COMPLETED"
    RETRY_WAIT = "RETRY_WAIT"
    NEEDS_REVIEW = "NEEDS_REVIEW"
    COMPENSATION_REQUIRED = "COMPENSATION_REQUIRED"


ENGINE, TIMER, APPROVER, OPERATOR = (Actor.ENGINE,), (Actor.TIMER,), (Actor.APPROVER,), (Actor.OPERATOR,)
CLOCK = (Actor.ENGINE, Actor.TIMER)
_WORKING = (S.RECEIVED, S.ORDER_VERIFIED, S.ELIGIBLE, S.APPROVED, S.RETURN_CREATED, S.COMPENSATION_REQUIRED)
_WRITING = (S.ELIGIBLE, S.APPROVED, S.RETURN_CREATED)
_OPEN = (*_WORKING, S.WAITING_APPROVAL, S.RETRY_WAIT)
_REVIEW_EVENTS = (
    "limit", "attempts_exhausted", "unknown_effect", "undecidable", "out_of_scope", "create_rejected",
    "denied", "planner_exhausted", "planner_needs_human",
)  # fmt: skip
_UNDONE_EVENTS = ("compensated", "not_compensable", "overdue")
ACTIVE = 90.0
DAY = 24 * 3600.0
RETRY = 30.5
ROW, ORDER, POLICY, CONTRACT = (Version.ROW,), (Version.ORDER_SNAPSHOT,), (Version.POLICY,), (Version.CONTRACT,)
RULES = (Version.POLICY, Version.AUTHZ)
ALL = (Version.ORDER_SNAPSHOT, *RULES)


# fmt: off
TRANSITIONS: tuple[Transition, ...] = (
    # from                     on                      to                       by        reads     within, rides
    T(S.RECEIVED,                "order_verified",       S.ORDER_VERIFIED,        ENGINE,   ORDER,    ACTIVE),
    T(S.RECEIVED,                "order_not_found",      S.REJECTED,              ENGINE,   ORDER,    ACTIVE),
    T(S.ORDER_VERIFIED,          "eligible",             S.ELIGIBLE,              ENGINE,   POLICY,   ACTIVE),
    T(S.ORDER_VERIFIED,          "ineligible",           S.REJECTED,              ENGINE,   POLICY,   ACTIVE),
    T(S.ELIGIBLE,                "approval_required",    S.WAITING_APPROVAL,      ENGINE,   RULES,    ACTIVE, PROPOSED),
    T(S.WAITING_APPROVAL,        "approved",             S.APPROVED,              APPROVER, ROW,      DAY, WAITED),
    T(S.WAITING_APPROVAL,        "denied",               S.REJECTED,              APPROVER, ROW,      DAY),
    T(S.WAITING_APPROVAL,        "expired",              S.EXPIRED,               TIMER,    ROW,      DAY),
    T(S.WAITING_APPROVAL,        "withdrawn",            S.REJECTED,              OPERATOR, ROW,      DAY),
    T(S.APPROVED,                "approval_void",        S.WAITING_APPROVAL,      ENGINE,   ALL,      None, WAITED),
    T(S.APPROVED,                "approval_expired",     S.EXPIRED,               CLOCK,    ROW,      DAY),
    T(S.RETRY_WAIT,              "approval_expired",     S.EXPIRED,               TIMER,    ROW,      None),
    T((S.ELIGIBLE, S.APPROVED),  "return_verified",      S.RETURN_CREATED,        ENGINE,   CONTRACT, ACTIVE),
    T(S.RETURN_CREATED,          "notice_verified",      S.COMPLETED,             ENGINE,   CONTRACT, ACTIVE),
    T(_WORKING,                  "transient",            S.RETRY_WAIT,            ENGINE,   ROW,      RETRY, NEXT_ATTEMPT),
    T(S.RETRY_WAIT,              "due",                  RESUME,                  TIMER,    ROW,      RETRY, WAITED),
    T(_WRITING,                  "wrong_effect",         S.COMPENSATION_REQUIRED, ENGINE,   CONTRACT, None),
    T(S.NEEDS_REVIEW,            "compensation_ordered", S.COMPENSATION_REQUIRED, OPERATOR, ROW,      None, *REOPENED),
    T(S.NEEDS_REVIEW,            "effect_adopted",       S.RETURN_CREATED,        OPERATOR, ROW,      None, *REOPENED),
    T(S.NEEDS_REVIEW,            "effect_adopted",       S.COMPLETED,             OPERATOR, ROW,      None),
    *(T(_OPEN, event, S.NEEDS_REVIEW, ENGINE, ROW, ACTIVE) for event in _REVIEW_EVENTS),
    *(T(S.COMPENSATION_REQUIRED, event, S.NEEDS_REVIEW, CLOCK, CONTRACT, DAY) for event in _UNDONE_EVENTS),
)
TOOLS: dict[str, tuple[str, ...]] = {
    S.RECEIVED: ("get_order",),
    S.ORDER_VERIFIED: ("check_return_policy",),
    S.ELIGIBLE: ("create_return",),
    S.APPROVED: ("create_return",),
    S.RETURN_CREATED: ("send_return_notice",),
    S.COMPENSATION_REQUIRED: (),  # compensation tools only, called by code
}
ENDS: dict[str, tuple[Control, ...]] = {
    S.COMPLETED: (Control.COMPLETED,),
    S.REJECTED: (Control.COMPLETED,),
    S.EXPIRED: (Control.STOPPED,),
    S.NEEDS_REVIEW: (Control.NEEDS_HUMAN, Control.FAILED),
}
# fmt: on
OWNERS: dict[str, str] = {
    S.RECEIVED: "order-desk",
    S.ORDER_VERIFIED: "returns-desk",
    S.ELIGIBLE: "returns-desk",
    S.WAITING_APPROVAL: "approver",
    S.APPROVED: "returns-desk",
    S.RETURN_CREATED: "customer-care",
    S.RETRY_WAIT: "operations",
    S.COMPENSATION_REQUIRED: "operations",
    S.NEEDS_REVIEW: "returns-desk",
    S.COMPLETED: "returns-desk",
    S.REJECTED: "returns-desk",
    S.EXPIRED: "returns-desk",
}


def _ruling(case: Mapping[str, Any], answer: PolicyFacts) -> Ruling:
    return rule(answer.facts, frozenset(Ask(ask) for ask in case["asks"]))


def _judge(case: Mapping[str, Any], result: Mapping[str, Any]) -> Finding:
    """Turn the policy's facts into the event that the decision table gives."""
    answer = parse(PolicyFacts, result)
    if not _answers(case, answer):
        return Finding("undecidable", "evidence_insufficient")
    ruling = _ruling(case, answer)
    events = {
        RulingOutcome.ELIGIBLE: "eligible",
        RulingOutcome.APPROVAL: "eligible",
        RulingOutcome.REJECTED: "ineligible",
    }
    review = "out_of_scope" if ruling.reason == "out_of_scope" else "undecidable"
    return Finding(
        event=events.get(ruling.outcome, review),
        reason=ruling.reason,
        versions={Version.POLICY: answer.rule_version, Version.ORDER_SNAPSHOT: answer.snapshot},
        rule_version=answer.rule_version,
        contested=ruling.reason == "already_returned",
        facts={"facts": result["facts"], "asks": list(case["asks"]), "order_version": answer.order_version},
    )


def _answers(case: Mapping[str, Any], answer: PolicyFacts) -> bool:
    """Tell whether the facts are those of this very request: each line once, in the quantity asked for."""
    asked = sorted((line["line_id"], line["quantity"]) for line in case["lines"])
    told = sorted((line.line_id, line.requested) for line in answer.facts.lines)
    return asked == told and answer.facts.reason == case["reason"]


def interpret(case: Mapping[str, Any], seen: Seen) -> Finding | None:
    """Say what an answered call means for the business; None leaves the refusal to the engine's classes."""
    match seen.tool, seen.result, seen.error:
        case "get_order", None, "not_found":
            return Finding("order_not_found", "order_not_found", versions=None)
        case "get_order", result, None if result is not None:
            return Finding("order_verified", "order_verified", {Version.ORDER_SNAPSHOT: str(result["snapshot"])})
        case "check_return_policy", None, "not_found":
            return Finding("undecidable", "evidence_insufficient")
        case "get_order" | "check_return_policy", None, code if code is not None:
            return Finding("undecidable", code)  # the business refuses to tell: asking again changes nothing
        case "check_return_policy", result, None if result is not None:
            return _judge(case, result)
        case "create_return", result, None if result is not None:
            return Finding("return_verified", "return_verified")
        case "send_return_notice", result, None if result is not None:
            return Finding("notice_verified", "notice_verified")
        case _:
            return None


def _result(seen: tuple[Seen, ...], tool: str) -> Mapping[str, Any] | None:
    return next((one.result for one in reversed(seen) if one.tool == tool and one.result is not None), None)


def bindings(case: Mapping[str, Any], seen: tuple[Seen, ...]) -> dict[str, Any]:
    """Name the only value that each argument may have in this run."""
    bound = {"order_id": case["order_id"], "lines": case["lines"], "reason": case["reason"]}
    created = _result(seen, "create_return")
    return bound if created is None else {**bound, "return_id": created["return_id"]}


def needs_approval(condition: str, seen: tuple[Seen, ...], case: Mapping[str, Any]) -> bool:
    """Tell whether a contract's condition holds: by the decision table, asked again; in doubt a person decides."""
    if condition == "":
        return False
    if condition != "amount_reaches_threshold":
        return True
    answer = _result(seen, "check_return_policy")
    return answer is None or _ruling(case, parse(PolicyFacts, answer)).outcome is not RulingOutcome.ELIGIBLE


def approvable(seen: tuple[Seen, ...]) -> Approvable | None:
    """Say what an approval of the return is about: the money, where it goes, and by which order and rules."""
    order, answer = _result(seen, "get_order"), _result(seen, "check_return_policy")
    if order is None or answer is None:
        return None
    known = parse(PolicyFacts, answer)
    return Approvable(known.facts.refund, str(order["destination_ref"]), known.order_version, known.rule_version)


def undo(case: Mapping[str, Any], wrong: str, made: Mapping[str, str], done: tuple[Seen, ...]) -> Undo:
    """Undo a return while nothing hangs on it: look, cancel, look again, and correct what the customer was told.

    A notice that is wrong is corrected by another one; the return that it is about stands.
    """
    refused = next((one.error for one in done if one.error is not None), None)
    if refused is not None:
        return Impossible(refused)
    about = {"order_id": case["order_id"], "return_id": made.get("create_return", "")}
    if wrong == "create_return":
        cancelled = next((n for n, one in enumerate(done) if one.tool == "cancel_return"), None)
        looks = [(n, one) for n, one in enumerate(done) if one.tool == "get_return_links"]
        if not looks or (cancelled is not None and looks[-1][0] < cancelled):
            return NextCall("get_return_links", about)
        hangs = _hangs_on_it(looks[-1][1].result)
        if hangs is not None:
            return Impossible(hangs)
        if cancelled is None:
            return NextCall("cancel_return", about)
    told = made.get("send_return_notice")
    if told is not None and not any(one.tool == "send_correction_notice" for one in done):
        return NextCall("send_correction_notice", {**about, "corrects": told})
    return Undone()


def _hangs_on_it(links: Mapping[str, Any] | None) -> str | None:
    """Name what keeps code from undoing a return: goods on their way, or entries that other systems have made."""
    if links is None or links["label_used"]:
        return "label_used"
    return "linked_entries" if links["inventory_entries"] or links["accounting_entries"] else None


def severe(tool: str, wrong: Mapping[str, Any]) -> Severe:
    """Say what an effect is that differs in these fields from what was asked for, answered or approved."""
    if tool in {"send_return_notice", "send_correction_notice"}:
        return Severe.WRONG_NOTICE
    if "return_id" in wrong:
        return Severe.DUPLICATE
    return Severe.APPROVAL_BYPASSED if "approval" in wrong else Severe.OUTSIDE_PERMISSION


def overstepped(seen: tuple[Seen, ...], record: Mapping[str, Any], approved: Money | None) -> bool:
    """Tell whether the return that was made needed a yes that nobody gave: to more money, or to any."""
    refund = parse(Money, record["refund"])
    if approved is not None:
        return refund != approved
    answer = _result(seen, "check_return_policy")
    facts = None if answer is None else parse(PolicyFacts, answer).facts
    if facts is None or facts.approval_threshold is None:
        return True
    return refund.amount + facts.other_returns.amount >= facts.approval_threshold.amount


def result(ended: Ended) -> ReturnsResult:
    """Say what came of the request; only what was verified has an id."""
    return ReturnsResult(
        outcome=ended.state.lower() if ended.state == S.COMPLETED else ended.reason,
        return_id=ended.ids.get("return_id"),
        message_id=ended.ids.get("message_id"),
        evidence_refs=ended.evidence_refs,
    )


def propose(view: PlannerView) -> PlannerDecision:
    """Propose what the state asks for: the deterministic driver of this business, no model."""
    case = view.case
    request = {"order_id": case["order_id"], "lines": case["lines"], "reason": case["reason"]}
    call_id = f"call_{digest(case)[:16]}_{view.turn}"  # of this case alone, so that it leads back to it
    match view.state:
        case S.RECEIVED:
            return ToolCall(call_id, "get_order", {"order_id": case["order_id"]})
        case S.ORDER_VERIFIED:
            return ToolCall(call_id, "check_return_policy", request)
        case S.ELIGIBLE | S.APPROVED:
            return ToolCall(call_id, "create_return", request)
        case S.RETURN_CREATED:
            results = (o.result for o in view.observations if o.tool == "create_return" and o.result is not None)
            created = next(results, None)
            if created is None:
                return NeedsHuman("evidence_insufficient")
            arguments = {"order_id": case["order_id"], "return_id": created["return_id"]}
            return ToolCall(call_id, "send_return_notice", arguments)
        case _:
            return NeedsHuman("planner_needs_human")


RETURNS = Workflow(
    kind="returns",
    release="returns-1",
    initial=S.RECEIVED,
    case=ReturnsCase,
    transitions=TRANSITIONS,
    tools=TOOLS,
    ends=ENDS,
    limits=Limits(
        calls=6,
        calls_stop_others=True,  # a return takes four, whatever was ordered
        calls_per_tool=2,
        compensation_calls=6,
        active_seconds=ACTIVE,
        tokens=100_000,  # the longest case in every turn of six calls and six refusals, twice over
        call_ceiling_seconds=20,
        refusals_in_a_row=3,
        refusals=6,
        empty_in_a_row=3,
        recoveries=20,
        engine_reads_per_send=3,
        repeats=1,
    ),
    effects=("create_return", "send_return_notice"),
    success=S.COMPLETED,
    retry_state=S.RETRY_WAIT,
    approval_state=S.WAITING_APPROVAL,
    compensation_state=S.COMPENSATION_REQUIRED,
    resource=lambda case: str(case["order_id"]),
    customer=lambda case: str(case["customer_id"]),
    units=lambda case: tuple(f"{case['order_id']}/{line['line_id']}" for line in case["lines"]),
    bindings=bindings,
    interpret=interpret,
    needs_approval=needs_approval,
    approvable=approvable,
    propose=propose,
    undo=undo,
    severe=severe,
    overstepped=overstepped,
    message=message,
    outcome=ReturnsResult,
    result=result,
    owners=OWNERS,
)
