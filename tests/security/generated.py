"""Requests that nobody thought of: a good call of either revision, changed in every part, with a right token or none.

Invariant: what is sent is known, so that its answer can be judged: bytes, what they mean as JSON, whose token it was.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from shared_contracts.strict_json import NotJsonError, strict_json
from tests.security.forgery.forge import CALLS, DROP, Forge, Wire
from tests.support.fuzzing import members, names, strings, texts
from tests.support.server import LEGACY, MODERN

NOTHING: Any = object()  # no JSON, or JSON that two parsers could read differently
TOKENS = (
    "right", "right", "right", "right", "write", "write", "probe", "external", "of another tool", "tampered", "expired",
    "no JWS", "",
)  # fmt: skip
GENUINE = frozenset(("right", "write", "probe", "external", "of another tool"))
METHODS = (
    "tools/call", "tools/list", "ping", "initialize", "server/discover", "notifications/initialized",
    "notifications/cancelled", "notifications/tools/call", "resources/read", "prompts/get", "sampling/createMessage",
    "completion/complete", "logging/setLevel", "subscriptions/listen", "tasks/get", "TOOLS/CALL", "tools/call ", "",
    "rpc.x",
)  # fmt: skip
TOOLS = (*CALLS, "issue_refund", "", "get_order\\u0000", "get_order ", "ｇet_order", "x" * 5000)
HEADERS: dict[str, tuple[str, ...]] = {
    "Content-Type": (
        "text/plain",
        "application/json; charset=utf-16",
        "APPLICATION/JSON",
        "application/json,text/html",
        "",
    ),
    "Accept": ("application/json", "text/event-stream", "*/*", "text/html", "*/*;q=0", ";;,", ""),
    "Mcp-Method": (*METHODS[:3], "", "tools/call,tools/call", "=?utf-8?B?dG9vbHMvY2FsbA==?="),
    "Mcp-Name": ("get_order", "create_return", "", "get_order ", "花子", "=?base64?Z2V0X29yZGVy?="),
    "Mcp-Param-Order": ("A-1", "B-1"),
    "MCP-Protocol-Version": (MODERN, LEGACY, "2024-11-05", "2099-01-01", "", "2026-07-28, 2025-11-25", "-1", "１"),
    "Mcp-Session-Id": ("1", "../..", "x" * 2000),
    "Last-Event-ID": ("7", "-1"),
    "Content-Encoding": ("gzip", "identity", "deflate, gzip"),
    "Origin": ("null", "http://evil.example", "http://127.0.0.1"),
    "Expect": ("100-continue", "nothing"),
    "Upgrade": ("websocket", "h2c"),
    "Connection": ("keep-alive, upgrade", "close"),
    "X-Forwarded-Host": ("evil.example",),
    "Range": ("bytes=0-1,0-1,0-1",),
    "X-Long": ("x" * 70_000,),
}
IDS = (
    "0", "-1", '"a"', '"1"', '"花"', "null", "true", "1.5", "1.0", "[1]", "{}", str(2**53 + 1), str(2**63), "9" * 400,
)  # fmt: skip
PARTS = ("method", "tool", "arguments", "id", "params", "message", "headers", "body", "length", "line", "framing")
LINES = (
    "POST /mcp", "GET /mcp", "HEAD /mcp", "PUT /mcp", "DELETE /mcp", "OPTIONS /mcp", "TRACE /mcp", "post /mcp",
    "POST /mcp/", "POST /MCP", "POST //mcp", "POST /", "POST /mcp?a=b", "POST /mcp%00", "POST *", "POST /healthz",
)  # fmt: skip
FRAMINGS = (
    b"Content-Length: -1", b"Content-Length: 1e3", b"Content-Length: 5\r\nContent-Length: 6", b"",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked\r\nContent-Length: 3",
    b"Transfer-Encoding: gzip, chunked", b"Content-Length: 99999999999999999999",
)  # fmt: skip


@dataclass(frozen=True)
class Made:
    """What is sent; the token is made when it is sent, since it lives for a minute."""

    who: str
    era: str
    text: bytes
    padding: int  # blanks behind it
    headers: dict[str, Any]
    line: str
    framing: tuple[bytes, ...] | None
    cut: bool  # the sender ends before the body does

    @property
    def body(self) -> bytes:
        return self.text + b" " * self.padding

    @property
    def meaning(self) -> Any:
        try:
            return strict_json(self.body)
        except NotJsonError:
            return NOTHING

    @property
    def tool(self) -> str | None:
        """Whose call it is, as far as anybody can tell."""
        value = self.meaning
        params = value.get("params") if isinstance(value, dict) and value.get("method") == "tools/call" else None
        name = params.get("name") if isinstance(params, dict) else None
        return name if isinstance(name, str) else None

    @property
    def bound(self) -> str:
        """The tool that the token is for."""
        return {"write": "create_return", "of another tool": "find_return"}.get(self.who, "get_order")

    def wire(self, forge: Forge) -> Wire:
        call = forge.call(
            _token(self, forge), headers=self.headers, body=lambda _: self.body, era=self.era,
            line=f"{self.line} HTTP/1.1".encode(), framing=self.framing,
        )  # fmt: skip
        return replace(call, cut=self.cut)


def _token(made: Made, forge: Forge) -> str | None:
    match made.who:
        case "":
            return None
        case "probe":
            return forge.probe()
        case "external":
            return forge.external()
        case "tampered":
            good = forge.token()
            return good[:-8] + good[-8:].swapcase()
        case "expired":
            return forge.token(**forge.lives(30, since=-600))
        case "no JWS":
            return "a.b.c"
        case _:
            return forge.token(tool=made.bound)


def _good(tool: str, method: str, era: str) -> tuple[dict[str, str], dict[str, str]]:
    """The message and its params, each member as its text."""
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": era, f"{prefix}clientCapabilities": {}} if era == MODERN else {}
    params = {'"name"': f'"{tool}"', '"arguments"': json.dumps(CALLS.get(tool, {})), '"_meta"': json.dumps(meta)}
    return {'"jsonrpc"': '"2.0"', '"id"': "1", '"method"': f'"{method}"'}, params


def _changed(draw: st.DrawFn, plain: dict[str, str]) -> list[tuple[str, str]]:
    """Drop, replace, add or double a member."""
    pairs = list(plain.items())
    for _ in range(draw(st.integers(1, 2))):
        at, what = draw(st.integers(0, len(pairs))), draw(st.sampled_from(("value", "drop", "add", "twice")))
        here = pairs[at : at + 1]
        match what:
            case "value":
                pairs[at : at + 1] = [(name, draw(texts)) for name, _ in here]
            case "drop":
                pairs[at : at + 1] = []
            case "add":
                pairs.insert(at, (draw(names), draw(texts)))
            case _:
                pairs.insert(draw(st.integers(0, len(pairs))), *(here or [(draw(names), draw(texts))]))
    return pairs


def _spoilt(draw: st.DrawFn, text: str) -> bytes:
    """The whole body cut, doubled, in other letters, with noise in it."""
    body = text.encode("utf-8", "surrogatepass")
    match draw(st.sampled_from(("cut", "batch", "twice", "utf-16", "bom", "noise", "empty"))):
        case "cut":
            return body[: draw(st.integers(0, len(body)))]
        case "batch":
            return b"[" + b",".join([body] * draw(st.integers(1, 3))) + b"]"
        case "twice":
            return body + draw(st.sampled_from((b"", b"\n", b","))) + body
        case "utf-16":
            return text.encode("utf-16", "surrogatepass")
        case "bom":
            return b"\xef\xbb\xbf" + body
        case "noise":
            at = draw(st.integers(0, len(body)))
            return body[:at] + draw(st.binary(max_size=8)) + body[at:]
        case _:
            return b""


@st.composite
def requests(draw: st.DrawFn) -> Made:
    """A good call with a few of its parts changed, so that what is wrong with it is not always the first thing."""
    parts = draw(st.lists(st.sampled_from(PARTS), max_size=3))
    who, era = draw(st.sampled_from(TOKENS)), draw(st.sampled_from((MODERN, LEGACY)))
    method = draw(st.sampled_from(METHODS)) if "method" in parts else "tools/call"
    tool = draw(st.sampled_from(TOOLS)) if "tool" in parts else {"write": "create_return"}.get(who, "get_order")
    message, params = _good(tool, method, era)
    if "arguments" in parts:
        params['"arguments"'] = members(_changed(draw, {'"order_id"': draw(strings), '"lines"': draw(texts)}))
    if "id" in parts:
        message['"id"'] = draw(st.sampled_from(IDS) | texts)
    pairs = [*message.items(), ('"params"', members(_changed(draw, params) if "params" in parts else params.items()))]
    if method.startswith("notifications/") and draw(st.booleans()):
        pairs = [pair for pair in pairs if pair[0] != '"id"']
    if "message" in parts:
        pairs = _changed(draw, dict(pairs))
    headers: dict[str, Any] = {"Mcp-Method": method or DROP, "Mcp-Name": tool if tool.isascii() else DROP}
    for name in draw(st.lists(st.sampled_from(sorted(HEADERS)), max_size=2)) if "headers" in parts else ():
        headers[name] = draw(st.sampled_from((DROP, *HEADERS[name])))
    body = members(draw(st.permutations(pairs)))
    return Made(
        who, era, _spoilt(draw, body) if "body" in parts else body.encode("utf-8", "surrogatepass"),
        draw(st.sampled_from((0, 1, 200_000, 256 * 1024, 1024 * 1024))) if "length" in parts else 0, headers,
        draw(st.sampled_from(LINES)) if "line" in parts else "POST /mcp",
        (draw(st.sampled_from(FRAMINGS)),) if "framing" in parts else None,
        cut="framing" in parts and draw(st.booleans()),
    )  # fmt: skip
