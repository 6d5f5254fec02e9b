"""What a handover sheet offers and says: one table of ways out, one sentence for each reason, no text from outside."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import Any, get_args
from uuid import UUID

import pytest

from host.domain.reasons import HANDOVER
from host.domain.unworded import code, identifier
from host.handover.agreement import DISAGREEMENTS, disagreements
from host.handover.impact import effects_of
from host.handover.ways import WAYS, Facts, Way, possible
from host.runbook_texts import explained
from shared_contracts.errors import ERRORS
from shared_contracts.handover import Disagreement
from tests.support.pages import complaint

ID = UUID("0198c2f4-0000-7000-8000-000000000000")
NOTHING = Facts(**{field.name: False for field in fields(Facts)})
EVERY = tuple(
    Facts(*values) for values in product((False, True), repeat=len(fields(Facts)))
)  # also those that cannot be: a table must not depend on which can


def ways(**facts: bool) -> list[str]:
    return [one.command.replace(f" {ID}", "") for one in possible(replace(NOTHING, **facts), ID, "ELIGIBLE")][:-2]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, []),
        ({"reviewed": True, "over": True}, ["kessai review close --as NAME --reason TEXT"]),
        (
            {"reviewed": True, "over": True, "made": True, "in_doubt": True, "adoptable": True},
            [
                "kessai review adopt --as NAME",
                "kessai review close --as NAME --reason TEXT --accept-unknown",
            ],
        ),
        (
            {"reviewed": True, "over": True, "made": True, "adoptable": True, "undoable": True},
            [
                "kessai review adopt --as NAME", "kessai review compensate --as NAME --reason TEXT",
                "kessai review close --as NAME --reason TEXT",
            ],
        ),
        (
            {"reviewed": True, "over": True, "made": True, "undoable": True},
            ["kessai review compensate --as NAME --reason TEXT", "kessai review close --as NAME --reason TEXT"],
        ),
        ({"reviewed": True, "closed": True, "over": True}, ["kessai reapply"]),
        (
            {"reviewed": True, "closed": True, "over": True, "made": True, "in_doubt": True, "adoptable": True},
            ["kessai review adopt --as NAME"],
        ),
        ({"over": True}, ["kessai reapply"]),
        ({"over": True, "made": True}, []),
        (
            {"waits": True, "stopped": True},
            [
                "kessai approve --as NAME", "kessai deny --as NAME --reason TEXT", "kessai withdraw",
                "kessai resume --as NAME --reason TEXT",
            ],
        ),
        ({"held": True}, ["kessai resume --state ELIGIBLE --limit N --as NAME --reason TEXT"]),
        ({"held": True, "stopped": True}, ["kessai resume --as NAME --reason TEXT"]),
        ({"compensates": True}, []),
        ({"compensates": True, "stopped": True}, ["kessai resume --as NAME --reason TEXT"]),
        (
            {"compensates": True, "stopped": True, "halted": True},
            ["kessai compensate --as NAME", "kessai resume --as NAME --reason TEXT"],
        ),
        (
            {"compensates": True, "stopped": True, "halted": True, "released": True},
            ["kessai resume --as NAME --reason TEXT"],
        ),
    ],
    ids=str,
)  # fmt: skip
def test_a_state_offers_these_ways_and_no_other(facts: dict[str, bool], expected: list[str]):
    assert ways(**facts) == expected


def test_no_row_is_idle_and_looking_is_always_possible():
    assert all(any(way.applies(facts) for facts in EVERY) for way in WAYS)
    for facts in EVERY:
        assert [one.command.split()[1] for one in possible(facts, ID, "ELIGIBLE")][-2:] == ["show", "explain"]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.command)
def test_every_way_is_a_command_that_there_is(way: Way):
    command = way.command.format(id=ID, state="ELIGIBLE").replace("--limit N", "--limit 10")
    assert complaint(command.split()) is None


def test_what_was_made_is_never_asked_for_again_nor_is_anything_undone_that_nobody_knows():
    for facts in EVERY:
        offered = " ".join(one.command for one in possible(facts, ID, "ELIGIBLE"))
        assert not (facts.made and "reapply" in offered)
        assert not (facts.closed and " close " in offered)
        assert not (facts.in_doubt and f"review {ID} compensate" in offered)
        assert facts.stopped or facts.held or "resume" not in offered


@pytest.mark.parametrize("reason", sorted(HANDOVER.keys() | ERRORS.keys()))
def test_every_reason_is_told_in_a_sentence_with_what_to_do(reason: str):
    sentence, advice = explained(reason)
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert len(advice) > 0
    assert "above" not in sentence + advice  # there is nothing above on the sheet


def test_a_reason_that_nobody_put_into_words_is_a_bug_that_shows():
    with pytest.raises(KeyError):
        explained("because")


@pytest.mark.parametrize(
    "text",
    [
        "call_14d9e42685ce73eb_1",
        "undo_5_3",
        "toolu_01A9xQ7rT2bC4dE6fG8h",
        "t3:call_9xQ7rT2bC4dE6fG8hJ0kL1mN",
        "t4",
        "fc_68a1b2c3d4e5f60718293a4b",
        "0198c2f4-0000-7000-8000-00000000000a",
    ],
)
def test_what_looks_like_an_identifier_is_shown(text: str):
    assert identifier(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hanako",
        "Hanako Yamada 1",
        "hanako1@example.com",
        "090-1234-5678",
        "東京都1-2-3a",
        "a1\n",
        "a1" * 61,
        "Yamada.Taro.090-1234-5678",
        "yamada_taro1980",
        "Tokyo-Chiyoda-1-1-Yamada",
        "call_yamada_taro_1980",
        "call_Yamada1980",
        "t1:Yamada1980",
        "toolu_YamadaTaroTokyoChiyoda",
        "call_09012345678090123456",
        "<b>1</b>",
    ],
)
def test_what_does_not_look_like_one_is_shown_by_its_digest(text: str):
    assert identifier(text).startswith("sha256:")
    assert identifier(text) == identifier(text) != identifier(f"{text}x")


def test_a_code_is_repeated_and_nothing_else_is():
    assert code("quantity_gone") == "quantity_gone"
    assert {code(text) for text in ("Hanako", "ask hanako", "", "x" * 81, "a\n")} == {"unknown_code"}


def test_a_cancelled_return_is_undone_and_a_corrected_message_is_not():
    made = [("create_return", 1), ("send_return_notice", 2), ("cancel_return", 3), ("send_correction_notice", 4)]
    plain = {
        "attempt": 1, "idempotency_key": "k", "outcome": "succeeded", "external_id": "x", "opened_at": "o",
        "closed_at": "c", "verified_at": "v", "units": [], "mismatch": None,
    }  # fmt: skip
    row = {
        "workflow": {"workflow_id": "w"},
        "calls": [{"step": step, "undoes": step - 2 if step > 2 else None} for _, step in made],
        "effects": [{"name": name, "step": step, **plain} for name, step in made],
    }
    assert [effect["undone_by"] for effect in effects_of(row)] == ["w.3", None, None, None]
    row["effects"][2]["verified_at"] = None  # sent, and nobody has seen it
    assert [effect["undone_by"] for effect in effects_of(row)] == [None] * 4


AGREED: dict[str, Any] = {
    "calls": [
        {"step": 1, "step_id": "w.1", "tool": "get_order", "execution_state": "verified"},
        {"step": 2, "step_id": "w.2", "tool": "create_return", "execution_state": "verified"},
    ],
    "attempts": [
        {"step": 1, "purpose": "call"}, {"step": 2, "purpose": "call"}, {"step": 2, "purpose": "verification"},
    ],
    "effects": [{"step": 2, "outcome": "succeeded", "verified_at": "2026-07-30T10:00:00Z"}],
}  # fmt: skip


def told(execution_state: str, effects: list[dict[str, Any]], sends: int = 1) -> list[str]:
    """What is found where the write stands so, with these effects and so many sends."""
    write = {**AGREED["calls"][1], "execution_state": execution_state}
    row = {
        "calls": [AGREED["calls"][0], write],
        "attempts": [{"step": 2, "purpose": "call"}] * sends,
        "effects": [{"step": 2, **effect} for effect in effects],
    }
    return [one["what"] for one in disagreements(row)]


def test_calls_and_effects_that_tell_the_same_story_agree():
    assert disagreements(AGREED) == []
    absent, open_ = {"outcome": "absent", "verified_at": None}, {"outcome": None, "verified_at": None}
    assert told("running", [open_]) == told("unknown", [absent, open_], 2) == told("failed", [absent]) == []
    assert told("requested", [], 0) == []


@pytest.mark.parametrize(
    ("execution_state", "outcome", "verified", "sends", "expected"),
    [
        ("verified", "succeeded", False, 1, ["verified_without_effect"]),
        ("succeeded", "succeeded", True, 1, ["effect_without_verified_call"]),
        ("failed", None, False, 1, ["failed_with_effect_in_doubt"]),
        ("unknown", None, False, 2, ["sent_without_intent"]),
        ("unknown", None, False, 0, ["intent_without_send"]),
    ],
)
def test_each_way_in_which_they_part_is_found(
    execution_state: str, outcome: str | None, verified: bool, sends: int, expected: list[str]
):
    effect = {"outcome": outcome, "verified_at": "2026-07-30T10:00:00Z" if verified else None}
    assert told(execution_state, [effect], sends) == expected


def test_the_document_knows_every_way_in_which_they_can_part():
    assert get_args(Disagreement.model_fields["what"].annotation) == DISAGREEMENTS
