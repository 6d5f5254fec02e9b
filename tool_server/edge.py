"""The outermost check, for every route and before any other: to whom the request goes, from where, and in what coding.

Invariant: only configured names are served (421), and a browser's page from elsewhere is refused (403), so that a
rebound DNS name reaches nothing. A body in another transfer coding than chunks alone is never read as if it had none
(501; RFC 9112 §6.1). White space around header values is removed here, once, for everything behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from tool_server.answers import refusal

log = structlog.get_logger()
_OWS = b" \t"
_CODINGS: tuple[list[bytes], ...] = ([], [b"chunked"])  # HTTP's own parser refuses a length beside it


class EdgeGuard:
    """ASGI middleware. `hosts` are exact `name[:port]` values, `origins` exact `scheme://name[:port]` values."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower().encode() for host in hosts)
        self._origins = frozenset(origin.lower().encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            return  # no WebSocket is spoken here
        headers = scope["headers"]
        if any(value[:1] in _OWS or value[-1:] in _OWS for _, value in headers if value):
            headers = scope["headers"] = [(name, value.strip(_OWS)) for name, value in headers]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            log.warning("refused", code="invalid_request", reason="host")
            answer = refusal(421, "invalid_request", "This server does not serve the host that the request names.")
            await answer(scope, receive, send)
            return
        if any(name == b"origin" and value.lower() not in self._origins for name, value in headers):
            log.warning("refused", code="invalid_request", reason="origin")
            await refusal(403, "invalid_request", "Pages of this origin are not served.")(scope, receive, send)
            return
        if [value.lower() for name, value in headers if name == b"transfer-encoding"] not in _CODINGS:
            log.warning("refused", code="invalid_request", reason="coding")
            answer = refusal(501, "invalid_request", "A body comes as it is or in chunks, in no other transfer coding.")
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)


def served_hosts(resource: str, allowed: Iterable[str]) -> tuple[str, ...]:
    """Give the names that are served: the canonical one of the resource, and those that the operator adds."""
    return (urlsplit(resource).netloc, *allowed)
