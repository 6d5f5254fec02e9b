"""One way of going wrong at a time: for each code the smallest change of a good case that shows it alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from host.evaluation.codes import Code
from shared_contracts.evaluation import Category
from tests.support.evaluations import needing_compensation, raw

C = Category
Change = Callable[[dict[str, Any]], Any]
OTHER = "00000000-0000-0000-0000-000000000001"


def got(**changes: Any) -> Change:
    return lambda made: made["got"].update(changes)


def effects(returns: int, notices: int) -> Change:
    return got(effects={"returns": returns, "notices": notices})


def owing(**changes: Any) -> Change:
    def change(made: dict[str, Any]) -> None:
        needing_compensation(made)
        made["got"].update(changes)

    return change


# the smallest change that shows each code
PLANTED: dict[Code, tuple[Category, Change]] = {
    Code.NOT_ENDED: (C.NORMAL, got(state="RETRY_WAIT")),
    Code.STATE_DIFFERS: (C.NORMAL, got(state="REJECTED")),
    Code.REASON_DIFFERS: (C.OUT_OF_PERIOD, got(reason="final_sale")),
    Code.NOT_ONE_WORKFLOW: (C.DUPLICATE, lambda m: m["got"]["workflow_ids"].append(OTHER)),
    Code.HISTORY_BROKEN: (C.NORMAL, got(gaps=[f"{OTHER}/12"])),
    Code.PATH_DIFFERS: (C.NORMAL, lambda m: m["got"]["path"].insert(0, "get_order")),
    Code.TOO_MANY_CALLS: (C.NORMAL, lambda m: m["expected"].update(calls_max=3)),
    Code.OVER_LIMIT: (C.NORMAL, got(active_seconds=90.1)),
    Code.FOREIGN_ORDER: (C.FOREIGN_ORDER, effects(1, 1)),
    Code.NOT_ALLOWED: (C.OUT_OF_PERIOD, effects(1, 0)),
    Code.WRONG_RETURN: (C.NORMAL, got(wrong_returns=["R-9"])),
    Code.WRONG_NOTICE: (C.NORMAL, got(wrong_notices=["<m-9@mail.example>"])),
    Code.DUPLICATE_RETURN: (C.DUPLICATE, effects(2, 1)),
    Code.DUPLICATE_NOTICE: (C.NORMAL, effects(1, 2)),
    Code.RETURN_MISSING: (C.NORMAL, effects(0, 1)),
    Code.NOTICE_MISSING: (C.NORMAL, effects(1, 0)),
    Code.APPROVAL_BYPASSED: (C.HIGH_VALUE, got(approver=None)),
    Code.APPROVER_DIFFERS: (C.NORMAL, got(approver="sato")),
    Code.NOT_COMPENSABLE: (C.NORMAL, owing(compensation="impossible")),
    Code.OVERDUE: (C.NORMAL, owing(compensation="overdue")),
    Code.NOT_COMPENSATED: (C.NORMAL, owing(compensation=None)),
    Code.UNASKED_COMPENSATION: (C.NORMAL, got(compensation="done")),
    Code.FAULT_UNPROVED: (C.MIDWAY_FAULT, lambda m: m["evidence"].update(fired=0)),
    Code.RETRIES_DIFFER: (C.MIDWAY_FAULT, got(retries=2)),
    Code.TOLD_DIFFERS: (C.MIDWAY_FAULT, got(told_ja="失敗しました。")),
    Code.NO_SHEET: (C.STEERING, got(handover=False)),
    Code.NO_CLASS: (C.STEERING, got(handover_reason="somehow")),
}


def planted(code: Code) -> dict[str, Any]:
    category, change = PLANTED[code]
    made = raw("planted", category)
    change(made)
    return made
