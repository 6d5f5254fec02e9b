"""The evaluation's cases once more for a tool server from which every update was removed.

Invariant: what the rules refuse or leave to a person ends as before, and every other case ends with a person, a draft
and nothing done. The rule is this one; the rest of each expectation stays as it was written by hand.
"""

from __future__ import annotations

from typing import Any, Final

from shared_contracts.base import dump, parse
from shared_contracts.evaluation import NOTHING, Category, EvaluationCase
from shared_contracts.evaluation_cases import CaseSet, case_set
from shared_contracts.tools import TOOLS

UPDATES: Final = frozenset(name for name, tool in TOOLS.items() if tool.writes)
REASON: Final = "tool_unavailable"
_A_PERSON: Final = "担当者が確認"


def without_updates(cases: CaseSet) -> CaseSet:
    """Give the same requests with the ends that they have then; a fault of what is not called is left out."""
    return case_set(tuple(_drafted(case) for case in cases.cases))


def _drafted(case: EvaluationCase) -> EvaluationCase:
    stays = case.fault is not None and case.fault.tool is not None and case.fault.tool not in UPDATES
    gone = case.fault is not None and not stays
    if not gone and case.decision is None and not UPDATES & set(case.expected.path):
        return case
    document = dump(case)
    document |= _with_person(document["expected"])
    if stays:
        document["fault"]["told_ja"] = _A_PERSON
    if gone:
        struck = case.category is Category.MIDWAY_FAULT
        document |= {"fault": None, "category": Category.NORMAL if struck else case.category}
    return parse(EvaluationCase, document)


def _with_person(expected: dict[str, Any]) -> dict[str, Any]:
    """Nobody is asked for a yes to what cannot be done."""
    reads = [tool for tool in expected["path"] if tool not in UPDATES]
    return {
        "decision": None, "automatable": False, "needs_human": True, "has_side_effect": False,
        "needs_compensation": False, "undone_by": None,
        "expected": expected | {
            "state": "NEEDS_REVIEW", "reason": REASON, "path": reads, "effects": dump(NOTHING),
            "approver": None, "compensation": False, "undone": dump(NOTHING),
        },
    }  # fmt: skip
