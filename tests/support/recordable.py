"""A report by which this very program can be recorded: its own cases, each as expected, and every tool tested."""

from __future__ import annotations

from typing import Any
from uuid import uuid5

from host.commands.release_report import own_of
from host.evaluation.anothers import Own
from host.evaluation.score import FOR_A_PERSON, SEEN_AT
from host.workflows.catalogue import CURRENT
from shared_contracts.base import dump
from shared_contracts.evaluation import EvaluationCase
from shared_contracts.evaluation_report import EvaluationReport
from tests.support.evaluations import SPACE, conditions, raw, report


def recordable(**changes: Any) -> EvaluationReport:
    """Make it, with what is given in the place of its own."""
    own = own_of(CURRENT["returns"])
    made: dict[str, Any] = {
        "build": own.build,
        "conditions": conditions(**own.pinned, tools=own.tools, dataset_sha256=own.cases.sha256),
        "limits": dump(own.limits),
        "contract_tests": with_tests(own),
    }
    return report([_as_expected(case) for case in own.cases.cases], **(made | changes))


def with_tests(own: Own, **changes: Any) -> list[dict[str, Any]]:
    """Give the contract tests of every tool, with the first one's changed."""
    made = [
        {"tool": name, "version": version, "build": own.build, "passed": own.tests, "of": own.tests}
        for name, version in own.updating.items()
    ]
    return [made[0] | changes, *made[1:]]


def _as_expected(case: EvaluationCase) -> dict[str, Any]:
    asked = dump(case)
    made = raw(case.id) | {name: asked[name] for name in raw(case.id) if name in asked}
    expected, got, fault = asked["expected"], made["got"], asked["fault"]
    retries = 0 if fault is None else fault["retries"]
    person = expected["state"] in FOR_A_PERSON
    approved = asked["decision"] is not None and asked["decision"]["verdict"] == "approve"
    got |= {name: expected[name] for name in ("state", "reason", "path", "effects", "undone", "approver")}
    got |= {
        "workflow_ids": [str(uuid5(SPACE, case.id))], "calls": len(expected["path"]) + retries, "retries": retries,
        "reached": ["RECEIVED", *(["APPROVED"] if approved else []), expected["state"]],
        "handover": True if person else None, "handover_reason": "rule_exception" if person else None,
        "compensation": "done" if expected["compensation"] else None,
    }  # fmt: skip
    if fault is not None:
        got["told_ja"] = fault["told_ja"]
        seen = [f"{fault['kind']} of {case.id}, {n}" for n in range(fault["times"])]
        made["evidence"] = {"seen": min(SEEN_AT[case.fault.kind]), "fired": len(seen), "details": seen}  # type: ignore[union-attr]
    return made
