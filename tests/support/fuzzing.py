"""How many generated examples a test tries, and JSON as text, with everything that a parser may take in two ways.

Invariant: an ordinary run tries a few, the same ones each time; `--fuzz COUNT` tries so many, new ones each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

ASKED: list[int] = []  # what `--fuzz` says, put here before any test is imported


def examples(few: int) -> settings:
    return settings(
        max_examples=ASKED[0] if ASKED else few,
        derandomize=not ASKED,
        database=None,
        report_multiple_bugs=False,
        deadline=None,  # each test has its own, on what it waits for
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )


numbers = st.sampled_from((
    "0", "1", "-0", "-0.0", "1.0", "1e3", "1E400", "1e999", "-1e999", "9" * 400, "9" * 5000, "01", "1.", "+1", "1_0",
    str(2**53 + 1), str(2**63), str(-(2**63) - 1), "0x10", "NaN", "Infinity", "-Infinity", "１",
)) | st.one_of(st.integers().map(str), st.floats(allow_nan=False, allow_infinity=False).map(repr))  # fmt: skip
strings = st.sampled_from((
    '""', '"\\ud800"', '"\\udfff\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"\x00"', '"\t"', '"e\\u0301"', '"１２３"',
    json.dumps("x" * 5000), '"never ended', "'single'", '"\\x41"', '"\u202e"', '"\ufeff"', json.dumps("花子"),
)) | st.text(max_size=20).map(lambda text: json.dumps(text, ensure_ascii=False))  # fmt: skip
leaves = numbers | strings | st.sampled_from(["true", "false", "null", "undefined", "", "{}", "[]"])
names = st.sampled_from(['"a"', '"order_id"', '"name"', '"_meta"', '"__proto__"', '"$ref"', '""']) | strings
deep = st.sampled_from(["[" * 65 + "]" * 65, '{"a":' * 65 + "1" + "}" * 65, "[" * 20_000, '{"a":[' * 3000])


def _array(parts: list[str]) -> str:
    return f"[{','.join(parts)}]"


def members(pairs: Iterable[tuple[str, str]]) -> str:
    """An object of these, a name that stands twice included."""
    return "{" + ",".join(f"{name}:{value}" for name, value in pairs) + "}"


texts: st.SearchStrategy[str] = (
    st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3).map(_array) | st.lists(st.tuples(names, inner), max_size=3).map(members)
        ),
        max_leaves=6,
    )
    | deep
)
