"""Which code is a deviation, of which part, and why what looks done is not: tables, one per speaker. Pure.

    the planner's refused output · an answer of the tool server · a call's own end · a case's end · both sides compared

Invariant: every code of ours that can be recorded stands in its table; None is no deviation but the business as it is
meant.
"""
# ruff: noqa: E501 - one row per code reads as a table

from __future__ import annotations

from dataclasses import dataclass

from host.domain.authorization import NO_RULE, RULES
from host.domain.reasons import HANDOVER
from host.evaluation.diagnosis import Cause, Label
from host.evaluation.reconcile import MEANINGS, Why
from host.runbook_texts import AUTHORIZATION, explained
from shared_contracts.errors import ERRORS, Category
from shared_contracts.tools import TOOLS

_L, _C = Label, Cause


@dataclass(frozen=True, slots=True)
class Sorted:
    """A deviation's part, its cause where there is one, and what it means in one sentence."""

    label: Label
    cause: Cause | None
    said: str


# What the planner gave and the engine refused, beside the rules' own reasons.
_OUTPUT: dict[str, Sorted] = {
    "arguments_invalid": Sorted(_L.CANDIDATE_GENERATION, _C.VAGUE_DESCRIPTION, "The proposed arguments do not fit the tool's schema."),
    "call_id_invalid": Sorted(_L.CANDIDATE_GENERATION, _C.ENGINE_DROPPED_THE_CALL, "The proposed call was dropped, since its id cannot be kept."),
    "call_id_reused": Sorted(_L.CANDIDATE_GENERATION, _C.ENGINE_DROPPED_THE_CALL, "The proposed call was dropped, since its id is an earlier call's."),
    "several_calls": Sorted(_L.CANDIDATE_GENERATION, _C.ENGINE_DROPPED_THE_CALL, "Several calls came in one turn, and all of them were dropped."),
    "cut_off": Sorted(_L.CANDIDATE_GENERATION, _C.ENGINE_DROPPED_THE_CALL, "The planner's answer was cut off, and all of it was dropped."),
    "no_call": Sorted(_L.CANDIDATE_GENERATION, _C.NOT_CHOSEN, "The planner answered in words and chose no tool."),
    "unbacked_completion_claim": Sorted(_L.CANDIDATE_GENERATION, _C.NOT_CHOSEN, "The planner said that the task is done, and nothing that was observed says so."),
    "malformed_turn": Sorted(_L.CANDIDATE_GENERATION, None, "The planner's answer could not be read."),
    "not_a_decision": Sorted(_L.CANDIDATE_GENERATION, None, "What the planner gave is neither a call nor an answer nor a hand-over."),
    "planner_failed": Sorted(_L.CANDIDATE_GENERATION, None, "The planner broke down."),
}  # fmt: skip
_UNEXPOSED = frozenset({"not_in_catalogue", "tool_not_in_state", "scope_missing", "tool_unavailable"})
# Not a denial, or one that is meant: a kind that only drafts, a stop, a person who has to agree.
_MEANT = frozenset(
    {"draft_only", "reads_stopped", "updates_stopped", "approval_required", "write_allowed", "read_allowed"}
)
DENIALS: dict[str, Sorted | None] = {
    reason: None if reason in _MEANT else Sorted(
        _L.CONNECTION if reason == "tool_unavailable" else _L.DECISION_BOUNDARY,
        _C.TOOL_NOT_EXPOSED if reason in _UNEXPOSED else None,
        AUTHORIZATION[reason][0],
    )
    for reason in (*(rule.reason for rule in RULES), NO_RULE.reason)
}  # fmt: skip
PLANNER: dict[str, Sorted | None] = {**DENIALS, **_OUTPUT}

_BY_CATEGORY: dict[Category, Label | None] = {
    Category.CONTRACT: _L.CANDIDATE_GENERATION,
    Category.AUTHORIZATION: _L.DECISION_BOUNDARY,
    Category.BUSINESS: None,  # the rules' own answer
    Category.TRANSIENT: _L.CONNECTION,
    Category.PROTOCOL: _L.CONNECTION,
    Category.UNKNOWN_EFFECT: _L.CONNECTION,
}
_BY_CODE: dict[str, Label] = {
    "unknown_tool": _L.DECISION_BOUNDARY,
    "key_reused": _L.IDEMPOTENCY,
    "attempt_superseded": _L.IDEMPOTENCY,
    "token_used": _L.IDEMPOTENCY,
    "in_progress": _L.IDEMPOTENCY,
    "notice_rejected": _L.EXTERNAL_NOTIFICATION,
    "delivery_unknown": _L.EXTERNAL_NOTIFICATION,
}
_HIDDEN = frozenset({"unknown_tool", "scope_missing", "tool_disabled", "version_mismatch"})


def _answer(code: str) -> Sorted | None:
    label = _BY_CODE.get(code, _BY_CATEGORY[ERRORS[code].category])
    cause = _C.TOOL_NOT_EXPOSED if code in _HIDDEN else None
    return None if label is None else Sorted(label, cause, ERRORS[code].meaning)


# How a request or a call ended; the engine's own words come last.
ANSWERS: dict[str, Sorted | None] = {
    **{code: _answer(code) for code in ERRORS},
    "cut_off": Sorted(_L.PERSISTENCE, None, "This host died while the request was under way, so that its answer was not kept."),
    "not_success": Sorted(_L.PERSISTENCE, _C.FAILURE_DELIVERED_AS_SUCCESS, "The answer came as a success and does not meet the contract's condition of one."),
    "foreign_answer": Sorted(_L.CONNECTION, _C.FAILURE_DELIVERED_AS_SUCCESS, "The answer is about another object than the one that was asked for."),
    "wrong_effect": Sorted(_L.PERSISTENCE, _C.FAILURE_DELIVERED_AS_SUCCESS, "What was made is not what was asked for."),
    "contract_changed": Sorted(_L.PERSISTENCE, None, "The tool's contract has changed since the call was stored."),
    "proved_absent": Sorted(_L.CONNECTION, None, "No answer came, a look-up proved that nothing was made, and no send is left."),
    "overdue": Sorted(_L.PERSISTENCE, None, "What was made was not undone in its time."),
    "expired": None,  # nobody agreed in time
    "approval_denied": None,
    "withdrawn": None,
}  # fmt: skip

# Why the case ended, where nothing before it deviated.
_ENDS: dict[str, tuple[Label, Cause | None] | None] = {
    "undecidable": None,
    "out_of_scope": None,
    "planner_needs_human": None,
    "data_missing": None,
    "evidence_insufficient": None,
    "dangerous_goods": None,
    "final_sale_defect": None,
    "exception_claimed": None,
    "create_rejected": None,
    "linked_entries": None,
    "compensated": None,
    "denied": None,
    "planner_exhausted": (_L.CANDIDATE_GENERATION, None),
    "model_refusal": (_L.CANDIDATE_GENERATION, _C.NOT_CHOSEN),
    "no_tool_left": (_L.DECISION_BOUNDARY, _C.TOOL_NOT_EXPOSED),
    "attempts_exhausted": (_L.CONNECTION, None),
    "retry_suspended": (_L.CONNECTION, None),
    "protocol": (_L.CONNECTION, None),
    "contract_broken": (_L.CONNECTION, None),
    "unknown_effect": (_L.CONNECTION, None),
    "unsettled_elsewhere": (_L.IDEMPOTENCY, None),
    "recoveries_exhausted": (_L.PERSISTENCE, None),
    "version_changed": (_L.PERSISTENCE, None),
    "overdue": (_L.PERSISTENCE, None),
    "wrong_effect": (_L.PERSISTENCE, _C.FAILURE_DELIVERED_AS_SUCCESS),
    "unverified_effect": (_L.PERSISTENCE, _C.ACCEPTANCE_READ_AS_COMPLETION),
}


def _end(reason: str) -> Sorted | None:
    if reason in ERRORS:
        return ANSWERS[reason]
    if reason in DENIALS:
        return DENIALS[reason]
    found = _ENDS[reason]
    return None if found is None else Sorted(*found, explained(reason)[0])


ENDS: dict[str, Sorted | None] = {reason: _end(reason) for reason in HANDOVER}

_BELIEVED = frozenset({Why.NOT_LOGGED, Why.NOT_MADE, Why.OTHER_NUMBER, Why.NOT_DONE})
_FOUND: dict[Why, Label] = {
    Why.MADE_TWICE: _L.IDEMPOTENCY, Why.SECOND_USE: _L.IDEMPOTENCY, Why.OTHER_CALL: _L.DECISION_BOUNDARY,
}  # fmt: skip
FINDINGS: dict[Why, Sorted] = {
    why: Sorted(
        _FOUND.get(why, _L.PERSISTENCE),
        _C.FAILURE_DELIVERED_AS_SUCCESS if why in _BELIEVED else None,
        f"{MEANINGS[why][0].upper()}{MEANINGS[why][1:]}.",
    )
    for why in Why
}
PARTED: dict[str, Sorted] = {
    "sent_without_intent": Sorted(_L.PERSISTENCE, None, "A write was sent, and the ledger holds no intent of it."),
    "intent_without_send": Sorted(_L.PERSISTENCE, _C.ENGINE_DROPPED_THE_CALL, "The ledger holds an intent that was never sent."),
    "verified_without_effect": Sorted(_L.PERSISTENCE, _C.ACCEPTANCE_READ_AS_COMPLETION, "The call is called verified, and its effect is not."),
    "effect_without_verified_call": Sorted(_L.PERSISTENCE, None, "The effect is verified, and its call is not."),
    "failed_with_effect_in_doubt": Sorted(_L.PERSISTENCE, None, "The call is called failed, and nobody knows of its effect."),
}  # fmt: skip
BEHIND = Sorted(
    _L.PERSISTENCE, None, "Every effect is verified, and the case is not where they should have brought it."
)
UNSENT = Sorted(
    _L.PERSISTENCE, _C.ENGINE_DROPPED_THE_CALL, "The call was taken, and the case ended without its being sent."
)
# A claim while something that was accepted is not known to be done.
ACCEPTED = Sorted(
    _L.CANDIDATE_GENERATION,
    _C.ACCEPTANCE_READ_AS_COMPLETION,
    "The planner said that the task is done, and what had been accepted was not yet known to be done.",
)
REFUSED = Sorted(_L.CANDIDATE_GENERATION, None, "What the planner gave was refused.")
INVENTED = Sorted(_L.DECISION_BOUNDARY, _C.VAGUE_DESCRIPTION, "The planner named a tool that there is not.")
HIDDEN = Sorted(_L.DECISION_BOUNDARY, _C.TOOL_NOT_EXPOSED, "The planner named a tool that was not offered to it.")


def of_output(code: str, tool: str | None) -> Sorted | None:
    """Sort what was refused; which tool was named tells whether there is such a one."""
    if code == "unknown_tool":
        return HIDDEN if tool in TOOLS else INVENTED
    return PLANNER.get(code, REFUSED)  # an adapter may bring codes of its own
