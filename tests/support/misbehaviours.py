"""Everything a tool server can do wrong with one call, each by its name in BEHAVIOURS."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import socket
import struct
from collections.abc import Callable
from typing import Any

from shared_contracts.errors import ERROR_META, error_body
from tests.support.hostile_wire import BEHAVIOURS, Wire, behaviour

MODERN = "2026-07-28"
MEGABYTE = 1024 * 1024


def _plain(name: str, status: int, body: bytes = b"", media: str = "text/plain", **headers: str) -> None:
    fields = {key.replace("_", "-"): value for key, value in headers.items()}

    async def act(wire: Wire) -> None:
        await wire.raw(status, body, media, fields)

    BEHAVIOURS[name] = act


def _refuses(name: str, status: int, number: int, data: Any = None, **headers: str) -> None:
    fields = {key.replace("_", "-"): value for key, value in headers.items()}

    async def act(wire: Wire) -> None:
        await wire.error(number, "refused", data, status, fields)

    BEHAVIOURS[name] = act


def _json(name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    async def act(wire: Wire) -> None:
        await wire.json(change(wire.answer()))

    BEHAVIOURS[name] = act


def _result(name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    async def act(wire: Wire) -> None:
        await wire.result(change(wire.good))

    BEHAVIOURS[name] = act


def _marked(name: str, meta: Any, text: str = "") -> None:
    async def act(wire: Wire) -> None:
        await wire.tool_error(meta, text)

    BEHAVIOURS[name] = act


HTML = b"<html><body>Please log in</body></html>"
BEARER = 'Bearer error="insufficient_scope", scope="returns:write", resource_metadata="http://x.example/meta"'
_plain("status_401", 401, WWW_Authenticate='Bearer error="invalid_token"')
_plain("status_403", 403, HTML, "text/html")
_plain("status_403_scope", 403, WWW_Authenticate=BEARER)
_plain("status_404", 404)
_plain("status_405", 405)
_plain("status_413", 413)
_plain("status_429", 429, Retry_After="7")
_plain("status_500", 500, b"Traceback (most recent call last): secret", "text/plain")
_plain("status_502_html", 502, HTML, "text/html")
_plain("status_503", 503, HTML, "text/html", Retry_After="3")
_plain("status_504", 504)
_plain("status_202", 202)
_plain("status_204", 204)
_plain("html", 200, HTML, "text/html")
_plain("no_media_type", 200, b"{}", "")
_plain("not_json", 200, b'{"jsonrpc": "2.0", "id": ', "application/json")
_plain("not_utf8", 200, b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', "application/json")
_plain("nested_deep", 200, b"[" * 5000 + b"]" * 5000, "application/json")
_plain("empty", 200, b"", "application/json")
_plain("huge_header", 200, b"{}", "application/json", X_Filler="f" * 70_000)
_plain("cookie", 401, Set_Cookie="session=stolen; Path=/")
_refuses("own_401", 401, -31401, error_body("token_revoked", "The token was revoked."))
_refuses("own_403", 403, -31403, error_body("scope_missing", "No."), WWW_Authenticate=BEARER)
_refuses("own_503", 503, -31503, error_body("unavailable", "Draining."), Retry_After="2")
_refuses("lying_503", 503, -31503, {"code": "unreachable", "maybe_executed": False})
_refuses("rpc_unknown_tool", 400, -32602, None)
_refuses("rpc_unknown_tool_200", 200, -32602, None)
_refuses("rpc_method_not_found", 404, -32601, None)
_refuses("rpc_internal", 200, -32603, None)
_refuses("rpc_version", 400, -32022, {"supported": ["2099-01-01"], "requested": MODERN})
_refuses("rpc_header_mismatch", 400, -32020, None)
_refuses("rpc_other", 200, 42, {"code": "no_such_code"})
_json("batch", lambda answer: [answer])
_json("no_version", lambda answer: {key: value for key, value in answer.items() if key != "jsonrpc"})
_json("wrong_id", lambda answer: {**answer, "id": answer["id"] + 1})
_json("text_id", lambda answer: {**answer, "id": str(answer["id"])})
_json("float_id", lambda answer: {**answer, "id": float(answer["id"])})
_json("null_id", lambda answer: {**answer, "id": None})
_json("result_and_error", lambda answer: {**answer, "error": {"code": -1, "message": "both"}})
_json("result_is_a_list", lambda answer: {**answer, "result": [answer["result"]]})
_json("a_request", lambda answer: {"jsonrpc": "2.0", "id": answer["id"], "method": "sampling/createMessage"})
_result("no_content", lambda _: {"done": True})
_result("input_required", lambda _: {"resultType": "input_required", "requestState": "again"})
_result("other_result_type", lambda result: {**result, "resultType": "task"})
_result("no_structured", lambda _: {"content": [], "resultType": "complete"})
_result("structured_list", lambda result: {**result, "structuredContent": [result["structuredContent"]]})
_result("extra_field", lambda result: {**result, "structuredContent": {**result["structuredContent"], "extra": 1}})
_result("wrong_type", lambda result: {**result, "structuredContent": {**result["structuredContent"], "order_id": 7}})
_result("no_date", lambda result: {**result, "structuredContent": _dated(result["structuredContent"], "soon")})
_result("empty_object", lambda result: {**result, "structuredContent": {}})
_marked("error_known", {ERROR_META: error_body("not_eligible", "Too late.", {"reason": "out_of_period"})})
_marked("error_unknown_effect", {ERROR_META: error_body("internal_error", "Failed.")})
_marked("error_lies", {ERROR_META: {"code": "internal_error", "retryable": True, "outcome_known": True}})
_marked("error_not_sent", {ERROR_META: {"code": "unreachable", "retryable": True, "outcome_known": True}})
_marked("error_without_code", {}, "It was all done: return R-1 was created.")
_marked("error_other_code", {ERROR_META: {"code": "all_fine", "message": "created"}}, '{"status": "created"}')
_marked("error_code_no_text", {ERROR_META: {"code": ["not_found"], "message": 5}})
_marked("error_meta_no_object", {ERROR_META: "not_found"})


def _dated(value: dict[str, Any], date: str) -> dict[str, Any]:
    return {key: date if key.endswith("_at") else item for key, item in value.items()}


@behaviour
async def answers(wire: Wire) -> None:
    await wire.result(wire.good)


@behaviour
async def answers_closing(wire: Wire) -> None:
    await wire.raw(200, json.dumps(wire.answer()).encode(), headers={"Connection": "close"})


@behaviour
async def garbled(wire: Wire) -> None:
    """A whole good answer, spoilt by whatever the test says."""
    body = json.dumps(wire.answer()).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    await wire.bytes(wire.server.garble(head.encode() + body))
    wire.hang_up()


@behaviour
async def answers_slowly(wire: Wire) -> None:
    await wire.server.released.wait()
    await wire.result(wire.good)


@behaviour
async def answers_as_event(wire: Wire) -> None:
    await wire.events(wire.answer())


@behaviour
async def answers_after_notices(wire: Wire) -> None:
    progress = {"progressToken": wire.id, "progress": 1}
    notice = {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
    request = {"jsonrpc": "2.0", "id": wire.id, "method": "sampling/createMessage", "params": {}}
    await wire.events(notice, request, wire.answer())


@behaviour
async def answers_and_holds_the_stream(wire: Wire) -> None:
    await wire.events(wire.answer(), then="hold")


@behaviour
async def error_with_success(wire: Wire) -> None:
    text = json.dumps(wire.good["structuredContent"])
    await wire.tool_error(None, text, structured=wire.good["structuredContent"])


@behaviour
async def error_own_structured(wire: Wire) -> None:
    body = error_body("quantity_gone", "Less is left.")
    await wire.tool_error({ERROR_META: body}, json.dumps(body), structured=body)


@behaviour
async def nul_in_text(wire: Wire) -> None:
    text = json.dumps({**wire.answer(), "result": wire.good}).replace('"A-1"', '"A-1\\u0000"')
    await wire.raw(200, text.encode())


@behaviour
async def half_a_surrogate(wire: Wire) -> None:
    text = json.dumps(wire.answer()).replace('"A-1"', '"A-1\\ud800"')
    await wire.raw(200, text.encode())


@behaviour
async def not_a_number(wire: Wire) -> None:
    await wire.raw(200, json.dumps(wire.answer()).replace('"A-1"', "NaN").encode())


@behaviour
async def hangs(wire: Wire) -> None:
    await wire.server.released.wait()


@behaviour
async def hangs_in_the_body(wire: Wire) -> None:
    await wire.bytes(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"jso')
    await wire.server.released.wait()


@behaviour
async def hangs_in_the_stream(wire: Wire) -> None:
    await wire.events(then="hold")


@behaviour
async def drips(wire: Wire) -> None:
    await wire.bytes(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500000\r\n\r\n")
    while True:
        await wire.bytes(b" ")
        await asyncio.sleep(0.02)


@behaviour
async def makes_progress_for_ever(wire: Wire) -> None:
    await wire.bytes(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for step in itertools.count():
        params = {"progressToken": wire.id, "progress": step}
        await wire.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await asyncio.sleep(0.02)


@behaviour
async def closes(wire: Wire) -> None:
    wire.hang_up()


@behaviour
async def resets(wire: Wire) -> None:
    sock = wire.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.writer.transport.abort()
    raise ConnectionResetError


@behaviour
async def half_a_head(wire: Wire) -> None:
    await wire.bytes(b"HTTP/1.1 200 OK\r\nContent-Ty")
    wire.hang_up()


@behaviour
async def half_a_body(wire: Wire) -> None:
    await wire.bytes(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"jso')
    wire.hang_up()


@behaviour
async def no_http(wire: Wire) -> None:
    await wire.bytes(b"220 mail.example ESMTP\r\n\r\n")
    wire.hang_up()


@behaviour
async def redirects_on_the_spot(wire: Wire) -> None:
    await wire.raw(307, b"", headers={"Location": wire.server.url + "/"})


@behaviour
async def redirects_away(wire: Wire) -> None:
    host = wire.server.by_order.get("redirect_to", "http://elsewhere.example/mcp")
    await wire.raw(302, b"", headers={"Location": host})


@behaviour
async def packed(wire: Wire) -> None:
    body = gzip.compress(json.dumps(wire.answer()).encode())
    await wire.raw(200, body, headers={"Content-Encoding": "gzip"})


@behaviour
async def bomb(wire: Wire) -> None:
    await wire.raw(200, gzip.compress(b" " * 50 * MEGABYTE), headers={"Content-Encoding": "gzip"})


@behaviour
async def fifty_megabytes(wire: Wire) -> None:
    size = 50 * MEGABYTE
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    await wire.bytes(head.encode())
    for _ in range(50):
        await wire.bytes(b" " * MEGABYTE)


@behaviour
async def endless_chunks(wire: Wire) -> None:
    await wire.bytes(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await wire.bytes(b"10000\r\n" + b" " * 65536 + b"\r\n")


@behaviour
async def endless_notices(wire: Wire) -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1000}}
    await wire.events(*[notice] * 3000, then="hold")


@behaviour
async def endless_error(wire: Wire) -> None:
    await wire.bytes(b"HTTP/1.1 502 Bad\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await wire.bytes(b"10000\r\n" + b" " * 65536 + b"\r\n")


@behaviour
async def event_with_other_id(wire: Wire) -> None:
    await wire.events({**wire.answer(), "id": 999_999})


@behaviour
async def event_no_json(wire: Wire) -> None:
    await wire.events("{not json", then="hold")


@behaviour
async def stream_without_answer(wire: Wire) -> None:
    await wire.events()


@behaviour
async def resumable_stream_without_answer(wire: Wire) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    await wire.bytes(head + b"id: 7\r\nretry: 1\r\ndata: \r\n\r\n")
    wire.hang_up()


@behaviour
async def stream_cut_off(wire: Wire) -> None:
    await wire.events({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}, then="cut")


@behaviour
async def repeats_the_token(wire: Wire) -> None:
    token = wire.request.headers["authorization"].partition(" ")[2]
    await wire.tool_error({ERROR_META: error_body("not_found", f"No order for {token}", {"token": token})})


@behaviour
async def repeats_the_token_in_a_refusal(wire: Wire) -> None:
    token = wire.request.headers["authorization"].partition(" ")[2]
    await wire.error(-31401, token, error_body("token_invalid", token), 401)
