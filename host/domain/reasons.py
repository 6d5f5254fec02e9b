"""Why a case went to a person: one total map from reason code to one of five classes, and the end that it has."""

from __future__ import annotations

from enum import StrEnum

from host.domain.control import Control
from shared_contracts.errors import ERRORS, Category


class Handover(StrEnum):
    """The five classes; the most frequent is what to improve first."""

    UNDECIDED = "specification_undecided"
    DATA_MISSING = "data_missing"
    PERMISSION = "permission"
    RULE_EXCEPTION = "rule_exception"
    EXTERNAL_FAULT = "external_fault"


_H = Handover
HANDOVER: dict[str, Handover] = {
    "undecidable": _H.UNDECIDED,
    "out_of_scope": _H.UNDECIDED,
    "limit": _H.UNDECIDED,
    "tool_not_in_state": _H.UNDECIDED,
    "repeated_action": _H.UNDECIDED,
    "planner_exhausted": _H.UNDECIDED,
    "planner_needs_human": _H.UNDECIDED,
    "model_refusal": _H.UNDECIDED,
    "version_changed": _H.DATA_MISSING,
    "evidence_insufficient": _H.DATA_MISSING,
    "data_missing": _H.DATA_MISSING,
    "overdue": _H.EXTERNAL_FAULT,
    "dangerous_goods": _H.RULE_EXCEPTION,
    "final_sale_defect": _H.RULE_EXCEPTION,
    "exception_claimed": _H.RULE_EXCEPTION,
    "create_rejected": _H.RULE_EXCEPTION,
    "denied": _H.PERMISSION,
    "foreign_tenant": _H.PERMISSION,
    "foreign_resource": _H.PERMISSION,
    "foreign_arguments": _H.PERMISSION,
    "scope_missing": _H.PERMISSION,
    "not_in_catalogue": _H.PERMISSION,
    "draft_only": _H.PERMISSION,
    "tool_unavailable": _H.PERMISSION,
    "tool_disabled": _H.PERMISSION,
    "no_tool_left": _H.PERMISSION,
    "no_rule": _H.PERMISSION,
    "attempts_exhausted": _H.EXTERNAL_FAULT,
    "recoveries_exhausted": _H.EXTERNAL_FAULT,
    "retry_suspended": _H.EXTERNAL_FAULT,
    "unknown_effect": _H.EXTERNAL_FAULT,
    "unsettled_elsewhere": _H.EXTERNAL_FAULT,
    "unverified_effect": _H.EXTERNAL_FAULT,
    "protocol": _H.EXTERNAL_FAULT,
    "contract_broken": _H.EXTERNAL_FAULT,
    "wrong_effect": _H.EXTERNAL_FAULT,
    "compensated": _H.EXTERNAL_FAULT,
    "linked_entries": _H.RULE_EXCEPTION,
}

# The only reasons that a planner may give for handing over; any other word of its is `planner_needs_human`.
FROM_PLANNER = frozenset(
    {"planner_needs_human", "model_refusal", "evidence_insufficient", "data_missing", "undecidable", "out_of_scope"}
)

_BY_CATEGORY: dict[Category, Handover] = {
    Category.CONTRACT: _H.UNDECIDED,
    Category.AUTHORIZATION: _H.PERMISSION,
    Category.BUSINESS: _H.RULE_EXCEPTION,
    Category.TRANSIENT: _H.EXTERNAL_FAULT,
    Category.PROTOCOL: _H.EXTERNAL_FAULT,
    Category.UNKNOWN_EFFECT: _H.EXTERNAL_FAULT,
}
HANDOVER |= {code: _BY_CATEGORY[row.category] for code, row in ERRORS.items() if code not in HANDOVER}


def handover_class(reason: str) -> Handover:
    """Give the class of a reason; an unlisted one is a bug, which a test finds before a person does."""
    return HANDOVER[reason]


def review_end(reason: str) -> Control:
    """Tell which end a review reason has: ours or the planner's defect is `failed`, all else needs a person."""
    handover_class(reason)
    return Control.FAILED if reason in {"planner_exhausted", "contract_broken"} else Control.NEEDS_HUMAN
