"""The cases stand where the rules have their edges, and what was written by hand is held against the decision table.

No expectation comes from here. Where the decision table and a row disagree, one of both is wrong, and a test says so.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, timedelta
from pathlib import Path

import pytest

from shared_contracts.evaluation import Category, FaultKind
from shared_contracts.returns import ReturnReason, RulingOutcome
from tests.support.evaluation_set import CASES, OF_THEIR_OWN, asked, facts, of, order_of, ruled, together

AUTHZ = json.loads((Path(__file__).parents[2] / "host" / "data" / "authz-v7.json").read_text("utf-8"))
# Of the decision table: the reason with which each row ends a case, or lets it go on.
ROWS = {
    1: {"order_not_found"},
    2: {"out_of_scope"},
    3: {"undecidable"},
    4: {"not_returnable"},
    5: {"already_returned"},
    6: {"dangerous_goods"},
    7: {"final_sale", "final_sale_defect"},
    8: {"out_of_period", "exception_claimed"},
    9: {"high_value"},
    10: {"eligible"},
}
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


def test_amounts_stand_on_both_sides_of_the_threshold_alone_and_with_earlier_returns():
    found = {(together(case), facts(case).other_returns.amount > 0, ruled(case)[1]) for case in OF_THEIR_OWN}
    for earlier in (False, True):
        assert ((49_999, "JPY"), earlier, "eligible") in found
        assert ((50_000, "JPY"), earlier, "high_value") in found
    assert ((35_000, "USD"), False, "high_value") in found
    below = {case.category for case in OF_THEIR_OWN if together(case) == (49_999, "JPY")}
    assert below == {Category.NORMAL, Category.DEFECTIVE}


def test_a_request_in_the_last_minute_of_its_window_and_one_in_the_minute_after_are_there():
    left = Counter[tuple[str, timedelta]]()
    for case in OF_THEIR_OWN:
        ends = [line.window_ends_at for line in facts(case).lines if line.window_ends_at is not None]
        if ends:
            left[case.expected.reason, min(ends) - asked(case)] += 1
    assert left["notice_verified", timedelta(minutes=1)] == 2
    assert left["out_of_period", timedelta()] == 3


def test_some_ends_would_be_others_if_days_were_counted_in_utc():
    found = set()
    for case in OF_THEIR_OWN:
        (line, *others) = order_of(case).lines
        if line.category == "shoes" and not others and line.delivered_at is not None:
            days = asked(case).astimezone(UTC).date() - line.delivered_at.astimezone(UTC).date()
            found.add((case.expected.state, days <= timedelta(days=30)))
    assert {("COMPLETED", False), ("REJECTED", True)} <= found


def test_the_cases_are_varied_like_life():
    normal = of(Category.NORMAL)
    known = [(case, facts(case), order_of(case)) for case in normal]
    assert sum(len(case.request["lines"]) > 1 for case in normal) >= 3
    assert sum(order.discount > 0 for _, _, order in known) >= 8
    assert sum(any(line.requested < line.left for line in found.lines) for _, found, _ in known) >= 8
    assert any(
        found.earlier_returns and all(line.requested == line.left for line in found.lines) for _, found, _ in known
    )
    categories = {line.category for case in OF_THEIR_OWN for line in order_of(case).lines}
    assert len(categories) >= 14
    assert {case.request["reason"] for case in CASES} == set(ReturnReason)
    assert {together(case)[1] for case in OF_THEIR_OWN} == {"JPY", "USD"}
    assert all(sum(case.tenant == "hoshi-jp" for case in of(category)) >= 1 for category in Category)
    english = [case for case in CASES if case.request["message"].isascii()]
    assert 15 <= len(english) <= 60
    assert len({case.request["message"] for case in CASES}) == len({case.why for case in CASES}) == 120


def test_every_row_of_the_decision_table_decides_a_case():
    reasons = {ruled(case)[1] for case in CASES}
    assert all(reasons & of_row for of_row in ROWS.values())


@each
def test_the_decision_table_over_the_shops_facts_agrees_with_what_was_written_by_hand(case):
    outcome, reason = ruled(case)
    end = case.expected
    match outcome:
        case RulingOutcome.REJECTED | RulingOutcome.NEEDS_REVIEW:
            assert (end.state, end.reason) == (outcome.upper(), reason)
            assert case.decision is None
        case RulingOutcome.APPROVAL:
            assert case.decision is not None
            ends = {"approve": "COMPLETED", "deny": "REJECTED", "nobody": "EXPIRED"}
            void = {FaultKind.APPROVAL_EXPIRY: "EXPIRED", FaultKind.APPROVER_REVOKED: "NEEDS_REVIEW"}
            last = case.decision.again or case.decision.verdict
            assert end.state == (ends[last] if case.fault is None else void.get(case.fault.kind, ends[last]))
        case RulingOutcome.ELIGIBLE:
            assert case.decision is None
            assert end.state == "COMPLETED" or case.fault is not None


@each
def test_a_why_tells_the_amount_that_goes_back(case):
    outcome, _ = ruled(case)
    if outcome not in {RulingOutcome.ELIGIBLE, RulingOutcome.APPROVAL}:
        return
    amount, currency = facts(case).refund.amount, facts(case).refund.currency
    told = f"{amount:,}" if currency == "JPY" else f"{amount / 100:.2f}"
    assert told in case.why or amount == 0


def test_who_decides_is_an_approver_of_the_tenant_within_the_limit():
    approvers = {one["name"]: one for one in AUTHZ["approvers"]}
    deciding = [case for case in CASES if case.decision is not None]
    for case in deciding:
        refund = facts(case).refund
        if case.expected.approver is not None:
            one = approvers[case.expected.approver]
            assert (one["tenant_id"], one["limit"]["currency"]) == (case.tenant, refund.currency), case.id
            assert refund.amount <= one["limit"]["amount"], case.id
    verdicts = Counter(case.decision.verdict for case in of(Category.HIGH_VALUE) if case.decision is not None)
    assert verdicts == {"approve": 11, "deny": 2, "nobody": 2}
    assert {case.expected.approver for case in deciding} == {"tanaka", "suzuki", "mori", None}


def test_half_of_the_repeated_requests_would_be_possible_a_second_time():
    again = of(Category.DUPLICATE)
    assert Counter(case.repeated for case in again) == {"after": 4, "at_once": 4}
    for how in ("after", "at_once"):
        possible = [case for case in again if case.repeated == how]
        assert sum(all(2 * line.requested <= line.left for line in facts(case).lines) for case in possible) >= 2
