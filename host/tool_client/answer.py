"""Whether what came back answers this request: the right id, one JSON-RPC message, JSON, in bounds.

Invariant: only a message that passed here reaches the SDK, so that no answer can make the SDK fail, wait for
another one, or log what it was. All else becomes what was seen on the wire.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import orjson
from pydantic_core import from_json

from host.domain.outcome import HttpStatus, Lost, NotMcp, Report, RpcError, WireResult
from host.tool_client.headers import challenge, retry_after, session_id
from shared_contracts.errors import ERROR_META

BYTES_MAX = 1024 * 1024  # the largest tool result, an order of 100 lines, has about 40 kB
_PLAIN_REFUSALS = frozenset({401, 403, 413, 429})


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer is held against. `token` must not come back in it; `in_session`: it named a session."""

    id: int | str
    token: str
    in_session: bool


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers of a response whose body is still to be read."""

    status: int
    headers: Mapping[str, str]

    @property
    def media_type(self) -> str:
        """Without parameters, in lower case."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class Message:
    """A JSON-RPC message for the SDK. An error comes with what it means, a result with None."""

    content: bytes
    session: str | None
    seen: WireResult | None


async def read_answer(head: Head, chunks: AsyncIterator[bytes], asked: Asked) -> Message | WireResult:
    """Read a response as far as it is needed; raises what the connection raises."""
    if 300 <= head.status < 400:
        return NotMcp("redirect")
    if head.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        return NotMcp("encoded")  # none was asked for, and a bomb is not unpacked
    if head.status == 200 and head.media_type == "text/event-stream":
        return await _read_events(head, chunks, asked)
    body = await _read_body(chunks)
    if head.status == 200:
        return _judge(head, body, asked)
    return _judge_status(head, body, asked)


def without_hints(answer: Message) -> Message:
    """Take the annotations out of a listing: nothing here reads them, and a malformed one spoils no listing."""
    message = _parse(answer.content)
    result = message.get("result", {})
    tools = result.get("tools")
    if not isinstance(tools, list):
        return answer
    result["tools"] = [_unhinted(tool) for tool in tools]
    content = json.dumps(message).encode()
    return answer if _parse(content) is None else replace(answer, content=content)


def _unhinted(tool: Any) -> Any:
    return {name: said for name, said in tool.items() if name != "annotations"} if isinstance(tool, dict) else tool


async def _read_body(chunks: AsyncIterator[bytes]) -> bytes | None:
    parts, size = [], 0
    async for chunk in chunks:
        size += len(chunk)
        if size > BYTES_MAX:
            return None
        parts.append(chunk)
    return b"".join(parts)


class _Capped(httpx2.AsyncByteStream):
    """All events of one answer share one bound."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._chunks:
            size += len(chunk)
            if size > BYTES_MAX:
                raise httpx2.SSEError("the stream is too long")
            yield chunk


async def _read_events(head: Head, chunks: AsyncIterator[bytes], asked: Asked) -> Message | WireResult:
    """The first message with an id ends the stream for us; notices and requests of the server go unanswered."""
    response = httpx2.Response(
        200,
        headers={"content-type": "text/event-stream; charset=utf-8"},
        stream=_Capped(chunks),
        request=httpx2.Request("POST", "http://stream.invalid"),
    )
    try:
        async for event in httpx2.EventSource(response, max_event_size=BYTES_MAX):
            if event.event == "message" and event.data and not _is_aside(event.data):
                return _judge(head, event.data.encode("utf-8", "surrogatepass"), asked)
    except (httpx2.SSEError, httpx2.DecodingError):
        return NotMcp("oversized")
    return Lost("stream_ended")


def _is_aside(data: str) -> bool:
    message = _parse(data.encode("utf-8", "surrogatepass"))
    return isinstance(message, dict) and "method" in message


def _judge(head: Head, body: bytes | None, asked: Asked) -> Message | WireResult:
    if head.media_type not in {"application/json", "text/event-stream"}:
        return NotMcp("content_type")
    if body is None:
        return NotMcp("oversized")
    if asked.token.encode() in body:
        return NotMcp("credential_repeated")  # it would reach records and logs with whatever repeats it
    message = _parse(body)
    if message is None:
        return NotMcp("not_json")
    if not _is_response(message):
        return NotMcp("not_json_rpc")
    if not _same_id(message.get("id"), asked.id):
        return NotMcp("wrong_id")
    error = message.get("error")
    return Message(body, session_id(head.headers), None if error is None else _rpc_error(error))


def _judge_status(head: Head, body: bytes | None, asked: Asked) -> Message | WireResult:
    if head.status < 400:
        return NotMcp("no_content")  # 202 and its like promise no answer on this request
    if head.status == 404 and asked.in_session:
        return Lost("session_gone")
    error = _error_of(body, asked) if head.media_type == "application/json" else None
    if error is None or head.status in _PLAIN_REFUSALS or head.status >= 500:
        return HttpStatus(
            head.status,
            None if error is None else _report(error.get("data")),
            retry_after(head.headers),
            challenge(head.headers),
        )
    return Message(orjson.dumps({"jsonrpc": "2.0", "id": asked.id, "error": error}), None, _rpc_error(error))


def _error_of(body: bytes | None, asked: Asked) -> dict[str, Any] | None:
    """A request that was refused before its id was read is answered under the id null."""
    if body is None or asked.token.encode() in body:
        return None
    message = _parse(body)
    if not _is_response(message) or "error" not in message:
        return None
    fits = message.get("id") is None or _same_id(message["id"], asked.id)
    return dict(message["error"]) if fits else None


def _parse(body: bytes) -> Any:
    """By the SDK's own parser: whatever passes here passes there."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError:
        return None


def _is_response(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or "method" in message:
        return False
    if "error" in message:
        error = message["error"]
        return "result" not in message and isinstance(error, dict) and _is_error(error)
    return isinstance(message.get("result"), dict)


def _is_error(error: dict[str, Any]) -> bool:
    return type(error.get("code")) is int and isinstance(error.get("message"), str)


def _same_id(found: Any, asked: int | str) -> bool:
    """Neither "7" nor 7.0 is 7."""
    return type(found) is type(asked) and bool(found == asked)


def _rpc_error(error: dict[str, Any]) -> RpcError:
    return RpcError(error["code"], _report(error.get("data")))


def _report(data: Any) -> Report | None:
    return read_report(data.get(ERROR_META, data)) if isinstance(data, dict) else None


def read_report(value: Any) -> Report | None:
    """The body of `shared_contracts.errors.error_body` as the wire has it; None where there is no code."""
    if not isinstance(value, dict) or not isinstance(value.get("code"), str):
        return None
    message, details = value.get("message"), value.get("details")
    return Report(
        value["code"],
        message if isinstance(message, str) else "",
        details if isinstance(details, dict) else {},
    )
