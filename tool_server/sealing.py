"""Seals the log once a second, and exchanges heads with hosts: each side keeps what the other has signed.

Invariant: a host's head is kept only where a key signed it that is trusted for hosts' records; the server's own is
given to whoever brings such a one, and to nobody else. Any number of servers may seal at once: one of them does.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg
import structlog
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from shared_contracts.named_file import Unread, read_file
from shared_contracts.seal import (
    HEAD_CHARACTERS_MAX,
    SealKeys,
    SealLag,
    Signer,
    UnsealedError,
    keys_of,
    opened,
    signer_of,
    trusted_keys,
)
from tool_server.answers import refusal
from tool_server.errors import SettingsError
from tool_server.log import exception_fields
from tool_server.look import Look
from tool_server.settings import Settings
from tool_server.store import seals
from tool_server.store.pool import BusyError, Pool, UnavailableError
from tool_server.store.role import WrongRoleError

SECONDS = 0.4  # between rounds; what is new is sealed within a second
_LAG_SECONDS = 1.0
_KEY_BYTES_MAX = 64 * 1024
_AWAY = (psycopg.Error, UnavailableError, BusyError, WrongRoleError)
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SealParts:
    """What sealing needs: its own role's connection, the private key, and whose heads are kept."""

    dsn: SecretStr
    signer: Signer
    keys: SealKeys


def seal_parts(settings: Settings) -> SealParts | None:
    """Read what the settings name; None where nothing of it is set. Raises SettingsError."""
    named = {
        "SEALER_DSN": settings.sealer_dsn,
        "SEAL_KEY_FILE": settings.seal_key_file,
        "SEAL_KEYS_FILE": settings.seal_keys_file,
    }
    dsn, key, keys = settings.sealer_dsn, settings.seal_key_file, settings.seal_keys_file
    if dsn is None and key is None and keys is None:
        return None
    if dsn is None or key is None or keys is None:
        lacking = [f"KESSAI_TOOLS_{name}" for name, value in named.items() if value is None]
        raise SettingsError(f"{', '.join(lacking)}: needed too, to seal the log; `kessai secrets` makes what it names")
    try:
        signer = signer_of("tools", _content("SEAL_KEY_FILE", key, secret=True))
        trusted = trusted_keys(_content("SEAL_KEYS_FILE", keys))
    except UnsealedError as error:
        raise SettingsError(f"KESSAI_TOOLS_SEAL_KEY_FILE, KESSAI_TOOLS_SEAL_KEYS_FILE: {error}") from error
    return SealParts(dsn, signer, trusted)


def _content(name: str, file: Path, *, secret: bool = False) -> bytes:
    content = read_file(file, _KEY_BYTES_MAX, secret=secret, decides=True)
    if isinstance(content, Unread):
        raise SettingsError(f"KESSAI_TOOLS_{name}: {file} cannot be read: {content.why}")
    return content


class Sealing:
    """Opened around everything that writes to the log, so that its last lines are sealed as well."""

    def __init__(self, parts: SealParts) -> None:
        try:
            self._pool = Pool("sealer", parts.dsn.get_secret_value())
        except psycopg.ProgrammingError:  # its text quotes the string, which may hold a password
            raise SettingsError("KESSAI_TOOLS_SEALER_DSN is no connection string of PostgreSQL") from None
        self._signer, self._hosts = parts.signer, keys_of(parts.keys, "host")
        self._looks = Look(self._look, _LAG_SECONDS)
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._waits = False  # what there is could not be sealed
        self._kept = ""  # the head that was kept last: the same one again changes nothing

    async def __aenter__(self) -> Self:
        await self._pool.__aenter__()
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop without a cancellation, which could be lost; then seal what came last."""
        self._stop.set()
        if self._running is not None:
            await asyncio.wait([self._running])
        await self._looks.close()
        await self._pool.__aexit__()

    async def heads(self, request: Request) -> Response:
        """Take a host's newest head, and give ours."""
        text = await _body(request)
        if text is None:
            return refusal(413, "invalid_request", "A head is shorter.")
        try:
            head = opened(text, "host", self._hosts)
        except UnsealedError as error:
            log.warning("refused", code="invalid_request", reason=f"head: {error}")
            return refusal(403, "invalid_request", "This is no head that a trusted host has signed.")
        try:
            if text != self._kept:
                await seals.witness(self._pool, head, text)
                self._kept = text
            return JSONResponse({"head": await seals.newest(self._pool)})
        except _AWAY as error:
            log.warning("head_not_kept", **exception_fields(error))
            return refusal(503, "unavailable")

    async def lag(self) -> SealLag | None:
        """Tell how far behind the seals are; None where the database does not tell, or not in time."""
        return await self._looks.found()

    async def _look(self) -> SealLag | None:
        try:
            return await seals.lag(self._pool)
        except _AWAY:
            return None

    async def _run(self) -> None:
        while not self._stop.is_set():
            await self._seal()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), SECONDS)
        await self._seal()

    async def _seal(self) -> None:
        try:
            while await seals.seal_batch(self._pool, self._signer):
                pass
        except _AWAY as error:
            self._waits = True
            log.warning("sealing_waits", **exception_fields(error))
        except ValueError as error:  # what the database gave is no head: somebody has been at it
            self._waits = True
            log.error("sealing_broke", **exception_fields(error))
        else:
            if self._waits:
                log.info("sealing_goes_on")
            self._waits = False


async def _body(request: Request) -> str | None:
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > HEAD_CHARACTERS_MAX:
            return None
    return content.decode("ascii", "replace")
