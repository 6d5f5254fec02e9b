"""Why something looks done and is not, by what a planner was shown and what it gave: the turn beside the code. Pure.

    the code alone ──► a cause that is inferred ──┬─ the turn bears it out ──► known by the turn
                                                  ├─ the turn says otherwise ─► the cause that the turn shows, or none
                                                  └─ no turn, or no output ───► still inferred, and said to be

Invariant: a cause is called known by the turn only where both the definitions that were sent and the output show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from host.evaluation.diagnosis import Cause, TurnSeen
from shared_contracts.record import Checkpoint, Record, Turn

Row = Mapping[str, Any]
KnownBy = Literal["turn", "record"]
_OF_A_TURN = frozenset(
    {Cause.TOOL_NOT_EXPOSED, Cause.VAGUE_DESCRIPTION, Cause.NOT_CHOSEN, Cause.ENGINE_DROPPED_THE_CALL}
)


def turns_of_refusals(record: Record, row: Row) -> list[Checkpoint | None]:
    """Give for each refusal, in their order, the move that its turn led to: the next one with its code."""
    asked = [point for point in record.checkpoints if point.turn is not None]
    found: list[Checkpoint | None] = []
    for refusal in row["refusals"]:
        point = next((one for one in asked if one.reason == refusal["code"]), None)
        if point is not None:
            asked = asked[asked.index(point) + 1 :]
        found.append(point)
    return found


def known(cause: Cause | None, turn: Turn | None, tool: str | None) -> tuple[Cause | None, KnownBy | None]:
    """Hold an inferred cause against the turn; `tool` is what was named, where it is one of ours."""
    if turn is None or not _tells(turn) or (cause is not None and cause not in _OF_A_TURN):
        return cause, None if cause is None else "record"
    shown = _shown(cause, turn, tool)
    return shown, None if shown is None else "turn"


def seen(point: Checkpoint | None, row: Row) -> TurnSeen | None:
    """Give a turn with the definitions themselves; None where the move is no planner's."""
    if point is None or point.turn is None:
        return None
    return TurnSeen(
        checkpoint=point.seq,
        definitions=tuple(row["offers"][point.turn.offered_sha256]),
        definitions_sha256=point.turn.offered_sha256,
        said=point.turn.said,
    )


def _tells(turn: Turn) -> bool:
    """Tell whether the output itself was kept: of a fault without calls and texts nobody knows what it was."""
    said = turn.said
    return bool(said.calls or said.texts) or said.form not in {"fault", "nothing"}


def _shown(cause: Cause | None, turn: Turn, tool: str | None) -> Cause | None:
    said = turn.said
    named = tool if tool is not None else next((call.tool for call in said.calls), None)
    match cause:
        case Cause.NOT_CHOSEN if turn.offered and not said.calls:
            return cause
        case Cause.ENGINE_DROPPED_THE_CALL if said.calls:
            return cause
        case None if said.calls and said.form in {"fault", "nothing"}:
            return Cause.ENGINE_DROPPED_THE_CALL  # what could not be read had a call in it
        case Cause.VAGUE_DESCRIPTION | Cause.TOOL_NOT_EXPOSED if said.calls and named is not None:
            if named not in turn.offered:
                return Cause.TOOL_NOT_EXPOSED
            return cause if cause is Cause.VAGUE_DESCRIPTION else None
        case Cause.VAGUE_DESCRIPTION if said.calls:
            return cause  # a name that is none of ours: what it was shown did not tell it
        case _:
            return None
