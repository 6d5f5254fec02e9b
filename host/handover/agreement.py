"""Do the history of calls and the ledger of effects tell the same story? Asked first, of every case. Pure.

each send of a write      has one intent, and each intent a send
a call is `verified`      where its effect was verified, and nowhere else
a call that `failed`      leaves nothing in doubt behind it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shared_contracts.tools import TOOLS

Row = Mapping[str, Any]
Rows = list[Row]


def disagreements(row: Row) -> list[dict[str, str]]:
    """Name each step at which the two part, and in what."""
    return [{"step_id": call["step_id"], "what": what} for call in row["calls"] for what in _of(call, row)]


def _of(call: Row, row: Row) -> Iterator[str]:
    sends = [a for a in row["attempts"] if a["step"] == call["step"] and a["purpose"] == "call"]
    effects = [effect for effect in row["effects"] if effect["step"] == call["step"]]
    return (what for what, parts in _RULES.items() if parts(call, sends, effects))


def _writes(call: Row) -> bool:
    return call["tool"] in TOOLS and TOOLS[call["tool"]].writes


_RULES: dict[str, Callable[[Row, Rows, Rows], bool]] = {
    "sent_without_intent": lambda call, sends, effects: _writes(call) and len(sends) > len(effects),
    "intent_without_send": lambda _, sends, effects: len(effects) > len(sends),
    "verified_without_effect": lambda call, _, effects: (
        _writes(call)
        and call["execution_state"] == "verified"
        and all(effect["verified_at"] is None for effect in effects)
    ),
    "effect_without_verified_call": lambda call, _, effects: (
        call["execution_state"] != "verified" and any(effect["verified_at"] is not None for effect in effects)
    ),
    "failed_with_effect_in_doubt": lambda call, _, effects: (
        call["execution_state"] == "failed" and any(effect["outcome"] is None for effect in effects)
    ),
}
DISAGREEMENTS = tuple(_RULES)
