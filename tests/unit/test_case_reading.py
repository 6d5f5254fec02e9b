"""A case file is read whole or refused with what is wrong, where, and what to do; never by a traceback."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.engine.accept import CASE_BYTES_MAX, CaseError, read_case, read_document
from host.workflows.returns import RETURNS, ReturnsCase

KINDS = {"returns": RETURNS}
CASE: dict[str, Any] = {
    "kind": "returns", "customer_id": "C-1", "order_id": "A-1", "lines": [{"line_id": "1", "quantity": 1}],
    "reason": "changed_mind", "message": "too small",
}  # fmt: skip
TEXT = json.dumps(CASE)

# what is wrong with the bytes · a word of the answer
BYTES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "line 1"),
    "no JSON": (b"kind: returns", "line 1, column 1"),
    "cut off": (TEXT[:-5].encode(), "line 1"),
    "two objects": ((TEXT + TEXT).encode(), "column"),
    "trailing comma": (TEXT.replace("}]", "},]").encode(), "column"),
    "a list": (f"[{TEXT}]".encode(), "not a JSON object"),
    "null": (b"null", "not a JSON object"),
    "Latin-1": (TEXT.replace("too", "tr\u00e8s").encode("latin-1"), "UTF-8"),
    "NaN": (TEXT.replace(": 1}", ": NaN}").encode(), "NaN"),
    "Infinity": (TEXT.replace(": 1}", ": -Infinity}").encode(), "-Infinity"),
    "1e400": (TEXT.replace(": 1}", ": 1e400}").encode(), "integer"),
    "a fraction": (TEXT.replace(": 1}", ": 1.0}").encode(), "integer"),
    "a number of 5000 digits": (TEXT.replace(": 1}", f": {'9' * 5000}}}").encode(), "too long"),
    "NUL": (TEXT.replace("too", "too\\u0000").encode(), "NUL"),
    "NUL in a name": (TEXT.replace('"message"', '"mess\\u0000age"').encode(), "NUL"),
    "lone surrogate": (TEXT.replace("too", "\\ud800").encode(), "surrogate"),
    "a member twice": (TEXT.replace('"kind"', '"kind": "x", "kind"').encode(), "'kind' stands twice"),
    "the name of a case asked anew": (b'{"kind": "returns", "request_id": "reapply.x"}', "kessai reapply alone"),
    "deep": (b"[" * 50_000, "nested"),
    "ten megabytes": (TEXT.encode() + b" " * 10_000_000, str(CASE_BYTES_MAX)),
}  # fmt: skip


@pytest.mark.parametrize("what", BYTES)
def test_bytes_that_are_no_case_are_refused_with_what_is_wrong_in_them(what):
    raw, word = BYTES[what]
    with pytest.raises(CaseError, match=word):
        read_document(raw)


DOCUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "no kind": ({k: v for k, v in CASE.items() if k != "kind"}, "kind is missing; the kinds are: returns"),
    "unknown kind": ({**CASE, "kind": "claims"}, "kind 'claims' is unknown"),
    "a kind that is null": ({**CASE, "kind": None}, "kind None is unknown; the kinds are: returns"),
    "a kind that is a list": ({**CASE, "kind": ["returns"]}, "is unknown"),
    "missing order": ({k: v for k, v in CASE.items() if k != "order_id"}, "order_id: is missing; write it"),
    "added field": ({**CASE, "tenant_id": "acme-jp"}, "tenant_id: is not known here"),
    "approval": ({**CASE, "approved": True}, "approved"),
    "quantity of nothing": ({**CASE, "lines": [{"line_id": "1", "quantity": 0}]}, r"lines\[0\]\.quantity"),
    "negative quantity": ({**CASE, "lines": [{"line_id": "1", "quantity": -1}]}, r"lines\[0\]\.quantity"),
    "quantity past four bytes": ({**CASE, "lines": [{"line_id": "1", "quantity": 2**31}]}, r"lines\[0\]\.quantity"),
    "quantity as text": ({**CASE, "lines": [{"line_id": "1", "quantity": "1"}]}, r"lines\[0\]\.quantity"),
    "quantity as truth": ({**CASE, "lines": [{"line_id": "1", "quantity": True}]}, r"lines\[0\]\.quantity"),
    "no lines": ({**CASE, "lines": []}, "lines"),
    "a line twice": ({**CASE, "lines": [{"line_id": "1", "quantity": 1}] * 2}, "stands twice"),
    "unknown reason": ({**CASE, "reason": "bored"}, "reason: must be .*changed_mind"),
    "a long message": ({**CASE, "message": "x" * 4001}, "message"),
    "a time without its zone": ({**CASE, "requested_at": "2026-07-30T00:00:00"}, "requested_at: write a time as"),
    "an order id with a path": ({**CASE, "order_id": "../A-1"}, "order_id"),
    "unknown ask": ({**CASE, "asks": ["forgiveness"]}, r"asks\[0\]"),
}


@pytest.mark.parametrize("what", DOCUMENTS)
def test_a_document_that_does_not_fit_its_kind_is_refused_by_the_members_name(what):
    document, word = DOCUMENTS[what]
    with pytest.raises(CaseError, match=word):
        read_case(document, KINDS)


def test_a_refusal_does_not_repeat_what_the_customer_wrote():
    with pytest.raises(CaseError) as refused:
        read_case({**CASE, "message": "my card is 4111" * 400}, KINDS)
    assert "4111" not in str(refused.value)


def test_a_good_case_is_its_kinds_model():
    workflow, case = read_case(read_document(TEXT.encode()), KINDS)
    assert workflow is RETURNS
    assert isinstance(case, ReturnsCase)
    assert case.order_id == "A-1"


def refused_or_read(raw: bytes) -> bool:
    """Whether the bytes are a case; anything but a case or a refusal is raised."""
    try:
        read_case(read_document(raw), KINDS)
    except CaseError as refused:
        return str(refused) == ""
    return True


@given(st.binary(max_size=400))
def test_no_bytes_at_all_end_in_anything_but_a_case_or_a_refusal_that_says_why(raw):
    assert not refused_or_read(raw)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(VALUES, st.sampled_from(sorted(CASE)))
@settings(max_examples=60)
def test_no_value_of_a_member_ends_in_anything_but_a_case_or_a_refusal_that_says_why(value, name):
    taken = refused_or_read(json.dumps({**CASE, name: value}).encode())
    assert not taken or isinstance(value, str | list)


def test_of_a_single_line_with_a_wrong_quantity_only_the_quantity_is_complained_of():
    with pytest.raises(CaseError) as caught:
        read_case({**CASE, "lines": [{"line_id": "1", "quantity": 0}]}, KINDS)
    assert "lines[0].quantity" in str(caught.value)
    assert "at least 1 item" not in str(caught.value)


def test_a_case_without_lines_is_told_so():
    with pytest.raises(CaseError, match=r"lines: .*at least 1 item"):
        read_case({**CASE, "lines": []}, KINDS)
