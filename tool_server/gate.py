"""The way into `/mcp`: bearer → rate → media types → body → message → scope → revocation, then the protocol.

Invariant: nothing of a body is read before its sender is known, nothing is read beyond the limit, and no call goes
on whose token lacks the tool's scope. What is refused here was not executed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import structlog
from mcp.server.streamable_http import check_accept_headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage

from shared_contracts.task_token import Use
from tool_server.answers import protocol_fault, refusal
from tool_server.auth import Verifier
from tool_server.call import Caller
from tool_server.challenge import Challenges
from tool_server.jws import Reason
from tool_server.life import Life
from tool_server.limits import Failures, Rates
from tool_server.message import CALL, Message, read_message
from tool_server.offer import OFFER

log = structlog.get_logger()

BODY_BYTES_MAX = 256 * 1024
CALLER = "kessai.caller"  # the ASGI scope's member in which the handlers find who calls
REACHED = "kessai.reached"  # its member that says that a call came through the protocol's own code

_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] ([A-Za-z0-9._~+/-]+=*)")
_PROBE_METHODS = frozenset({"initialize", "ping", "server/discover", "tools/list"})
_KEPT = frozenset({"authorization", "content-type", "content-encoding", "content-length", "mcp-protocol-version"})

# Told only to whom the token's signature proves genuine; anybody else learns no more than "not accepted".
_TOLD = {
    Reason.TYPE: "The token is of another type.",
    Reason.ISSUER: "The token names another issuer than the one that its key belongs to.",
    Reason.TENANT: "The token names a tenant that its issuer does not speak for.",
    Reason.AUDIENCE: "The token was issued for another resource.",
    Reason.EXPIRED: "The token has expired.",
    Reason.NOT_YET: "The token is not valid yet; compare the clocks.",
    Reason.LIFETIME: "The token's lifetime is not one that this server accepts.",
    Reason.DETAILS: "The token's details do not fit its use.",
    Reason.SCOPE: "The token's scope does not fit its use.",
    Reason.CLAIMS: "A claim is missing or malformed.",
}


@dataclass(frozen=True, slots=True)
class GateParts:
    """What the gate decides with. `log_refusal` logs a call that is refused here.

    `token_fault` tells why a token that asks for no call is refused; of a call, its own statement finds out.
    """

    verifier: Verifier
    rates: Rates
    failures: Failures
    challenges: Challenges
    life: Life
    log_refusal: Callable[[Caller, str, str], Awaitable[None]]
    token_fault: Callable[[Caller], Awaitable[str | None]]


class Gate:
    """ASGI application in front of the protocol's own."""

    def __init__(self, app: ASGIApp, parts: GateParts) -> None:
        self._app, self._parts = app, parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller, or refuse it."""
        if self._parts.life.draining:
            await _wait(refusal(503, "unavailable", "The server is shutting down."), 1)(scope, receive, send)
            return
        with self._parts.life.hand():
            head = _kept(scope["headers"])
            caller = self._admit(head, _address(scope))
            if isinstance(caller, Response):
                await caller(scope, receive, send)
                return
            scope[CALLER] = caller
            await self._forward(scope, receive, send, head)

    def _admit(self, head: dict[str, list[bytes]], address: str) -> Caller | Response:
        credentials = head.get("authorization", [])
        if not credentials:
            answer = _challenged("token_missing", self._parts.challenges.missing())
            return self._failed(address, "token_missing", "missing", answer)
        bearer = _BEARER.fullmatch(credentials[0])
        if bearer is None or len(credentials) > 1:
            return self._unknown(address, Reason.MALFORMED)
        caller = self._parts.verifier.verify(bearer[1].decode("ascii"))
        if isinstance(caller, Reason):
            return self._unknown(address, caller)
        claims = caller.claims
        wait = self._parts.rates.admit(claims.iss, claims.sub, claims.tenant_id)
        if wait > 0:
            log.warning("refused", code="rate_limited", reason="rate", tenant=claims.tenant_id, jti=claims.jti)
            return _wait(refusal(429, "rate_limited"), wait)
        return caller

    def _failed(self, address: str, code: str, reason: str, answer: Response) -> Response:
        """Give the answer, or that the address has to wait, having failed too often; the way in stands in both."""
        log.warning("refused", code=code, reason=reason)
        wait = self._parts.failures.wait(address)
        if wait == 0.0:
            return answer
        return _wait(_challenged("rate_limited", self._parts.challenges.missing(), 429), wait)

    def _unknown(self, address: str, reason: Reason) -> Response:
        if reason is Reason.KEYS_UNUSABLE:
            log.warning("refused", code="unavailable", reason=reason)
            return _wait(refusal(503, "unavailable", "No key is trusted at the moment; see the server's log."), 5)
        told = _TOLD.get(reason)
        description = "The token is not accepted." if told is None else told
        details = None if told is None else {"reason": reason.value}
        answer = _with(
            refusal(401, "token_invalid", description, details=details),
            {"WWW-Authenticate": self._parts.challenges.invalid(description)},
        )
        return self._failed(address, "token_invalid", reason, answer)

    async def _forward(self, scope: Scope, receive: Receive, send: Send, head: dict[str, list[bytes]]) -> None:
        caller: Caller = scope[CALLER]
        outcome: bytes | Response | None = _media_fault(Request(scope), head)
        if outcome is None:
            outcome = await _body(receive, head.get("content-length", []))
        if isinstance(outcome, bytes):
            message = read_message(outcome, [value.decode("latin-1") for value in head.get("mcp-protocol-version", [])])
            if isinstance(message, Message):
                await self._pass_on(scope, _replay(outcome, receive), send, message)
                return
            if message.tool is not None:
                await self._parts.log_refusal(caller, message.tool, message.code)
            outcome = protocol_fault(message.number, message.text, message.rpc_id, message.code, message.more)
        if outcome is not None:  # None: the caller has gone, and nobody waits for an answer
            log.warning("refused", code="invalid_request", status=outcome.status_code, jti=caller.claims.jti)
            await outcome(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, message: Message) -> None:
        """Hand a message over. A call that the protocol's own code refuses comes to no handler that would log it."""
        caller: Caller = scope[CALLER]
        refused = self._scope_fault(caller, message)
        if refused is None and message.tool is None:
            refused = await self._token_fault(caller, message)
        if refused is not None:
            if message.tool is not None:
                await self._parts.log_refusal(caller, message.tool, "scope_missing")
            await refused(scope, receive, send)
            return
        await self._app(_said_plainly(scope), receive, send)
        if message.tool is not None and REACHED not in scope:
            await self._parts.log_refusal(caller, message.tool, "invalid_request")

    async def _token_fault(self, caller: Caller, message: Message) -> Response | None:
        code = await self._parts.token_fault(caller)
        if code is None:
            return None
        if code != "token_revoked":
            return _wait(refusal(503, code, rpc_id=message.rpc_id), 1)
        log.warning("refused", code=code, reason="revoked")
        return _challenged(code, self._parts.challenges.invalid("The token was revoked."))

    def _scope_fault(self, caller: Caller, message: Message) -> Response | None:
        tool = OFFER.get(message.tool) if message.method == CALL and message.tool is not None else None
        needed = None if tool is None else tool.scope.value
        if caller.claims.use is Use.PROBE:
            if message.method in _PROBE_METHODS or message.is_notification:
                return None
            text = "A probe reads what is offered and calls nothing."
        elif needed is None or needed in caller.scopes:
            return None
        else:
            text = f"The tool needs the scope {needed}."
        log.warning("refused", code="scope_missing", needed=needed, jti=caller.claims.jti, kid=caller.kid)
        return _with(
            refusal(403, "scope_missing", text, message.rpc_id, None if needed is None else {"scope": needed}),
            {"WWW-Authenticate": self._parts.challenges.insufficient(text, needed)},
        )


def _kept(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, list[bytes]]:
    kept: dict[str, list[bytes]] = {}
    for name, value in headers:
        text = name.decode("latin-1")
        if text in _KEPT:
            kept.setdefault(text, []).append(value)
    return kept


def _media_fault(request: Request, head: dict[str, list[bytes]]) -> Response | None:
    kinds = head.get("content-type", [])
    if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
        return refusal(415, "invalid_request", "The Content-Type must be application/json.")
    if any(value.lower() != b"identity" for value in head.get("content-encoding", [])):
        return refusal(415, "invalid_request", "The body must not be compressed.")
    if check_accept_headers(request) != (True, True):
        return refusal(406, "invalid_request", "Accept must allow application/json and text/event-stream.")
    return None


def _said_plainly(scope: Scope) -> Scope:
    """Media types are compared without regard to case here, and with it by a part of the protocol's own code."""
    name = b"content-type"
    scope["headers"] = [(key, b"application/json" if key == name else value) for key, value in scope["headers"]]
    return scope


async def _body(receive: Receive, declared: list[bytes]) -> bytes | Response | None:
    """Read the body up to the limit, whatever length was declared; None when the caller goes away meanwhile.

    How long it may take is the transport's bound (`tool_server.http`), which ends the connection.
    """
    too_large = refusal(413, "invalid_request", f"The body is larger than {BODY_BYTES_MAX} bytes.")
    if any(value.isdigit() and int(value[:20]) > BODY_BYTES_MAX for value in declared):
        return too_large
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_BYTES_MAX:
            return too_large
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Hand the body on as one message, then whatever comes after it: the caller's going away."""
    given = False

    async def replay() -> AsgiMessage:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _wait(response: Response, seconds: float) -> Response:
    return _with(response, {"Retry-After": str(max(1, math.ceil(seconds)))})


def _address(scope: Scope) -> str:
    """The peer of the connection, behind a proxy the proxy: what a header says of it anybody can write."""
    peer = scope.get("client")
    return "" if peer is None else str(peer[0])


def _challenged(code: str, challenge: str, status: int = 401) -> Response:
    return _with(refusal(status, code), {"WWW-Authenticate": challenge})


def _with(response: Response, headers: dict[str, str]) -> Response:
    response.headers.update(headers)
    return response
