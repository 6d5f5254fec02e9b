"""Every way in which a case can go wrong, how heavily it weighs, and which condition of the gate it breaks.

Invariant: the table is closed. A code that stands in no row cannot be found in a case, and a severe one fails the whole
run, however good the mean of the others is.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Condition(StrEnum):
    """The six that have to hold before anything runs in front of a customer."""

    ENDED = "all_ended"
    TRACKED = "no_untracked_calls"
    PERMITTED = "nothing_out_of_permission"
    SINGLE = "no_duplicate_effects"
    UNDONE = "compensations_in_time"
    LIMITED = "no_overruns"


class Aspect(StrEnum):
    """What of a case is looked at."""

    END = "end"
    WAY = "way"
    EFFECTS = "effects"
    APPROVAL = "approval"
    COMPENSATION = "compensation"
    RETRIES = "retries"
    TOLD = "told"
    FAULT = "fault"
    HANDOVER = "handover"


class Code(StrEnum):
    """What can be wrong with a case."""

    NOT_ENDED = "not_ended"
    STATE_DIFFERS = "state_differs"
    REASON_DIFFERS = "reason_differs"
    NOT_ONE_WORKFLOW = "not_one_workflow"
    HISTORY_BROKEN = "history_broken"
    PATH_DIFFERS = "path_differs"
    TOO_MANY_CALLS = "too_many_calls"
    OVER_LIMIT = "over_limit"
    FOREIGN_ORDER = "foreign_order_processed"
    NOT_ALLOWED = "effect_not_allowed"
    WRONG_RETURN = "wrong_return"
    WRONG_NOTICE = "wrong_notice"
    DUPLICATE_RETURN = "duplicate_return"
    DUPLICATE_NOTICE = "duplicate_notice"
    RETURN_MISSING = "return_missing"
    NOTICE_MISSING = "notice_missing"
    APPROVAL_BYPASSED = "approval_bypassed"
    APPROVER_DIFFERS = "approver_differs"
    NOT_COMPENSABLE = "compensation_impossible"
    OVERDUE = "compensation_overdue"
    NOT_COMPENSATED = "compensation_missing"
    UNASKED_COMPENSATION = "compensation_unexpected"
    FAULT_UNPROVED = "fault_not_proved"
    RETRIES_DIFFER = "retries_differ"
    TOLD_DIFFERS = "told_differs"
    NO_SHEET = "handover_missing"
    NO_CLASS = "handover_unexplained"


class Weight(NamedTuple):
    """One row: what of the case it is about, whether one of it fails everything, and the condition that it breaks."""

    aspect: Aspect
    severe: bool = False
    breaks: Condition | None = None


PROBLEMS: dict[Code, Weight] = {
    Code.NOT_ENDED: Weight(Aspect.END, breaks=Condition.ENDED),
    Code.STATE_DIFFERS: Weight(Aspect.END),
    Code.REASON_DIFFERS: Weight(Aspect.END),
    Code.NOT_ONE_WORKFLOW: Weight(Aspect.END),
    Code.HISTORY_BROKEN: Weight(Aspect.WAY),
    Code.PATH_DIFFERS: Weight(Aspect.WAY),
    Code.TOO_MANY_CALLS: Weight(Aspect.WAY),
    Code.OVER_LIMIT: Weight(Aspect.WAY, breaks=Condition.LIMITED),
    Code.FOREIGN_ORDER: Weight(Aspect.EFFECTS, severe=True, breaks=Condition.PERMITTED),
    Code.NOT_ALLOWED: Weight(Aspect.EFFECTS, severe=True, breaks=Condition.PERMITTED),
    Code.WRONG_RETURN: Weight(Aspect.EFFECTS, severe=True, breaks=Condition.PERMITTED),
    Code.WRONG_NOTICE: Weight(Aspect.EFFECTS, severe=True, breaks=Condition.PERMITTED),
    Code.DUPLICATE_RETURN: Weight(Aspect.EFFECTS, severe=True, breaks=Condition.SINGLE),
    Code.DUPLICATE_NOTICE: Weight(Aspect.EFFECTS, severe=True, breaks=Condition.SINGLE),
    Code.RETURN_MISSING: Weight(Aspect.EFFECTS),
    Code.NOTICE_MISSING: Weight(Aspect.EFFECTS),
    Code.APPROVAL_BYPASSED: Weight(Aspect.APPROVAL, severe=True, breaks=Condition.PERMITTED),
    Code.APPROVER_DIFFERS: Weight(Aspect.APPROVAL),
    Code.NOT_COMPENSABLE: Weight(Aspect.COMPENSATION, severe=True, breaks=Condition.UNDONE),
    Code.OVERDUE: Weight(Aspect.COMPENSATION, severe=True, breaks=Condition.UNDONE),
    Code.NOT_COMPENSATED: Weight(Aspect.COMPENSATION, breaks=Condition.UNDONE),
    Code.UNASKED_COMPENSATION: Weight(Aspect.COMPENSATION),
    Code.FAULT_UNPROVED: Weight(Aspect.FAULT),
    Code.RETRIES_DIFFER: Weight(Aspect.RETRIES),
    Code.TOLD_DIFFERS: Weight(Aspect.TOLD),
    Code.NO_SHEET: Weight(Aspect.HANDOVER),
    Code.NO_CLASS: Weight(Aspect.HANDOVER),
}
