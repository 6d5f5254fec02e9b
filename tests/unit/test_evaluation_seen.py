"""Whose effect is whose: counted by the keys that a case's calls came with, and on its order by nobody's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from host.evaluation import seen
from host.store.trial_tools import Logged, Made, Provider, Undone
from host.workflows.catalogue import BY_RELEASE
from shared_contracts.evaluation import Effects
from shared_contracts.evaluation_report import Got
from shared_contracts.record import Compensation
from tests.support.evaluating import chosen

OURS, OTHERS = UUID(int=1), UUID(int=2)
(CASE,) = chosen("normal-01")  # order A-1107 of C-2056
ASKED = (CASE.request["reason"], *(f"{line['line_id']} {line['quantity']}" for line in CASE.request["lines"]))
CALLS = (
    Logged(str(OURS), "jti-1", "create_return", None, "key-1", "ok"),
    Logged(str(OURS), "jti-2", "get_return", "verification", None, "ok"),
    Logged(str(OTHERS), "jti-3", "create_return", None, "key-2", "ok"),
)


UNDONE = (
    Undone("return", "acme-jp", "R-9", datetime(2026, 8, 1, 9, tzinfo=UTC)),
    Undone("return", "hoshi-jp", "R-1", datetime(2026, 8, 1, 9, tzinfo=UTC)),
)


def made(key: str | None, order: str = "A-1107", kind: str = "return", number: str = "R-1") -> Made:
    about = ("R-1",) if kind == "notice" else ASKED
    return Made(kind, "acme-jp", number, order, "C-2056", key, about)


def got(*effects: Made, mailed: dict[str, int] | None = None, elsewhere: tuple[str, ...] = ()) -> Got:
    provider = Provider(CALLS, effects, UNDONE)
    everybodys = seen.keys_of(provider, (OURS, OTHERS))
    sent = seen.Sent(mailed or {}, frozenset((*(mailed or {}), *elsewhere)))
    outside = seen.outside(CASE, provider, seen.keys_of(provider, (OURS,)), everybodys)
    return seen.got(CASE, seen.Workflows((), BY_RELEASE), provider, outside, sent, 1.0)


@pytest.mark.parametrize(
    ("effects", "returns", "wrong"),
    [
        ((made("key-1"),), 1, ()),
        ((made("key-1"), made("key-9", number="R-2")), 2, ()),  # a key that nobody's call came with
        ((made("key-1"), made(None, number="R-2")), 2, ()),
        ((made("key-1"), made("key-2", number="R-2")), 1, ()),  # another case's, on the same order
        ((made("key-1", order="A-1"),), 1, ("R-1",)),
        ((made("key-9", order="A-1"),), 0, ()),  # nobody's, on an order that is not ours
        ((), 0, ()),
    ],
)
def test_an_effect_is_the_cases_by_its_key_or_by_its_order_where_the_key_is_nobodys(
    effects: tuple[Made, ...], returns: int, wrong: tuple[str, ...]
):
    found = got(*effects)
    assert (found.effects.returns, found.wrong_returns) == (returns, wrong)


@pytest.mark.parametrize(
    "about", [ASKED[:1], (*ASKED, "L9 1"), ("damaged", *ASKED[1:]), (ASKED[0], "L1 100")],
    ids=["a line is missing", "a line more", "another reason", "another quantity"],
)  # fmt: skip
def test_a_return_of_something_else_than_was_asked_for_is_a_wrong_one(about: tuple[str, ...]):
    assert got(replace(made("key-1"), about=about)).wrong_returns == ("R-1",)


def test_a_notice_of_another_return_than_the_cases_is_a_wrong_one():
    notice = made("key-1", kind="notice", number="<m@shop.example>")
    assert got(made("key-1"), notice).wrong_notices == ()
    assert got(made("key-1"), replace(notice, about=("R-2",))).wrong_notices == ("<m@shop.example>",)


def test_what_was_undone_is_the_cases_by_the_id_of_what_it_made_and_by_its_tenant():
    assert got(made("key-1")).undone == Effects(returns=0, notices=0)
    assert got(made("key-1", number="R-9")).undone == Effects(returns=1, notices=0)
    assert got(made("key-2", number="R-9")).undone == Effects(returns=0, notices=0)  # another case's


@pytest.mark.parametrize(
    ("state", "hours", "came"), [("done", 24, "done"), ("done", 25, "overdue"), ("required", 25, "required")]
)
def test_what_was_undone_at_the_provider_after_its_time_is_overdue_whatever_the_host_says(state, hours, came):
    ordered_at = datetime(2026, 8, 1, 9, tzinfo=UTC)
    ordered = Compensation(
        n=1, step_id="s", ordered_by="sato", reason="-", ordered_at=ordered_at, due_at=ordered_at + timedelta(days=9),
        state=state, ended_at=None, released_by=None, released_at=None,
    )  # fmt: skip
    undone = Undone("return", "acme-jp", "R-1", ordered_at + timedelta(hours=hours))
    assert seen.came_of(ordered, 24, [undone]) == came


@pytest.mark.parametrize(
    ("came", "counts"),
    [
        ((), None),
        (("done",), "done"),
        (("overdue", "done"), "overdue"),
        (("impossible", "required"), "impossible"),
        (("done", "required"), "required"),
    ],
)
def test_what_was_ordered_anew_and_done_does_not_hide_what_was_impossible_or_late_before(came, counts):
    assert seen.worst(came) == counts


def test_a_mail_counts_as_often_as_it_was_taken_and_a_row_only_if_a_mail_left_or_nobody_knows():
    mail = "<m@shop.example>"
    notice, correction = (
        made("key-1", kind="notice", number=mail),
        made("key-1", kind="correction", number="<c@shop.example>"),
    )

    assert got(notice).effects.notices == 0  # said to be sent, and no mail server has it
    assert got(replace(notice, in_doubt=True)).effects.notices == 1
    assert got(notice, elsewhere=(mail,)).effects.notices == 1  # it left, and names another order
    assert got(notice, mailed={mail: 2}).effects.notices == 2
    assert got(notice, correction, mailed={mail: 1, "<c@shop.example>": 1}).effects.notices == 1
    assert got(mailed={mail: 1}).effects.notices == 1  # of which no table knows


def test_a_case_that_was_never_taken_in_stands_nowhere():
    found = got()
    assert (found.state, found.workflow_ids, found.reached, found.handover) == ("", (), (), None)
