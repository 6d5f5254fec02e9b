"""Canonical JSON: one meaning, one digest, whatever order, spacing or spelling it came in."""

import hashlib
import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_contracts.digest import (
    DEPTH_MAX,
    NotCanonicalError,
    action_fingerprint,
    canonical_json,
    digest,
    storable_text,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXT


def _distinct_after_nfc(keys: dict[str, Any]) -> bool:
    return len({unicodedata.normalize("NFC", key) for key in keys}) == len(keys)


def _objects(children: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(TEXT, children, max_size=5).filter(_distinct_after_nfc)


VALUES = st.recursive(SCALARS, lambda children: st.lists(children, max_size=4) | _objects(children), max_leaves=12)


def _turned_round(value: Any) -> Any:
    """The same value with the members of every object in the opposite order."""
    match value:
        case dict():
            return {key: _turned_round(value[key]) for key in reversed(list(value))}
        case list():
            return [_turned_round(item) for item in value]
        case _:
            return value


def _respelt(value: Any, form: str) -> Any:
    match value:
        case str():
            return unicodedata.normalize(form, value)
        case dict():
            return {_respelt(key, form): _respelt(item, form) for key, item in value.items()}
        case list():
            return [_respelt(item, form) for item in value]
        case _:
            return value


def test_the_canonical_form_is_these_very_bytes():
    value = {"b": [True, None, -1], "a": 'é\u2028"\\', "ab": {}, "A": 10**20}
    expected = '{"A":100000000000000000000,"a":"é\u2028\\"\\\\","ab":{},"b":[true,null,-1]}'.encode()
    assert canonical_json(value) == expected
    assert digest(value) == hashlib.sha256(expected).hexdigest()


def test_the_digest_of_a_known_value_never_changes():
    value = {"order_id": "A-1001", "lines": [{"line_id": "L2", "quantity": 1}], "reason": "changed_mind"}
    assert digest(value) == "6b4131069418d6a84e2abd4ee6fd35a27906376bb9ca0243a532ffd822ddb379"


@given(VALUES)
def test_the_order_of_members_does_not_matter(value):
    assert digest(_turned_round(value)) == digest(value)


@given(VALUES)
def test_white_space_and_escapes_on_the_way_do_not_matter(value):
    assert digest(json.loads(json.dumps(value, indent=3, ensure_ascii=True))) == digest(value)


@given(VALUES)
def test_composed_and_decomposed_text_is_the_same_text(value):
    assert digest(_respelt(value, "NFD")) == digest(_respelt(value, "NFC")) == digest(value)


@given(VALUES)
def test_the_canonical_form_is_json_that_means_the_same_and_is_its_own_canonical_form(value):
    once = canonical_json(value)
    assert json.loads(once) == _respelt(value, "NFC")
    assert canonical_json(json.loads(once)) == once


@given(VALUES, VALUES)
def test_two_digests_are_equal_only_where_the_values_mean_the_same(one, other):
    same = canonical_json(one) == canonical_json(other)
    assert (digest(one) == digest(other)) is same
    assert same is (
        json.dumps(_respelt(one, "NFC"), sort_keys=True) == json.dumps(_respelt(other, "NFC"), sort_keys=True)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": 0}, {"a": False}),
        ({"a": None}, {}),
        ({"a": "1"}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": "b"}, {"a": "b "}),
        ({"a": "K"}, {"a": "k"}),
        ({"a": "ﬁ"}, {"a": "fi"}),  # a ligature is another text: no compatibility forms are folded
        ([], {}),
        ("", None),
    ],
    ids=repr,
)
def test_values_that_differ_have_digests_that_differ(one, other):
    assert digest(one) != digest(other)


@pytest.mark.parametrize("number", [1.0, 349.48, 0.1 + 0.2, -0.0, float("nan"), float("inf"), 1e400], ids=repr)
def test_a_float_has_no_digest_wherever_it_stands(number):
    for value in (number, [number], {"a": {"b": number}}):
        with pytest.raises(NotCanonicalError):
            digest(value)


@pytest.mark.parametrize("value", [b"x", {1, 2}, object(), 1 + 2j, range(3)], ids=lambda value: type(value).__name__)
def test_what_is_no_json_has_no_digest(value):
    with pytest.raises(NotCanonicalError):
        digest({"a": value})


def test_keys_that_become_the_same_are_refused_and_not_merged():
    with pytest.raises(NotCanonicalError, match="same"):
        digest({"caf\u00e9": 1, "cafe\u0301": 2})


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\ud800", "x\udfffy", "é\x00"], ids=ascii)
def test_text_that_cannot_be_stored_is_refused_as_value_and_as_key(text):
    for value in (text, [text], {text: 1}):
        with pytest.raises(NotCanonicalError):
            digest(value)


def test_the_six_letters_of_an_escaped_nul_are_ordinary_text():
    assert storable_text("\\u0000") == "\\u0000"
    assert digest({"note": "\\u0000"}) != digest({"note": "u0000"})


def test_keys_are_sorted_by_code_point_also_beyond_the_basic_plane():
    assert canonical_json({"\U00010000": 1, "\uffff": 2}) == '{"\uffff":2,"\U00010000":1}'.encode()


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_value_that_is_nested_too_deep_is_refused_before_the_stack_is_used_up():
    assert digest(_nested(DEPTH_MAX))
    for levels in (DEPTH_MAX + 1, 100_000):
        with pytest.raises(NotCanonicalError, match="deeper"):
            digest(_nested(levels))


def test_an_action_is_its_tool_and_its_arguments_and_nothing_else():
    arguments = {"order_id": "A-1", "lines": [{"line_id": "L1", "quantity": 1}]}
    known = action_fingerprint("create_return", arguments)
    assert known == action_fingerprint("create_return", _turned_round(arguments))
    assert known != action_fingerprint("cancel_return", arguments)
    assert known != action_fingerprint("create_return", arguments | {"order_id": "A-2"})
    assert action_fingerprint("a", {}) != action_fingerprint("", {"a": 1})
