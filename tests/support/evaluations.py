"""Reports of evaluations as tests want them: a whole one in which all is well, and the same with one thing changed."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

from host.evaluation.gate import COUNTS
from host.evaluation.score import problems
from shared_contracts.base import dump, parse
from shared_contracts.evaluation import NO_REQUEST, SIX, Category, FaultKind
from shared_contracts.evaluation_report import Entry, EvaluationReport, RunLimits

SPACE = UUID("00000000-0000-0000-0000-000000000005")
LIMITS = {"calls": 6, "refused_proposals": 6, "active_seconds": 90.0}
WAY = ("get_order", "check_return_policy", "create_return", "send_return_notice")
STATES = ("RECEIVED", "ORDER_VERIFIED", "ELIGIBLE", "RETURN_CREATED", "COMPLETED")
NONE = {"returns": 0, "notices": 0}
ONE = {"returns": 1, "notices": 1}
YES = {"by": "sato", "verdict": "approve"}
TOLD = "返品を受け付けました。"
FAULTS = (*(kind for kind in FaultKind if kind in SIX), FaultKind.NOTICE_FAILURE, FaultKind.TIMEOUT)
PLACES = {
    "approval_expiry": "clock", "notice_failure": "mail", "version_conflict": "database",
    "worker_killed": "process", "server_killed": "process", "database_restart": "process",
}  # fmt: skip
RATES = {
    "basis": "given", "currency": "JPY", "model_call": 0.0, "tool_call": 0.5, "retry": 0.25, "approver_minute": 60.0,
    "minutes_per_decision": 2.0, "compensation_call": 1.0,
}  # fmt: skip


def limits() -> RunLimits:
    return parse(RunLimits, LIMITS)


def raw(ident: str, category: Category = Category.NORMAL) -> dict[str, Any]:
    """A case that came to its end as the rules have it: as JSON, so that a test can change any of it."""
    made = _completed(ident, category)
    match category:
        case Category.HIGH_VALUE:
            _approve(made)
        case Category.OUT_OF_PERIOD:
            _rest(made, "REJECTED", "out_of_period", WAY[:2], STATES[:2])
        case Category.MISSING_ORDER | Category.FOREIGN_ORDER:
            _rest(made, "REJECTED", "order_not_found", (), STATES[:1])
        case Category.STEERING:
            _rest(made, "NEEDS_REVIEW", "out_of_scope", WAY[:2], STATES[:2])
            made["needs_human"], made["got"]["handover"] = True, True
            made["got"]["handover_reason"] = "specification_undecided"
        case Category.MIDWAY_FAULT:
            give_fault(made, FaultKind.RATE_LIMITED)
    return made


def _completed(ident: str, category: Category) -> dict[str, Any]:
    got = {
        "workflow_ids": [str(uuid5(SPACE, ident))], "state": "COMPLETED", "reason": "notice_verified",
        "gaps": [], "reached": list(STATES), "path": list(WAY), "calls": 4, "model_calls": 0, "refused_proposals": 0,
        "engine_reads": 2, "undoing_calls": 0, "retries": 0, "effects": dict(ONE), "undone": dict(NONE),
        "approver": None, "compensation": None, "wrong_returns": [], "wrong_notices": [], "handover": None,
        "handover_reason": None, "return_ids": [], "told_ja": TOLD, "seconds": 0.5, "active_seconds": 0.4,
    }  # fmt: skip
    expected = {
        "state": "COMPLETED", "reason": "notice_verified", "path": list(WAY), "calls_max": 6, "effects": dict(ONE),
        "approver": None, "compensation": False, "undone": dict(NONE),
    }  # fmt: skip
    return {
        "id": ident, "category": category.value, "automatable": True, "needs_human": False, "has_side_effect": True,
        "needs_compensation": False, "decision": None, "fault": None, "expected": expected, "got": got,
        "evidence": None, "problems": [],
    }  # fmt: skip


def _approve(made: dict[str, Any]) -> None:
    made |= {"automatable": False, "needs_human": True, "decision": dict(YES)}
    made["expected"]["approver"] = made["got"]["approver"] = "sato"
    made["got"]["reached"] = [*STATES[:3], "WAITING_APPROVAL", "APPROVED", *STATES[3:]]


def _rest(made: dict[str, Any], state: str, reason: str, path: tuple[str, ...], reached: tuple[str, ...]) -> None:
    made |= {"automatable": False, "has_side_effect": False}
    made["expected"] |= {"state": state, "reason": reason, "path": list(path), "effects": dict(NONE)}
    made["got"] |= {"state": state, "reason": reason, "path": list(path), "effects": dict(NONE), "calls": len(path)}
    made["got"]["reached"] = [*reached, state]


def give_fault(made: dict[str, Any], kind: FaultKind) -> None:
    """Let a fault happen to a case, that cost it one retry and is proved."""
    tool = None if kind in NO_REQUEST else "send_return_notice"
    made["fault"] = {"kind": kind.value, "tool": tool, "nth": 1, "times": 1, "retries": 1, "told_ja": TOLD}
    seen = PLACES.get(kind.value, "wire")
    made["evidence"] = {"seen": seen, "fired": 1, "details": [f"{kind.value} at {seen}, of {made['id']}"]}
    made["got"]["retries"], made["got"]["calls"] = 1, 5
    made["got"]["reached"] = [*STATES[:4], "RETRY_WAIT", STATES[4]]


def needing_compensation(made: dict[str, Any]) -> None:
    """Let a case have something to undo, and let it be undone in time."""
    made["needs_compensation"] = made["expected"]["compensation"] = True
    made["expected"]["undone"] = dict(ONE)
    made["got"] |= {"compensation": "done", "undoing_calls": 3, "undone": dict(ONE)}


def cases() -> list[dict[str, Any]]:
    """All hundred and twenty."""
    made = [raw(f"{category.value}-{n}", category) for category, count in COUNTS.items() for n in range(1, count + 1)]
    faulty = [one for one in made if one["category"] == "midway_fault"]
    for one, kind in zip(faulty, FAULTS, strict=True):
        give_fault(one, kind)
    needing_compensation(faulty[-1])
    return made


def struck() -> list[dict[str, Any]]:
    """Make a case of every fault."""
    made = [raw(f"fault-{kind.value}", Category.MIDWAY_FAULT) for kind in FaultKind]
    for one, kind in zip(made, FaultKind, strict=True):
        give_fault(one, kind)
    return made


def document(entries: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    conditions = {
        "dataset_sha256": "0" * 64, "seed": 7, "concurrency": 8, "order_snapshot": "2026-07-30", "policy": "policy-v12",
        "authz": "authz-v7", "workflow_release": "returns-1", "tools": dict.fromkeys(WAY, "1"),
        "approvals": {"create_return": "amount_reaches_threshold", "returns": "from ELIGIBLE"},
        "planner": "conformance", "model": "no model", "changed_component": None,
    }  # fmt: skip
    made = {
        "format": "kessai-evaluation/4", "scope": "pre_production", "made_at": "2026-08-01T09:00:00Z",
        "seconds": 30.0, "build": "0.1.0",
        "conditions": conditions, "rates": dict(RATES), "limits": dict(LIMITS), "contract_tests": [], "cases": entries,
        "compared": {"compared": 2000, "external": 0, "untracked": [], "missing": [], "duplicate": []},
        "stops": [], "stopped": [], "signature": "",
    }  # fmt: skip
    return made | changes


def entry(made: dict[str, Any]) -> Entry:
    """Read a case and score it, as whoever runs it does."""
    read = parse(Entry, made)
    return read.model_copy(update={"problems": problems(read, limits())})


def report(entries: list[dict[str, Any]] | None = None, **changes: Any) -> EvaluationReport:
    """Make a report; of all cases where none are named."""
    scored = [dump(entry(one)) for one in (cases() if entries is None else entries)]
    return parse(EvaluationReport, document(scored, **changes))


def conditions(**changes: Any) -> dict[str, Any]:
    """The conditions of a report, with some of them changed."""
    return {**document([])["conditions"], **changes}
