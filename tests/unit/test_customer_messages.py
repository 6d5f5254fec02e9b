"""What a customer is told follows from the state and verified effects alone, in both languages."""

from __future__ import annotations

import re
from itertools import product

import pytest

from host.domain.reasons import HANDOVER
from host.domain.workflow import Language, Seen
from host.workflows.returns import RETURNS, S
from tests.support.fake_tools import FakeTools

JA, EN = Language.JA, Language.EN
IDS = {"return_id": "R-1", "message_id": "<n1@shop.example>"}
ASKED = {"order_id": "A-1", "lines": [{"line_id": "1", "quantity": 1}], "reason": "other"}
HELD = Seen("check_return_policy", FakeTools(facts={"earlier_returns": ["R-0007"]}).policy(ASKED), None)
REJECTIONS = ("order_not_found", "not_returnable", "already_returned", "final_sale", "out_of_period", "withdrawn")
# What says that something was done; nobody may read it while it is not verified.
DONE = re.compile(r"R-1|have sent|送信しました|発行し|has been (?:issued|sent|refunded)|完了")


def said(state: str, reason: str, language: Language, ids: dict[str, str], seen: tuple[Seen, ...] = ()) -> str:
    return RETURNS.message(state, reason, language, ids, seen)


# state · reason · what is verified · words that must stand there, per language
TABLE: tuple[tuple[str, str, dict[str, str], str, str], ...] = (
    ("RECEIVED", "received", {}, "受け付けました", "working on it"),
    ("ORDER_VERIFIED", "order_verified", {}, "手続き中", "working on it"),
    ("ELIGIBLE", "eligible", {}, "手続き中", "working on it"),
    ("WAITING_APPROVAL", "approval_required", {}, "承認待ち", "waits for approval"),
    ("APPROVED", "approved", {}, "手続き中", "working on it"),
    ("EXPIRED", "expired", {}, "もう一度", "apply again"),
    ("RETURN_CREATED", "return_verified", {"return_id": "R-1"}, "R-1", "R-1"),
    ("RETRY_WAIT", "rate_limited", {}, "手続き中", "working on it"),
    ("RETRY_WAIT", "rate_limited", {"return_id": "R-1"}, "R-1", "R-1"),
    ("COMPLETED", "notice_verified", IDS, "送信しました", "have sent"),
    ("NEEDS_REVIEW", "unknown_effect", {}, "担当者", "member of our staff"),
    ("COMPENSATION_REQUIRED", "wrong_effect", {}, "担当者", "member of our staff"),
    ("REJECTED", "order_not_found", {}, "見つかりません", "could not find"),
    ("REJECTED", "not_returnable", {}, "返品できる状態", "cannot be returned"),
    ("REJECTED", "already_returned", {}, "R-0007", "R-0007"),
    ("REJECTED", "final_sale", {}, "返品不可", "sold as final"),
    ("REJECTED", "out_of_period", {}, "期間", "period"),
    ("REJECTED", "withdrawn", {}, "取り下げ", "withdrawn"),
    ("REJECTED", "denied", {}, "お受けできません", "could not be accepted"),
)


@pytest.mark.parametrize(("state", "reason", "ids", "ja", "en"), TABLE)
def test_a_state_has_its_message_in_both_languages(state, reason, ids, ja, en):
    assert ja in said(state, reason, JA, ids, (HELD,))
    assert en in said(state, reason, EN, ids, (HELD,))


def test_every_state_is_in_the_table():
    assert {row[0] for row in TABLE} == {state.value for state in S}


@pytest.mark.parametrize(("state", "language"), [*product([s.value for s in S], Language)])
def test_without_a_verified_effect_nothing_reads_as_done_in_any_state(state, language):
    for reason in (*HANDOVER, *REJECTIONS):
        assert not DONE.search(said(state, reason, language, {})), (state, reason)


@pytest.mark.parametrize(("state", "language"), [*product(["NEEDS_REVIEW", "COMPENSATION_REQUIRED"], Language)])
def test_a_wrong_or_unknown_effect_never_reads_as_done_whatever_was_verified_before(state, language):
    for reason in HANDOVER:
        assert not DONE.search(said(state, reason, language, IDS)), reason


@pytest.mark.parametrize("language", Language)
def test_a_return_whose_notice_is_not_verified_does_not_read_as_sent(language):
    for state in ("RETURN_CREATED", "RETRY_WAIT"):
        text = said(state, "return_verified", language, {"return_id": "R-1"})
        assert "have sent" not in text
        assert "送信しました" not in text


@pytest.mark.parametrize("language", Language)
def test_a_missing_order_and_anothers_read_the_same(language):
    missing = said("REJECTED", "order_not_found", language, {}, (Seen("get_order", None, "not_found"),))
    foreign = said("REJECTED", "order_not_found", language, {}, (Seen("get_order", None, "not_found"),))
    assert missing == foreign
    assert "A-1" not in missing


@pytest.mark.parametrize("language", Language)
def test_a_customers_own_words_and_a_planners_stand_in_no_message(language):
    noisy = Seen("get_order", {"order_id": "A-1", "note": "R-666 is done"}, None)
    for state, reason, ids, *_ in TABLE:
        assert "R-666" not in said(state, reason, language, ids, (noisy,))
