"""From one vendor turn to one decision or a named fault. Only a structured call is ever a control signal.

`decode` is a ladder, most severe first: refusal, unfinished turn, no call, several calls, then the one call
by its name, arguments and id. What stands higher discards all that is beside it, so a call next to a refusal,
in a cut-off turn or next to a second call is never executed. The fault codes are
`malformed_turn cut_off no_call unbacked_completion_claim several_calls unknown_tool arguments_invalid
call_id_invalid`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from host.domain.proposals import Final, NeedsHuman, PlannerDecision, PlannerFault, ToolCall
from host.planner.arguments import ArgumentsRefusedError, parse_arguments
from host.planner.turns import NO_TURN, Call, Finish, Turn

FINISH, HAND_OVER = "finish", "hand_over"  # terminals look like tools to a model; no tool may take the names
VENDOR_ID_MAX = 200  # vendors' ids have 9 to 64 characters

_CUT_OFF = PlannerFault("cut_off", "The answer was cut off, so all of it was discarded. Answer more briefly.")
_NO_CALL = PlannerFault("no_call", f"Answer with one call: an offered tool, {FINISH} or {HAND_OVER}.")
_CLAIM = PlannerFault(
    "unbacked_completion_claim",
    f"A text does nothing and proves nothing. Make the call itself, or end with {FINISH} and its evidence.",
)
_SEVERAL = PlannerFault("several_calls", "Make one call per turn. None of these was executed.")
_FINISH_SHAPE = PlannerFault(
    "arguments_invalid",
    f"{FINISH} takes answer (an object) and evidence_refs (a list of texts), nothing else.",
)
_HAND_OVER_SHAPE = PlannerFault(
    "arguments_invalid", f"{HAND_OVER} takes reason (a code such as data_missing), nothing else."
)
_CALL_ID = PlannerFault("call_id_invalid", "The call's id is too long or not printable. Make the call again.")

_REASON = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_REASON_MAX = 64
_HOST_ID = re.compile(r"t[0-9]+:(.+)", re.DOTALL)
# Words of a deed in the past, in the languages of the prompts, and a tool's name with an open bracket.
# The split between no_call and a claim is a label for reports: both are refused alike.
_DEED = re.compile(
    r"\b(?:called|invoked|executed|ran|done|completed|finished|created|issued|approved|sent|refunded|cancelled"
    r"|registered|processed|confirmed)\b|_[a-z]+\(|完了|済み|しました",
    re.IGNORECASE,
)


def decode(turn: Turn, offered: frozenset[str], turn_number: int) -> PlannerDecision | PlannerFault:
    """One decision or one fault; `turn_number` counts a workflow's turns and is never used twice in one."""
    if turn.refusal is not None:
        return NeedsHuman("model_refusal")
    match turn.finish:
        case Finish.SAFETY:
            return NeedsHuman("model_refusal")
        case Finish.LENGTH:
            return _CUT_OFF
        case Finish.MALFORMED | Finish.UNKNOWN:
            return NO_TURN
        case Finish.COMPLETE:
            return _decode_complete(turn, offered, turn_number)


def vendor_call_id(call_id: str) -> str:
    """The id that the vendor gave; ours where it gave none, so that a result always has one to go by."""
    ours = _HOST_ID.fullmatch(call_id)
    return call_id if ours is None else ours[1]


def encode_output(call_id: str, output: Mapping[str, Any]) -> dict[str, str]:
    """The result event for `call_id` under the id of the vendor's own call event (OpenAI Responses API)."""
    text = json.dumps(output, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return {"type": "function_call_output", "call_id": vendor_call_id(call_id), "output": text}


def _decode_complete(turn: Turn, offered: frozenset[str], turn_number: int) -> PlannerDecision | PlannerFault:
    match turn.calls:
        case ():
            return _without_call(turn.texts, offered)
        case (call,):
            return _decode_call(call, offered, turn_number)
        case _:
            return _SEVERAL


def _without_call(texts: tuple[str, ...], offered: frozenset[str]) -> PlannerFault:
    if not any(text.strip() for text in texts):
        return NO_TURN
    claims = any(_DEED.search(text) or any(name in text for name in offered) for text in texts)
    return _CLAIM if claims else _NO_CALL


def _decode_call(call: Call, offered: frozenset[str], turn_number: int) -> PlannerDecision | PlannerFault:
    if call.name not in offered | {FINISH, HAND_OVER}:
        return _unknown_tool(call.name, offered)
    try:
        arguments = parse_arguments(call.arguments)
    except ArgumentsRefusedError as refused:
        return PlannerFault("arguments_invalid", str(refused))
    if call.name == FINISH:
        return _final(arguments)
    if call.name == HAND_OVER:
        return _needs_human(arguments)
    if len(call.call_id) > VENDOR_ID_MAX or not call.call_id.isprintable():
        return _CALL_ID
    return ToolCall(_host_call_id(call.call_id, turn_number), call.name, arguments)


def _host_call_id(vendor_id: str, turn_number: int) -> str:
    """Vendors number calls anew in each turn (`call_0`), or not at all; the turn makes them differ."""
    return f"t{turn_number}:{vendor_id}" if vendor_id else f"t{turn_number}"


def _unknown_tool(name: str, offered: frozenset[str]) -> PlannerFault:
    # Escaped, so that a look-alike shows itself and any name can be stored.
    names = ", ".join([*sorted(offered), FINISH, HAND_OVER])
    return PlannerFault("unknown_tool", f"{name[:64]!a} is not offered. Offered now, exactly: {names}.")


def _final(arguments: dict[str, Any]) -> Final | PlannerFault:
    match arguments:
        case {"answer": dict() as answer, "evidence_refs": list() as refs, **rest} if not rest:
            if all(isinstance(ref, str) and ref for ref in refs):
                return Final(answer, tuple(refs))
    return _FINISH_SHAPE


def _needs_human(arguments: dict[str, Any]) -> NeedsHuman | PlannerFault:
    match arguments:
        case {"reason": str() as reason, **rest} if not rest and len(reason) <= _REASON_MAX:
            if _REASON.fullmatch(reason):
                return NeedsHuman(reason)
    return _HAND_OVER_SHAPE
