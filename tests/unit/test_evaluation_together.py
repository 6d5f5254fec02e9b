"""The data set and the gate fit together: a run that meets every expectation of the 120 cases passes."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import uuid5

from host.evaluation.counted import Rate
from host.evaluation.gate import COUNTS, gate
from host.evaluation.metrics import MAIN
from host.evaluation.score import SEEN_AT, scored
from shared_contracts.base import dump, parse
from shared_contracts.evaluation import EvaluationCase
from shared_contracts.evaluation_report import Entry, EvaluationReport, FaultEvidence, Got
from tests.support.evaluation_set import CASES
from tests.support.evaluations import SPACE, document, limits, raw

WRITTEN = {"get_order": 2, "check_return_policy": 3, "create_return": 4, "send_return_notice": 5}


def reached(case: EvaluationCase) -> list[str]:
    """Name the states that a case passes: one for each tool that succeeds, an approval if it is asked for, its end."""
    way = list(MAIN[: max((WRITTEN[tool] for tool in case.expected.path), default=1)])
    if case.decision is not None:
        approved = ["APPROVED"] if case.decision.verdict == "approve" else []
        way[3:3] = ["WAITING_APPROVAL", *approved]
    return way if case.expected.state in way else [*way, case.expected.state]


def as_expected(case: EvaluationCase) -> Entry:
    due, person = case.expected, case.expected.state in {"NEEDS_REVIEW", "EXPIRED"}
    seen: dict[str, Any] = {
        "workflow_ids": [str(uuid5(SPACE, case.id))], "state": due.state, "reason": due.reason,
        "reached": reached(case), "path": list(due.path), "calls": due.calls_max, "approver": due.approver,
        "effects": dump(due.effects), "undone": dump(due.undone),
        "compensation": "done" if due.compensation else None, "handover": True if person else None,
        "handover_reason": "external_fault" if due.state == "NEEDS_REVIEW" else None,
        "told_ja": "" if case.fault is None else f"お客様へ。{case.fault.told_ja}。",
        "retries": 0 if case.fault is None else case.fault.retries,
    }  # fmt: skip
    return scored(case, parse(Got, raw("as expected")["got"] | seen), fired(case), limits())


def fired(case: EvaluationCase) -> FaultEvidence | None:
    if case.fault is None:
        return None
    seen, times = min(SEEN_AT[case.fault.kind]), case.fault.times
    details = [f"{case.id}: {n} of {times}" for n in range(1, times + 1)]
    return parse(FaultEvidence, {"seen": seen, "fired": times, "details": details})


def test_a_run_that_meets_every_expectation_of_the_data_set_passes():
    entries = tuple(map(as_expected, CASES))
    assert {entry.id: entry.problems for entry in entries if entry.problems} == {}
    view = gate(parse(EvaluationReport, document([dump(entry) for entry in entries])))
    assert (view.said, view.passed) == ("passed", True)
    assert view.measures.rates.matched == Rate(value=100.0, of=120, n=120)
    for rate in (view.measures.rates.automatic, view.measures.rates.handed_over):
        assert rate.n > 0
        assert rate.value == 100.0
    for rate in (view.measures.rates.duplicates, view.measures.rates.over_automated, view.measures.rates.over_handed):
        assert rate.n > 0
        assert rate.value == 0.0


def test_the_gate_asks_for_the_counts_that_the_data_set_has():
    assert Counter(case.category for case in CASES) == COUNTS
