"""Four vendors' answers in one form, `Turn`. Nothing is dropped: what a reader does not know spoils it.

Every reader is total: any JSON value gives a `Turn` or a `malformed_turn` fault. A reader reports what the
vendor sent and decides nothing; `decode` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from host.domain.proposals import PlannerFault, Utterance


class Finish(StrEnum):
    """Why a turn ended, mildest first: of several readings of one turn the last in this order stands."""

    COMPLETE = "complete"
    UNKNOWN = "unknown"
    MALFORMED = "malformed"
    LENGTH = "length"
    SAFETY = "safety"


@dataclass(frozen=True, slots=True)
class Call:
    """One structured call. An absent id is empty; arguments that are neither text nor object are None."""

    call_id: str
    name: str
    arguments: str | dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of a model. `refusal` is the vendor's own refusal field, never guessed from a text."""

    texts: tuple[str, ...]
    calls: tuple[Call, ...]
    refusal: str | None
    finish: Finish


def utterance(turn: Turn) -> Utterance:
    """Give what an adapter hands on beside the decision: all texts and calls, those too that are discarded."""
    return Utterance(turn.texts, tuple((call.name, call.arguments) for call in turn.calls))


NO_TURN = PlannerFault("malformed_turn", "The answer holds no turn that can be read. Answer again.")
_ORDER = tuple(Finish)

_RESPONSES_REASONS = {"max_output_tokens": Finish.LENGTH, "content_filter": Finish.SAFETY}
# Several compatible servers say "stop" beside a call, so "stop" is as complete as "tool_calls".
_CHAT_REASONS = {
    "stop": Finish.COMPLETE,
    "tool_calls": Finish.COMPLETE,
    "length": Finish.LENGTH,
    "content_filter": Finish.SAFETY,
}
# No stop sequence is ever sent and no provider-side tool asked for: stop_sequence and pause_turn are unknown.
_ANTHROPIC_REASONS = {
    "end_turn": Finish.COMPLETE,
    "tool_use": Finish.COMPLETE,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.SAFETY,
}
_GEMINI_REASONS = {
    "STOP": Finish.COMPLETE,
    "MAX_TOKENS": Finish.LENGTH,
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), Finish.SAFETY),
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"), Finish.MALFORMED),
}
# Vendors' words for "I stopped in order to call": without a call beside them the call was lost.
_CALL_PROMISED = ("tool_calls", "tool_use")


@dataclass(slots=True)
class _Draft:
    finishes: list[Finish]
    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    refusal: str | None = None

    def spoil(self) -> None:
        self.finishes.append(Finish.MALFORMED)

    def text(self, value: Any) -> None:
        if isinstance(value, str):
            self.texts.append(value)
        else:
            self.spoil()

    def refuse(self, value: Any) -> None:
        self.refusal = value if isinstance(value, str) else ""

    def call(self, call_id: Any, name: Any, arguments: Any) -> None:
        call_id = "" if call_id is None else call_id
        if not isinstance(call_id, str) or not isinstance(name, str):
            self.spoil()
            return
        self.calls.append(Call(call_id, name, arguments if isinstance(arguments, str | dict) else None))

    def objects(self, value: Any) -> list[dict[str, Any]]:
        """The objects of a list; absent is empty, and whatever is no object spoils the turn."""
        members = [] if value is None else value
        if not isinstance(members, list):
            self.spoil()
            return []
        found = [member for member in members if isinstance(member, dict)]
        if len(found) < len(members):
            self.spoil()
        return found

    def content(self, value: Any) -> None:
        """Both OpenAI shapes of a message's content: a text, or parts of text and refusal."""
        if value is None or isinstance(value, str):
            self.texts.extend([] if value is None else [value])
            return
        for part in self.objects(value):
            match part.get("type"):
                case "text" | "output_text":
                    self.text(part.get("text"))
                case "refusal":
                    self.refuse(part.get("refusal"))
                case _:
                    self.spoil()

    def turn(self, reason: Any = None) -> Turn:
        if reason in _CALL_PROMISED and not self.calls:
            self.spoil()
        worst = max(self.finishes, key=_ORDER.index)
        return Turn(tuple(self.texts), tuple(self.calls), self.refusal, worst)


def read_responses(body: Any) -> Turn | PlannerFault:
    """OpenAI Responses API: a `response` object whose `output` is a list of typed items."""
    if not isinstance(body, dict):
        return NO_TURN
    draft = _Draft([_responses_finish(body)])
    for item in draft.objects(body.get("output")):
        match item.get("type"):
            case "message":
                draft.content(item.get("content"))
            case "function_call":
                draft.call(item.get("call_id"), item.get("name"), item.get("arguments"))
            case "reasoning":
                pass
            case _:  # a call of another kind, or one that ran at the provider: neither may pass unseen
                draft.spoil()
        if item.get("status") not in (None, "completed"):
            draft.spoil()
    return draft.turn()


def read_chat(body: Any) -> Turn | PlannerFault:
    """OpenAI chat completions and what is compatible: one choice with `message` and `finish_reason`."""
    choice = _only(body, "choices")
    if choice is None:
        return NO_TURN
    reason = choice.get("finish_reason")
    draft = _Draft([_finish(_CHAT_REASONS, reason)])
    for message in draft.objects([choice.get("message")]):
        draft.content(message.get("content"))
        if message.get("refusal") not in (None, ""):  # some servers send an empty one with every turn
            draft.refuse(message["refusal"])
        for call in draft.objects(message.get("tool_calls")):
            for function in draft.objects([call.get("function")]):
                draft.call(call.get("id"), function.get("name"), function.get("arguments"))
        if message.get("function_call") is not None:  # the retired form of a call, which has no id
            draft.spoil()
    return draft.turn(reason)


def read_anthropic(body: Any) -> Turn | PlannerFault:
    """Anthropic Messages: `content` blocks and a `stop_reason`."""
    if not isinstance(body, dict):
        return NO_TURN
    reason = body.get("stop_reason")
    draft = _Draft([_finish(_ANTHROPIC_REASONS, reason)])
    for block in draft.objects(body.get("content")):
        match block.get("type"):
            case "text":
                draft.text(block.get("text"))
            case "tool_use":
                draft.call(block.get("id"), block.get("name"), _object(block.get("input")))
            case "thinking" | "redacted_thinking":
                pass
            case _:
                draft.spoil()
    return draft.turn(reason)


def read_gemini(body: Any) -> Turn | PlannerFault:
    """Gemini generateContent: one candidate with `content.parts` and `finishReason`, or a blocked prompt."""
    if not isinstance(body, dict):
        return NO_TURN
    feedback = body.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason") is not None:
        return Turn((), (), None, Finish.SAFETY)
    candidate = _only(body, "candidates")
    if candidate is None:
        return NO_TURN
    draft = _Draft([_finish(_GEMINI_REASONS, candidate.get("finishReason"))])
    content = candidate.get("content")
    for holder in draft.objects(None if content is None else [content]):
        for part in draft.objects(holder.get("parts")):
            _gemini_part(draft, part)
    return draft.turn()


def _gemini_part(draft: _Draft, part: dict[str, Any]) -> None:
    if "functionCall" in part:
        for call in draft.objects([part["functionCall"]]):
            draft.call(call.get("id"), call.get("name"), _object(call.get("args")))
    elif "text" in part:
        if part.get("thought") is not True:
            draft.text(part["text"])
    elif "thoughtSignature" not in part:  # code run at the provider, or a kind that is new
        draft.spoil()


def _responses_finish(body: dict[str, Any]) -> Finish:
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else details
    if body.get("status") == "completed" and reason is None:
        return Finish.COMPLETE
    return _finish(_RESPONSES_REASONS, reason)


def _finish(reasons: Mapping[str, Finish], reason: Any) -> Finish:
    return reasons.get(reason, Finish.UNKNOWN) if isinstance(reason, str) else Finish.UNKNOWN


def _object(value: Any) -> dict[str, Any] | None:
    """Where a vendor's own shape is an object, a text in its place is not parsed into one."""
    return value if isinstance(value, dict) else None


def _only(body: Any, key: str) -> dict[str, Any] | None:
    """The one object under `key`; of several alternatives none can be told to be the answer."""
    members = body.get(key) if isinstance(body, dict) else None
    if isinstance(members, list) and len(members) == 1 and isinstance(members[0], dict):
        return members[0]
    return None
