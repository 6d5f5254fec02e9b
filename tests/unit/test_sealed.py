"""A walk through a sealed record comes to its verdict, whatever somebody has put in the place of what was sealed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from host.domain.seal_walk import Walk
from host.domain.sealed import Chain, Kind, Line
from host.evaluation.sealed import FORMAT, verified_export
from shared_contracts.seal import Head, Signer, chained, genesis, keys_of
from tests.support.sealing import signers

CHAIN = "11111111-1111-4111-8111-111111111111"
TRUE = '{"id": 1, "committed_in": "700", "at": "2026-07-30T10:00:00.000000Z"}'
FIRST = chained(genesis("host", CHAIN), 1, "audit", "1", TRUE)


def head_of(signer: Signer) -> str:
    """The end of the first line, signed."""
    return signer.sign(
        Head(side="host", chain=CHAIN, n=1, chained=FIRST, horizon="800", whole=True, at="2026-07-30T10:00:01.000000Z")
    )


@pytest.mark.parametrize(
    "nonsense",
    [
        "", "null", "[]", "7", '{"a": 1}', "[" * 100_000,
        '{"committed_in": "²", "at": "2026-07-30T10:00:00Z"}', '{"committed_in": "9", "at": "today"}',
        '{"committed_in": "9999", "at": "2026-07-30T10:00:00"}', '{"committed_in": "9999", "at": 7}',
        '{"id": 1e999, "committed_in": "9"}', '{"id": {}, "committed_in": []}',
        '{"committed_in": "' + "9" * 5000 + '"}',
    ],
)  # fmt: skip
def test_nonsense_in_the_place_of_what_was_sealed_is_a_finding_and_no_fault(nonsense: str) -> None:
    signer, _, keys = signers()
    walk = Walk(Chain("host", CHAIN, None, (head_of(signer),), (), (), (), (), ()), keys_of(keys, "host"))
    walk.line(Line(1, "audit", "1", TRUE, FIRST, erased=False, stands=TRUE, known=True))
    place = chained(FIRST, 2, "audit", "2", nonsense)
    walk.line(Line(2, "audit", "2", nonsense, place, erased=False, stands=TRUE, known=True))
    found = walk.verdict().findings
    assert [(one.kind, one.n) for one in found] == [(Kind.CHANGED, 2), (Kind.UNSIGNED, 2)]


def test_heads_that_are_not_believed_for_one_reason_are_one_finding_that_counts_them() -> None:
    signer, _, _ = signers()
    _, _, others = signers()
    heads = tuple(
        signer.sign(
            Head(side="host", chain=CHAIN, n=n, chained="00" * 32, horizon="800", whole=True, at="2026-07-30T10:00:00Z")
        )
        for n in (1, 2, 3)
    )
    chain = Chain("host", CHAIN, None, heads, (), ((1, heads[0]),), (), (), ())
    found = Walk(chain, keys_of(others, "host")).verdict().findings
    assert [(one.kind, one.n, one.rows) for one in found] == [
        (Kind.UNSIGNED, 0, ("3 heads",)), (Kind.UNSIGNED, 0, ()),
    ]  # fmt: skip
    assert all(one.why.endswith("its key is not trusted for this side") for one in found)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, []),
        ({"restored": [[1, 0]], "unsealed": [["act", "9", False, 0.1]]}, [(Kind.REMOVED, 1)]),
    ],
    ids=["whole", "an act that waits for its seal"],
)
def test_no_act_that_an_export_says_waits_for_its_seal_excuses_what_is_gone(
    said: dict[str, Any], found: list[tuple[Kind, int]]
) -> None:
    signer, _, keys = signers()
    about = {name: [] for name in ("restored", "restored_there", "unsealed")} | {"cut": None}
    documents = [
        {"format": FORMAT},
        {"side": "host", "chain": CHAIN, **about, **said},
        {"side": "host", "head": head_of(signer)},
        {"side": "host", "line": [1, "audit", "1", TRUE, FIRST, False]},
        {"side": "tools", "chain": None, **about, "restored_there": said.get("restored", [])},
        {"end": {"host": 1, "tools": 0}},
    ]
    verdicts = verified_export([json.dumps(one).encode() for one in documents], keys)
    assert [(one.kind, one.n) for one in verdicts["host"].findings] == found
    assert verdicts["tools"].findings == []


def test_a_line_behind_the_last_signed_head_of_an_export_is_found_whatever_the_export_says_of_it() -> None:
    signer, _, keys = signers()
    about = {name: [] for name in ("restored", "restored_there", "unsealed")} | {"cut": None}
    documents = [
        {"format": FORMAT},
        {"side": "host", "chain": CHAIN, **about, "unsigned": [[2, 0.1]]},
        {"side": "host", "head": head_of(signer)},
        {"side": "host", "line": [1, "audit", "1", TRUE, FIRST, False]},
        {"side": "host", "line": [2, "audit", "2", TRUE, chained(FIRST, 2, "audit", "2", TRUE), False]},
        {"side": "tools", "chain": None, **about},
        {"end": {"host": 2, "tools": 0}},
    ]
    found = verified_export([json.dumps(one).encode() for one in documents], keys)["host"].findings
    assert (Kind.UNSIGNED, ("lines 2 to 2",)) in [(one.kind, one.rows) for one in found]


@pytest.mark.parametrize(
    ("kept_at", "found"),
    [("10:00:01", []), ("09:59:01", [(Kind.REMOVED, ("kept 1",))])],
    ids=["while it was exported", "a minute before the end"],
)
def test_a_head_that_is_kept_is_missing_in_an_export_but_for_one_that_came_while_it_was_written(
    kept_at: str, found: list[tuple[Kind, tuple[str, ...]]]
) -> None:
    signer, _, keys = signers()
    kept = json.dumps({"seen": 1, "n": 1, "signed": "sha256:" + "0" * 64, "at": f"2026-07-30T{kept_at}.000000Z"})
    place = chained(genesis("host", CHAIN), 1, "kept", "1", kept)
    head = Head(side="host", chain=CHAIN, n=1, chained=place, horizon="8", whole=True, at="2026-07-30T10:00:01.500000Z")
    about = {name: [] for name in ("restored", "restored_there", "unsealed")} | {"cut": None}
    documents = [
        {"format": FORMAT},
        {"side": "host", "chain": CHAIN, **about},
        {"side": "host", "head": signer.sign(head)},
        {"side": "host", "line": [1, "kept", "1", kept, place, False]},
        {"side": "tools", "chain": None, **about},
        {"end": {"host": 1, "tools": 0}},
    ]
    findings = verified_export([json.dumps(one).encode() for one in documents], keys)["host"].findings
    assert [(one.kind, one.rows) for one in findings] == found
