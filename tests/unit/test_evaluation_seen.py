"""Whose effect is whose: counted by the keys that a case's calls came with, and on its order by nobody's."""

from __future__ import annotations

from uuid import UUID

import pytest

from host.evaluation import seen
from host.store.trial_tools import Logged, Made, Provider
from host.workflows.catalogue import BY_RELEASE
from shared_contracts.evaluation_report import Got
from tests.support.evaluating import chosen

OURS, OTHERS = UUID(int=1), UUID(int=2)
(CASE,) = chosen("normal-01")  # order A-1107 of C-2056
CALLS = (
    Logged(str(OURS), "jti-1", "create_return", None, "key-1", "ok"),
    Logged(str(OURS), "jti-2", "get_return", "verification", None, "ok"),
    Logged(str(OTHERS), "jti-3", "create_return", None, "key-2", "ok"),
)


def made(key: str | None, order: str = "A-1107", kind: str = "return", number: str = "R-1") -> Made:
    return Made(kind, "acme-jp", number, order, "C-2056", key)


def got(*effects: Made, mailed: dict[str, int] | None = None) -> Got:
    provider = Provider(CALLS, effects)
    everybodys = seen.keys_of(provider, (OURS, OTHERS))
    outside = seen.outside(CASE, provider, seen.keys_of(provider, (OURS,)), everybodys)
    return seen.got(CASE, seen.Workflows((), BY_RELEASE), provider, outside, mailed or {}, 1.0)


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


def test_a_mail_counts_as_often_as_it_was_taken_and_a_row_without_one_counts_still():
    mail = "<m@shop.example>"
    notice, correction = (
        made("key-1", kind="notice", number=mail),
        made("key-1", kind="correction", number="<c@shop.example>"),
    )

    assert got(notice).effects.notices == 1
    assert got(notice, mailed={mail: 2}).effects.notices == 2
    assert got(notice, correction, mailed={mail: 1, "<c@shop.example>": 1}).effects.notices == 1
    assert got(mailed={mail: 1}).effects.notices == 1  # of which no table knows


def test_a_case_that_was_never_taken_in_stands_nowhere():
    found = got()
    assert (found.state, found.workflow_ids, found.reached, found.handover) == ("", (), (), None)
