"""What a request body must be, and that nothing is executed when it is not."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.contract.test_edge_token_fault import METHODS, PARAMS
from tests.support.server import LEGACY, MODERN, Server, message_of, raw_post, request, status_of

ERAS = pytest.mark.parametrize("era", [MODERN, LEGACY])
CALL: dict[str, Any] = {"name": "get_order", "arguments": {"order_id": "R-1001"}}


def send(server: Server, body: bytes | str, era: str = MODERN, **headers: str) -> httpx2.Response:
    """The body as it stands, under the headers of a good call."""
    _, good = request("tools/call", CALL, era=era, token=server.issuer.token())
    return server.post(body, {**good, **headers})


def refused(server: Server, response: httpx2.Response, status: int, number: int | None = None) -> dict[str, Any]:
    error = dict(response.json()["error"])
    assert (response.status_code, error["data"]["code"]) == (status, "invalid_request")
    assert number is None or error["code"] == number
    assert {"category", "retryable", "outcome_known"} <= error["data"].keys()
    return error


def unexecuted(server: Server, body: bytes | str, era: str, number: int, **headers: str) -> None:
    before = len(server.dispatcher.calls)
    response = send(server, body, era, **headers)
    refused(server, response, 400, number)
    assert len(server.dispatcher.calls) == before


@ERAS
@pytest.mark.parametrize(
    "rpc_id",
    ["1", 1, 0, -1, 2**53 + 1, 2**63 - 1, -(2**63), "", "é😀", "x" * 10_000, "null"],
    ids=lambda v: str(v)[:20],
)
def test_an_id_comes_back_as_it_was_sent(server, era, rpc_id):
    response = server.call(era=era, rpc_id=rpc_id)
    assert response.status_code == 200
    answered = message_of(response)["id"]
    assert (type(answered), answered) == (type(rpc_id), rpc_id)


@ERAS
@pytest.mark.parametrize(
    "rpc_id",
    ["null", "true", "false", "1.5", "1.0", "[]", "[1]", "{}", "1e3", str(2**63), "9" * 4000],
    ids=lambda v: v[:20],
)
def test_an_id_of_another_type_is_refused_and_nothing_is_executed(server, era, rpc_id):
    body = request("tools/call", CALL, era=era, rpc_id="@")[0].replace('"@"', rpc_id)
    unexecuted(server, body, era, -32600)


@ERAS
def test_a_call_without_an_id_is_no_notification_to_execute(server, era):
    body = json.loads(request("tools/call", CALL, era=era)[0])
    del body["id"]
    unexecuted(server, json.dumps(body), era, -32600)


@ERAS
def test_a_batch_is_refused_whole(server, era):
    one = json.loads(request("tools/call", CALL, era=era)[0])
    start = json.loads(request("initialize", {}, era=era)[0])
    for batch in ([one, one], [one], [], [1], [start, one], [one] * 400):
        unexecuted(server, json.dumps(batch), era, -32600)


BROKEN = {
    "empty": b"",
    "cut off": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_order"',
    "two values": b"{}{}",
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_order","arguments":{"a":NaN}}}',
    "a name twice": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}',
    "a method twice": b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"get_order"}}',
    "a lone surrogate": b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    "a lone surrogate in an argument": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"b":["\\udfff"]}}',
    "not UTF-8": b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}',
    "UTF-16": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "50,000 levels": b"[" * 50_000,
    "65 levels": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 65 + b"1" + b"}" * 66,
    "an integer of 5,000 digits": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"9" * 5000 + b"}}",
    "a form": b"method=tools/call",
}  # fmt: skip


@ERAS
@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_a_body_that_has_not_one_meaning_as_json_is_refused(server, era, body):
    unexecuted(server, body, era, -32700)


@ERAS
@pytest.mark.parametrize(
    "changes",
    [
        {"jsonrpc": "1.0"},
        {"jsonrpc": 2.0},
        {"jsonrpc": None},
        {"method": None},
        {"method": 7},
        {"params": []},
        {"params": "x"},
        {"params": None},
        {"result": {}},
        {"error": {"code": 1, "message": "an answer to nobody"}},
    ],
    ids=repr,
)
def test_a_malformed_envelope_is_refused(server, era, changes):
    body = {**json.loads(request("tools/call", CALL, era=era)[0]), **changes}
    unexecuted(server, json.dumps(body), era, -32600)


@ERAS
@pytest.mark.parametrize(
    "params",
    [{}, {"name": 7}, {"name": None}, {"name": "get_order", "arguments": []}, {"name": "get_order", "arguments": "{}"}],
)
def test_a_call_without_a_name_or_with_arguments_that_are_no_object_is_refused(server, era, params):
    body = json.loads(request("ping", params, era=era)[0])
    unexecuted(server, json.dumps({**body, "method": "tools/call"}), era, -32602)


MALFORMED: dict[str, dict[str, Any]] = {
    "arguments that are a list": {"params": {**CALL, "arguments": []}},
    "meta that is no object": {"params": {**CALL, "_meta": "x"}},
    "a progress token that is an object": {"params": {**CALL, "_meta": {"progressToken": {}}}},
    "an id that is none": {"id": None},
    "an envelope of another version": {"jsonrpc": "1.0"},
    "an answer beside the request": {"error": {"code": 1, "message": "an answer to nobody"}},
}


@ERAS
@pytest.mark.parametrize("changes", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_call_that_is_refused_before_any_handler_sees_it_is_logged_once(server, era, changes):
    body = json.loads(request("tools/call", CALL, era=era)[0])
    if "params" in changes and isinstance(meta := changes["params"].get("_meta", {}), dict):
        kept = body["params"].get("_meta", {})
        changes = {"params": {**changes["params"], "_meta": {**kept, **meta}}}
    logged = server.dispatcher.logged
    while not logged.empty():
        logged.get_nowait()
    calls, before = len(server.dispatcher.calls), len(server.dispatcher.refused)
    response = send(server, json.dumps({**body, **changes}), era)
    assert "error" in message_of(response)
    assert logged.get(timeout=5) == ("get_order", "invalid_request")
    assert (len(server.dispatcher.calls), len(server.dispatcher.refused)) == (calls, before + 1)


@ERAS
def test_a_call_that_a_handler_saw_is_logged_by_it_alone(server, era):
    before = len(server.dispatcher.refused)
    assert send(server, request("tools/call", CALL, era=era)[0], era).status_code == 200
    assert server.dispatcher.refused[before:] == []


@ERAS
def test_an_answer_that_nobody_asked_for_is_refused(server, era):
    unexecuted(server, json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}), era, -32600)


@ERAS
@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "notifications/tools/call"])
def test_a_notification_is_accepted_and_does_nothing(server, era, method):
    before = len(server.dispatcher.calls)
    body = json.loads(request(method, {"requestId": 1, "name": "get_order"}, era=era)[0])
    del body["id"]
    response = send(server, json.dumps(body), era, **{"Mcp-Method": method})
    assert (response.status_code, response.content) == (202, b"")
    assert len(server.dispatcher.calls) == before


@pytest.mark.parametrize("header", [None, LEGACY, "2025-03-26", "2024-11-05"])
def test_a_body_of_the_new_revision_under_the_header_of_an_old_one_is_a_mismatch(server, header):
    body, headers = request("tools/call", CALL, token=server.issuer.token(), rpc_id="m")
    del headers["MCP-Protocol-Version"]
    before = len(server.dispatcher.calls)
    response = server.post(body, headers if header is None else {**headers, "MCP-Protocol-Version": header})
    assert refused(server, response, 400, -32020)["data"]["code"] == "invalid_request"
    assert response.json()["id"] == "m"
    assert len(server.dispatcher.calls) == before


UNSERVED = ["2099-01-01", "1.0", "latest", "", "2026-07-2\xe9", "2026-07-28, 2026-07-28"]


@pytest.mark.parametrize("version", UNSERVED)
@pytest.mark.parametrize("enveloped", [True, False], ids=["in body and header", "in the header"])
@pytest.mark.parametrize("method", [*METHODS, "tools/call"])
def test_a_revision_that_is_not_served_is_refused_on_every_request(server, method, enveloped, version):
    before = len(server.dispatcher.calls)
    params = {"tools/call": CALL, "initialize": PARAMS}.get(method)
    body, headers = request(
        method, params, token=server.issuer.token(), rpc_id="v", era=MODERN if enveloped else LEGACY
    )
    body = body.replace(MODERN, version)
    response = server.post(body.encode(), {**headers, "MCP-Protocol-Version": version.encode("latin-1")})
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["data"]["code"]) == (400, -32022, "version_mismatch")
    assert {MODERN, LEGACY} <= set(error["data"]["supported"])
    assert (version in error["data"]["supported"], error["data"]["requested"]) == (False, version)
    assert response.json()["id"] == "v"
    assert len(server.dispatcher.calls) == before


@pytest.mark.parametrize("method", [one for one in (*METHODS, "tools/call") if not one.startswith("notifications/")])
def test_what_the_new_revision_wants_named_in_every_request_is_not_guessed_at(server, method):
    """The header is what routes a request, and the body of one that it routes here names the revision too."""
    before = len(server.dispatcher.calls)
    params = {"tools/call": CALL, "initialize": PARAMS}.get(method)
    body, headers = request(method, params, token=server.issuer.token(), rpc_id="v")
    unnamed = {name: value for name, value in headers.items() if name != "MCP-Protocol-Version"}
    bare, _ = request(method, params, era=LEGACY, rpc_id="v")
    for response, number in ((server.post(body, unnamed), -32020), (server.post(bare, headers), -32602)):
        assert (response.status_code, response.json()["error"]["code"]) == (400, number)
        assert response.json()["id"] == "v"
    assert len(server.dispatcher.calls) == before


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Mcp-Name", "create_return"),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Name", ""),
        ("Mcp-Name", "get_order,get_order"),
    ],
)
def test_a_routing_header_that_says_something_else_than_the_body_is_a_mismatch(server, header, value):
    before = len(server.dispatcher.calls)
    response = server.call(headers={header: value})
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)
    assert len(server.dispatcher.calls) == before


ACCEPTS = {
    "application/json, text/event-stream": 200,
    "*/*": 200,
    "text/event-stream, application/json": 200,
    "APPLICATION/JSON, TEXT/EVENT-STREAM": 200,
    "application/json;q=0.5, text/event-stream": 200,
    "application/*, text/*": 200,
    "application/json": 406,
    "text/event-stream": 406,
    "text/html": 406,
    "": 406,
}
CONTENT_TYPES = {
    "application/json": 200,
    "application/json; charset=utf-8": 200,
    "APPLICATION/JSON": 200,
    "application/json ;charset=UTF-8": 200,
    "text/plain": 415,
    "application/jsonp": 415,
    "application/json-rpc": 415,
    "application/x-www-form-urlencoded": 415,
    "text/plain, application/json": 415,
    "": 415,
}


@ERAS
@pytest.mark.parametrize(("accept", "status"), ACCEPTS.items())
def test_both_media_types_of_an_answer_must_be_acceptable(server, era, accept, status):
    body, headers = request("tools/call", CALL, era=era, token=server.issuer.token())
    response = server.post(body, {**headers, "Accept": accept})
    assert response.status_code == status
    if status != 200:
        assert refused(server, response, status)
        assert response.json()["id"] is None


@ERAS
def test_who_does_not_say_what_is_acceptable_has_accepted_neither(server, era):
    body, headers = request("tools/call", CALL, era=era, token=server.issuer.token())
    lines = [f"{name}: {value}".encode() for name, value in headers.items() if name != "Accept"]
    before = len(server.dispatcher.calls)
    assert status_of(raw_post(server, *lines, body=body.encode())) == 406
    assert len(server.dispatcher.calls) == before


@ERAS
@pytest.mark.parametrize(("content_type", "status"), CONTENT_TYPES.items())
def test_a_body_is_json_and_says_so(server, era, content_type, status):
    body, headers = request("tools/call", CALL, era=era, token=server.issuer.token())
    response = server.post(body, {**headers, "Content-Type": content_type})
    assert response.status_code == status
    if status != 200:
        assert refused(server, response, status)
        assert response.json()["id"] is None


@ERAS
def test_a_request_without_a_content_type_is_refused(server, era):
    body, headers = request("tools/call", CALL, era=era, token=server.issuer.token())
    del headers["Content-Type"]
    refused(server, server.post(body, headers), 415)


@ERAS
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, identity", "x"])
def test_a_compressed_body_is_refused_before_it_is_unpacked(server, era, encoding):
    refused(server, send(server, b"\x1f\x8b" + b"\x00" * 1000, era, **{"Content-Encoding": encoding}), 415)


ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"order_id": "00123"},
    {"order_id": "1e5"},
    {"order_id": "123456789012345678901"},
    {"order_id": "true", "note": '{"a":1}'},
    {"order_id": "null", "lines": '[{"line_id": "1"}]'},
    {"order_id": "[1]", "quantity": 2, "big": 2**62, "nothing": None, "yes": True},
    {"quantitiy": 2, "force": True, "approved": True, "nested": {"extra": [{"deep": ""}]}},
    {"note": "NFD e\u0301 and \u0000 and \U0001f4a9"},
    {},
)


@ERAS
@pytest.mark.parametrize("arguments", ARGUMENTS, ids=repr)
def test_arguments_reach_the_dispatcher_as_they_were_sent(server, era, arguments):
    assert server.call(arguments=arguments, era=era).status_code == 200
    _, _, given = server.dispatcher.calls[-1]
    assert json.dumps(given) == json.dumps(arguments)


@ERAS
@pytest.mark.parametrize("number", ["2.0", "2.5", "1e0", "1E2", "-0.0"])
def test_a_number_that_is_no_integer_stays_one(server, era, number):
    body = request("tools/call", {"name": "get_order", "arguments": {"quantity": "@"}}, era=era)[0].replace(
        '"@"', number
    )
    assert send(server, body, era).status_code == 200
    _, _, given = server.dispatcher.calls[-1]
    assert isinstance(given["quantity"], float)


NEAR_MISSES = ("Get_order", "GET_ORDER", "get_order ", " get_order", "get_order\u200b", "get-order", "tools.get_order")
NEAR_MISSES += (
    "mcp__kessai__get_order",
    "get_order;create_return",
    "",
    "get_orde",
    "get_order\x00",
    "ｇet_order",
    "x" * 5000,
)


@ERAS
@pytest.mark.parametrize("name", NEAR_MISSES, ids=lambda name: repr(name)[:30])
def test_a_name_that_is_not_exactly_a_tools_is_unknown(server, era, name):
    before = len(server.dispatcher.calls)
    body = json.loads(request("ping", {"name": name, "arguments": {}}, era=era)[0])
    body["method"] = "tools/call"
    encoded = name if name.isascii() and name.isprintable() and name == name.strip() else None
    headers = {"Mcp-Method": "tools/call", "Mcp-Name": "x" if encoded is None else encoded}
    response = send(server, json.dumps(body), era, **headers)
    error = message_of(response)["error"]
    if error["code"] == -32602:
        assert error["data"]["code"] == "unknown_tool"
    else:  # a name that no header can carry does not match its header
        assert (era, error["code"]) == (MODERN, -32020)
    assert len(server.dispatcher.calls) == before


def test_names_of_tools_fit_the_narrowest_pattern_of_any_vendor(server):
    tools = message_of(server.rpc("tools/list", token=server.issuer.probe()))["result"]["tools"]
    names = [tool["name"] for tool in tools]
    assert names == sorted(set(names))
    assert all(name.isascii() and name.replace("_", "").isalnum() and len(name) <= 64 for name in names)
