"""Whose mail is whose, where two cases are about one order: each case answers for what it has sent, and for no more."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from host.evaluation import mailed
from host.evaluation.notes import NotedCase, Notes
from host.evaluation.seen import Outside
from host.store.trial_tools import Made, Provider
from tests.support.evaluating import chosen
from tests.support.evaluations import document

(CASE,) = chosen("normal-01")  # order A-1107
OURS, THEIRS, NOBODYS = "<ours@shop.example>", "<theirs@shop.example>", "<nobodys@shop.example>"


def notice(message: str, key: str, order: str = "A-1107") -> Made:
    return Made("notice", "acme-jp", message, order, "C-2056", key, ("R-1",))


def noted(**changes: object) -> NotedCase:
    named = {OURS: ("A-1107", "R-1"), THEIRS: ("A-1107", "R-2"), NOBODYS: ("A-1107", "R-3")}
    made = NotedCase(
        case=CASE, workflow_ids=(), seconds=1.0, mailed=dict.fromkeys(named, 1), astray=(THEIRS, NOBODYS), named=named,
        evidence=None,
    )  # fmt: skip
    return made.model_copy(update=changes)


@pytest.mark.parametrize(
    ("row", "left"),
    [
        (notice(THEIRS, "theirs"), {OURS, NOBODYS}),
        (notice(THEIRS, "nobodys"), {OURS, THEIRS, NOBODYS}),
        (notice(THEIRS, "theirs", order="A-1"), {OURS, THEIRS, NOBODYS}),  # a row of one order, a mail about another
    ],
    ids=["another case's about this order", "nobody's", "another case's about another order"],
)
def test_a_mail_is_left_to_another_case_only_where_its_row_is_that_cases_and_of_this_order(row: Made, left: set[str]):
    found = mailed.own(noted(), Provider((), (notice(OURS, "ours"), row), ()), {"theirs"})
    assert (set(found.mailed), set(found.named)) == (left, left)
    assert set(found.astray) == left - {OURS}


def test_a_mail_that_goes_to_somebody_else_or_names_another_return_or_no_order_is_a_wrong_one():
    made = Outside((notice(OURS, "ours"),), (), ())
    right = noted(astray=(), named={OURS: ("A-1107", "R-1")})
    assert list(mailed.wrong(right, made, ("R-1",), ())) == []
    assert list(mailed.wrong(right, made, ("R-2",), ())) == [OURS]
    assert list(mailed.wrong(right, made, ("R-1",), (OURS, NOBODYS))) == [OURS]
    assert list(mailed.wrong(noted(named={}), made, ("R-1",), ())) == [THEIRS, NOBODYS]


def test_a_mail_about_no_order_of_which_no_row_knows_is_nobodys_and_was_taken_all_the_same():
    told = document([])
    notes = Notes(
        scope="pre_production", made_at=datetime(2026, 8, 1, tzinfo=UTC), seconds=1.0, conditions=told["conditions"],
        rates=told["rates"], contract_tests=(), cases=(noted(),), unplaced=(NOBODYS, "<x@shop.example>"),
    )  # fmt: skip
    assert mailed.nobodys(notes, Provider((), (notice(NOBODYS, "ours"),), ())) == ("<x@shop.example>",)
    assert mailed.taken(notes) == {OURS, THEIRS, NOBODYS, "<x@shop.example>"}
