"""The comparison of both sides: each thing that can differ is found by its id, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from host.domain.books import Ledger, Served, Stands
from host.evaluation.reconcile import MAKING, MEANINGS, Comparison, Kind, Why, compare, looked_at_again, of_one
from shared_contracts.contract import offerable
from shared_contracts.evaluation_report import Compared
from shared_contracts.tools import TOOLS
from tests.support.books import (
    ATTEMPTS,
    CASE,
    EFFECTS,
    LOG,
    MADE,
    NOTICE,
    RETURN,
    attempted,
    intended,
    issued,
    key,
    ledger,
    logged,
    made,
    served,
)

OTHER = "0198c2f4-0000-7000-8000-000000000002"


def said(found: Comparison) -> set[tuple[Kind, str, Why]]:
    return {(one.kind, one.id, one.why) for one in found.findings}


def test_two_sides_that_agree_differ_in_nothing_and_every_row_was_counted() -> None:
    found = compare(served(), ledger())
    assert found.findings == ()
    assert found.as_compared() == Compared(compared=13, external=0, untracked=(), missing=(), duplicate=())
    assert found.under_way == 0


def test_nothing_on_either_side_is_nothing_compared() -> None:
    assert compare(Served((), ()), Ledger((), (), ())).compared == 0


STRANGE = made(RETURN, "R-9", under="nobody", about="A-2: L1 1")
UNTRACKED = {
    "a call under a token that is in no ledger": (
        served(log=(*LOG, logged("x1", "get_order"))), ledger(), "x1", Why.NO_ATTEMPT,
    ),
    "a call of an outside host whose token was never issued": (
        served(log=(*LOG, logged("x1", "get_order", use="external", case="T-1"))), ledger(), "x1", Why.NO_ATTEMPT,
    ),
    "a call under a token that was issued for another task": (
        served(log=(*LOG, logged("x1", "get_order", use="external", case="T-2"))),
        ledger(issued=(issued("x1", "T-1"),)), "x1", Why.OTHER_CALL,
    ),
    "a refused call under a token of ours that was for another tool": (
        served(log=(*LOG, logged("j1", "get_return", "token_for_other_tool"))), ledger(), "j1", Why.OTHER_CALL,
    ),
    "a call under a token of ours that says it is of another case": (
        served(log=(*LOG, logged("j1", "get_order", case=OTHER))), ledger(), "j1", Why.OTHER_CALL,
    ),
    "a probe's call under a token of ours": (
        served(log=(*LOG, logged("j1", "get_order", "scope_missing", use="probe"))), ledger(), "j1", Why.OTHER_CALL,
    ),
    "a read that was made twice with one token": (
        served(log=(*LOG, logged("j1", "get_order"))), ledger(), "j1", Why.SECOND_USE,
    ),
    "a write's token that was tried once more": (
        served(log=(*LOG, logged("j2", RETURN, "token_used"))), ledger(), "j2", Why.SECOND_USE,
    ),
    "a call whose attempt was lost from the ledger": (served(), ledger(attempts=ATTEMPTS[1:]), "j1", Why.NO_ATTEMPT),
    "a return whose intent was lost from the ledger": (served(), ledger(effects=EFFECTS[1:]), "R-1", Why.NO_EFFECT),
    "a return under a key of nobody's": (served(made=(*MADE, STRANGE)), ledger(), "R-9", Why.NO_EFFECT),
    "a return without any key": (
        served(made=(*MADE, replace(STRANGE, idempotency_key=None))), ledger(), "R-9", Why.NO_KEY,
    ),
    "a return that the ledger calls refused": (
        served(), ledger(effects=(intended(RETURN, None, "rejected"), EFFECTS[1])), "R-1", Why.GIVEN_UP,
    ),
    "a return that the ledger calls absent": (
        served(), ledger(effects=(intended(RETURN, None, "absent"), EFFECTS[1])), "R-1", Why.GIVEN_UP,
    ),
    "a notice that waits under a key that the ledger gave up": (
        served(made=(MADE[0], replace(MADE[1], stands=Stands.OPEN))),
        ledger(effects=(EFFECTS[0], intended(NOTICE, None, "rejected"))), "<m-1>", Why.GIVEN_UP,
    ),
}  # fmt: skip


@pytest.mark.parametrize("planted", UNTRACKED)
def test_what_no_ledger_asked_for_is_untracked(planted: str) -> None:
    theirs, ours, name, why = UNTRACKED[planted]
    assert said(compare(theirs, ours)) == {(Kind.UNTRACKED, name, why)}


MISSING = {
    "an answer that no log has": (served(log=LOG[1:]), ledger(), "j1", Why.NOT_LOGGED),
    "an answer of another kind than was logged": (
        served(log=(logged("j1", "get_order", "not_found"), *LOG[1:])), ledger(), "j1", Why.NOT_LOGGED,
    ),
    "a refusal by the rules that no log has": (
        served(), ledger(attempts=(*ATTEMPTS, attempted("j5", RETURN, "not_eligible"))), "j5", Why.NOT_LOGGED,
    ),
    "a return that is gone": (served(log=LOG[:1] + LOG[2:], made=MADE[1:]),
        ledger(attempts=ATTEMPTS[:1] + ATTEMPTS[2:]), key(RETURN), Why.NOT_MADE,
    ),
    "a return under another number": (
        served(made=(replace(MADE[0], id="R-2"), MADE[1])), ledger(), key(RETURN), Why.OTHER_NUMBER,
    ),
    "a notice that was not sent": (
        served(made=(MADE[0], replace(MADE[1], stands=Stands.OPEN))), ledger(), key(NOTICE), Why.NOT_DONE,
    ),
    "a return of an outside host that was answered and is gone": (
        served(log=(*LOG, replace(logged("x1", RETURN, use="external", case="T-1"), idempotency_key="external:T-1"))),
        ledger(issued=(issued("x1", tool=RETURN, under="external:T-1"),)), "external:T-1", Why.NOT_MADE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("planted", MISSING)
def test_what_the_ledger_believes_and_the_tool_server_has_not_is_missing(planted: str) -> None:
    theirs, ours, name, why = MISSING[planted]
    assert said(compare(theirs, ours)) == {(Kind.MISSING, name, why)}


TWICE = key(RETURN) + ".2"
DUPLICATE = {
    "a second return of the same lines under no key": (
        served(made=(*MADE, made(RETURN, "R-2", under=None))), ledger(), "R-2",
    ),
    "a second return of the same lines under a key of nobody's": (
        served(made=(*MADE, made(RETURN, "R-2", under="nobody"))), ledger(), "R-2",
    ),
    "a second return of other lines under a key of the case": (
        served(made=(*MADE, made(RETURN, "R-2", under=TWICE, about="A-1: L2 1"))), ledger(), "R-2",
    ),
    "a second return that the ledger believes in, too": (
        served(made=(*MADE, made(RETURN, "R-2", under=TWICE))),
        ledger(effects=(*EFFECTS, intended(RETURN, "R-2", under=TWICE))), "R-2",
    ),
    "a second return that the ledger knows no end of": (
        served(made=(made(RETURN, "R-2", under=TWICE), *MADE)),
        ledger(effects=(*EFFECTS, intended(RETURN, None, None, under=TWICE))), "R-2",
    ),
    "a second notice of the same return": (
        served(made=(*MADE, made(NOTICE, "<m-2>", under="nobody", about="R-1"))), ledger(), "<m-2>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("planted", DUPLICATE)
def test_what_one_intention_made_more_than_once_is_a_duplicate(planted: str) -> None:
    theirs, ours, name = DUPLICATE[planted]
    assert said(compare(theirs, ours)) == {(Kind.DUPLICATE, name, Why.MADE_TWICE)}


ALIKE = {
    "an attempt without an outcome that has not arrived": (
        served(log=LOG[1:]), ledger(attempts=(attempted("j1", "get_order", None), *ATTEMPTS[1:])), 1,
    ),
    "an attempt without an outcome that was answered": (
        served(), ledger(attempts=(attempted("j1", "get_order", None), *ATTEMPTS[1:])), 1,
    ),
    "an effect that nobody knows, which is there": (
        served(), ledger(effects=(intended(RETURN, None, None), EFFECTS[1])), 1,
    ),
    "an effect that nobody knows, which is not there": (
        served(log=LOG[:1] + LOG[2:], made=MADE[1:]),
        ledger(attempts=(ATTEMPTS[0], attempted("j2", RETURN, "timeout"), *ATTEMPTS[2:]),
               effects=(intended(RETURN, None, None), EFFECTS[1])), 1,
    ),
    "a request that was refused in front of the log": (
        served(), ledger(attempts=(*ATTEMPTS, attempted("j5", "get_order", "rate_limited"))), 0,
    ),
    "a request that never left": (served(), ledger(attempts=(*ATTEMPTS, attempted("j5", RETURN, "unreachable"))), 0),
    "an attempt that was proved absent, and its resend": (
        served(), ledger(attempts=(*ATTEMPTS, attempted("j5", RETURN, "connection_lost")),
                         effects=(intended(RETURN, None, "absent"), *EFFECTS)), 0,
    ),
    "a handler that failed after all was written": (
        served(log=(*LOG, logged("j2", RETURN, "internal_error"))), ledger(), 0,
    ),
    "a notice that was refused for good, and is so in the ledger": (
        served(made=(MADE[0], replace(MADE[1], stands=Stands.NOTHING)),
               log=(*LOG[:-1], logged("j4", NOTICE, "notice_rejected"))),
        ledger(attempts=(*ATTEMPTS[:3], attempted("j4", NOTICE, "notice_rejected")),
               effects=(EFFECTS[0], intended(NOTICE, None, "rejected"))), 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("seen", ALIKE)
def test_what_is_under_way_or_proves_nothing_is_not_called_wrong(seen: str) -> None:
    theirs, ours, under_way = ALIKE[seen]
    found = compare(theirs, ours)
    assert (said(found), found.under_way) == (set(), under_way)


def test_a_call_of_an_issued_token_is_external_and_so_is_what_it_made() -> None:
    outside = "external:T-1:create_return"
    called = replace(logged("x1", RETURN, use="external", case="T-1"), idempotency_key=outside)
    theirs = served(log=(*LOG, called), made=(*MADE, made(RETURN, "R-3", under=outside, about="A-3: L1 1")))
    found = compare(theirs, ledger(issued=(issued("x1", tool=RETURN, under=outside),)))
    assert (said(found), found.external) == (set(), 1)


def test_an_outside_token_for_one_write_explains_no_other_row() -> None:
    outside = "external:T-1:create_return"
    theirs = served(made=(*MADE, made("cancel_return", "R-3", under=outside, about="R-3")))
    found = compare(theirs, ledger(issued=(issued("x1", tool=RETURN, under=outside),)))
    assert said(found) == {(Kind.UNTRACKED, "R-3", Why.NO_EFFECT)}


def test_a_key_explains_a_row_of_its_own_tenant_alone() -> None:
    other = replace(MADE[0], tenant_id="other", id="R-2", about="A-7: L1 1")
    found = compare(served(made=(*MADE, other)), ledger())
    assert [one.id for one in found.findings] == ["R-2"]


def test_what_was_written_since_the_first_look_is_no_difference_after_the_second() -> None:
    older = served(log=LOG[:1] + LOG[2:], made=MADE[1:])
    first = compare(older, ledger())
    assert said(first) == {(Kind.MISSING, "j2", Why.NOT_LOGGED), (Kind.MISSING, key(RETURN), Why.NOT_MADE)}
    again = looked_at_again(older, Served((LOG[1],), (MADE[0],)), {"j2"}, {key(RETURN)})
    assert compare(again, ledger()).findings == ()


def test_a_second_look_counts_no_row_twice() -> None:
    again = looked_at_again(served(), Served(LOG[:2], MADE[:1]), {"j1", "j2"}, {key(RETURN)})
    assert compare(again, ledger()) == compare(served(), ledger())


def test_an_id_is_told_once_however_often_it_is_found() -> None:
    found = compare(served(log=(*LOG, logged("x1", "get_order"), logged("x1", "get_order"))), ledger())
    assert found.of(Kind.UNTRACKED) == ("x1",)
    assert len(found.findings) == 1


def test_every_finding_names_the_case_that_it_is_of_or_claims_to_be() -> None:
    found = compare(served(log=(*LOG, logged("x1", "get_order", case=OTHER)), made=MADE[1:]), ledger())
    assert {(one.id, one.case) for one in found.findings} == {("x1", OTHER), (key(RETURN), CASE)}


def test_every_write_that_a_tool_server_offers_is_one_whose_rows_are_compared() -> None:
    assert {tool.name for tool in TOOLS.values() if tool.writes and offerable(tool)} == MAKING


def test_everything_that_can_be_wrong_is_said_in_words() -> None:
    assert set(MEANINGS) == set(Why)


def test_a_second_one_of_the_same_thing_names_the_case_whose_it_is() -> None:
    for under in (None, "nobody"):
        (found,) = compare(served(made=(*MADE, made(RETURN, "R-2", under=under))), ledger()).findings
        assert (found.id, found.case) == ("R-2", CASE)
    theirs = ledger(effects=(*EFFECTS, replace(intended(RETURN, "R-3", under=key(RETURN, OTHER)), workflow_id=OTHER)))
    of_other = made(RETURN, "R-3", under=key(RETURN, OTHER))
    (found,) = compare(served(made=(*MADE, of_other, made(RETURN, "R-2", under=None))), theirs).findings
    assert (found.id, found.case) == ("R-2", None), "it may be of either"


def test_one_case_is_what_has_its_keys_and_whatever_is_of_the_same_thing() -> None:
    own = made(RETURN, "R-1", under=key(RETURN))
    by_hand = made(RETURN, "R-2", under=f"{CASE}:by_hand", about="A-9: L9 1")
    under_a_key_of_its_calls = made(RETURN, "R-3", under="k", about="A-8: L9 1")
    alike = made(RETURN, "R-4", under=None)
    other = made(RETURN, "R-5", under=key(RETURN, OTHER), about="A-7: L1 1")
    of_another_kind = made(NOTICE, "<m-2>", under=key(NOTICE, OTHER), about="A-1: L1 1")
    rows = (own, by_hand, under_a_key_of_its_calls, alike, other, of_another_kind)
    assert of_one(rows, CASE, {"k", None}) == rows[:4]
