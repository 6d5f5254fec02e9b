"""Whether calls can be served now, and if not, why: what `/readyz` says."""

from __future__ import annotations

import asyncio

import structlog

from tool_server.keys import Keyring
from tool_server.life import Life
from tool_server.log import exception_fields
from tool_server.mcp_server import DispatcherProtocol
from tool_server.offer import incomplete

log = structlog.get_logger()

_ANSWER_SECONDS = 2.0  # a probe that waits longer than its prober tells nothing


async def unready(keyring: Keyring, life: Life, dispatcher: DispatcherProtocol) -> str | None:
    """Give None, or the first reason; a reason names no file, host or person, for anybody may ask."""
    if life.draining:
        return "draining"
    if keyring.trust().problem is not None:
        return "keys_unusable"
    blank = incomplete()
    if blank:
        return f"incomplete_tools: {', '.join(blank)}"
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await dispatcher.ready()
    except TimeoutError:
        return "readiness_slow"
    except Exception as error:  # noqa: BLE001 - whatever it is, the server is not ready, and the log says what
        log.error("readiness_failed", **exception_fields(error))
        return "internal_error"
