"""The tool server's HTTP application: one MCP endpoint, its metadata, and whether it works.

    EdgeGuard (Host, Origin) ─┬─ POST /mcp ── Gate (bearer, rate, body, scope) ── MCP, both revisions ── dispatcher
                              ├─ GET  /.well-known/oauth-protected-resource/mcp
                              ├─ POST /heads ── a host's signed head ── the log's own
                              └─ GET  /healthz   /readyz

Invariant: there is no other way to a tool than through the guard and the gate, and no switch that opens one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any
from urllib.parse import urlsplit

import structlog
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from shared_contracts.base import dump
from shared_contracts.seal import PATH
from tool_server.answers import refusal
from tool_server.auth import Verifier
from tool_server.challenge import Challenges, metadata
from tool_server.edge import EdgeGuard, served_hosts
from tool_server.gate import BODY_BYTES_MAX, Gate, GateParts
from tool_server.keys import Keyring
from tool_server.life import Life
from tool_server.limits import Failures, Rates
from tool_server.log import exception_fields
from tool_server.mcp_server import DispatcherProtocol, build_mcp_server
from tool_server.readiness import unready
from tool_server.sealing import Sealing, seal_parts
from tool_server.settings import Settings

log = structlog.get_logger()


def build_app(settings: Settings, dispatcher: DispatcherProtocol) -> Starlette:
    """Put the parts together; `app.state.life` tells and ends its life. Raises TrustError for untrustworthy keys."""
    keyring, life, challenges = Keyring(settings.issuers_file), Life(), Challenges(settings.resource)
    manager = StreamableHTTPSessionManager(
        build_mcp_server(dispatcher), json_response=False, stateless=True, max_request_body_size=BODY_BYTES_MAX
    )
    parts = GateParts(
        verifier=Verifier(keyring, settings.resource),
        rates=Rates(settings.rate_principal, settings.rate_tenant),
        failures=Failures(settings.rate_failures),
        challenges=challenges,
        life=life,
        log_refusal=dispatcher.log_refusal,
        token_fault=dispatcher.token_fault,
    )

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_request: Request) -> Response:
        reason, record = await asyncio.gather(unready(keyring, life, dispatcher), _record(sealing))
        said = {"ready": reason is None, "reason": reason, "record": record}
        return JSONResponse(said, 200 if reason is None else 503)

    async def protected_resource(_request: Request) -> Response:
        return JSONResponse(metadata(settings.resource, keyring.trust().issuers))

    async def bug(_request: Request, error: Exception) -> Response:
        """A fault of the edge itself: the caller learns a code, and that its call may have been carried out."""
        log.error("edge_failed", **exception_fields(error))
        return refusal(500, "internal_error")

    sealed = seal_parts(settings)
    sealing = None if sealed is None else Sealing(sealed)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        if sealing is None:
            log.warning("record_not_sealed", setting="KESSAI_TOOLS_SEALER_DSN")
        async with nullcontext() if sealing is None else sealing, dispatcher, manager.run():
            yield

    app = Starlette(
        routes=[
            Route(urlsplit(settings.resource).path, Gate(StreamableHTTPASGIApp(manager), parts), methods=["POST"]),
            Route(challenges.metadata_path, protected_resource, methods=["GET"]),
            *([] if sealing is None else [Route(PATH, sealing.heads, methods=["POST"])]),
            Route("/healthz", healthz, methods=["GET"]),
            Route("/readyz", readyz, methods=["GET"]),
        ],
        middleware=[
            Middleware(
                EdgeGuard,
                hosts=served_hosts(settings.resource, settings.allowed_hosts),
                origins=settings.allowed_origins,
            )
        ],
        exception_handlers={Exception: bug},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # one address; a redirect would be followed without the token, or with it
    app.state.life = life
    return app


async def _record(sealing: Sealing | None) -> str | dict[str, Any]:
    """What is said of the seals; no call waits for them, so they make nothing unready."""
    if sealing is None:
        return "not_configured"
    lag = await sealing.lag()
    return "unavailable" if lag is None else dump(lag)
