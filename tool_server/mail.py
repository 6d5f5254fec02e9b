"""Two ways for a finished message to leave: into a Maildir, or to an SMTP server.

Invariant: `Sent` only where the message stands in the Maildir's `new/` or the server said 250 after DATA;
`NotSent` only where it surely did not leave. Everything in between is `Lost`, and is never sent again by itself.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from email import message_from_bytes
from email.utils import getaddresses, parseaddr
from pathlib import Path
from typing import Protocol, TypeAlias

import aiosmtplib
import structlog

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Sent:
    """It has left."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The server refused it for good; `reason` is its reply code."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotSent:
    """It surely did not leave; it may be tried again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """It may have left: the answer to DATA did not come."""

    reason: str


Delivery: TypeAlias = Sent | Rejected | NotSent | Lost


class Channel(Protocol):
    """How messages leave. `repeatable`: delivering the same message again is no second mail."""

    name: str
    repeatable: bool

    async def deliver(self, message_id: str, content: bytes) -> Delivery:
        """Let one message leave; never raises for what a disk or a server does."""
        ...

    async def fault(self) -> str | None:
        """Give the reason why nothing can leave now, as far as that can be told without sending."""
        ...


class Maildir:
    """A directory in Maildir format. The file's name derives from the Message-ID, hence from the key."""

    name = "maildir"
    repeatable = True

    def __init__(self, root: Path) -> None:
        self._root = root

    async def deliver(self, message_id: str, content: bytes) -> Delivery:
        """Write, sync, then link under the final name: the file appears whole or not at all, and once."""
        return await asyncio.to_thread(self._deliver, message_id.strip("<>").replace("@", "."), content)

    async def fault(self) -> str | None:
        """Say why the directory cannot be written."""
        try:
            self._make()
        except OSError as error:
            log.warning("maildir_unwritable", reason=error.strerror)
            return "maildir_unwritable"
        return None if os.access(self._root / "tmp", os.W_OK) else "maildir_unwritable"

    def _make(self) -> None:
        for part in ("tmp", "new", "cur"):
            (self._root / part).mkdir(mode=0o700, parents=True, exist_ok=True)

    def _deliver(self, name: str, content: bytes) -> Delivery:
        try:
            self._make()
            if not self._stands(name):
                self._link(name, content)
        except OSError as error:
            return NotSent(f"maildir: {error.strerror}")
        return Sent()

    def _stands(self, name: str) -> bool:
        """Tell whether the mail is there already; a reader moves it to `cur/` and appends its flags."""
        return (self._root / "new" / name).exists() or any((self._root / "cur").glob(f"{name}*"))

    def _link(self, name: str, content: bytes) -> None:
        draft = self._root / "tmp" / f"{name}.{secrets.token_hex(6)}"
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # another handler of the same key was faster: the same mail
                os.link(draft, self._root / "new" / name)
        finally:
            draft.unlink(missing_ok=True)
        directory = os.open(self._root / "new", os.O_RDONLY)
        try:
            os.fsync(directory)  # the name itself survives a power cut
        finally:
            os.close(directory)


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """Where the SMTP server is, and how it knows us. `tls` is `starttls`, `implicit` or `none`."""

    host: str
    port: int
    tls: str
    helo: str
    user: str | None
    password: str | None


_SMTP_SECONDS = 10.0  # for each step of the dialogue; a handler that waits longer is found `sending` meanwhile


class Smtp:
    """An SMTP server; a connection per message, since notices are few and an idle one may be dead."""

    name = "smtp"
    repeatable = False

    def __init__(self, server: SmtpServer) -> None:
        self._server = server

    async def deliver(self, message_id: str, content: bytes) -> Delivery:  # noqa: ARG002 — it stands in the content
        """Speak to the server up to DATA, then send; where it broke off decides what is known."""
        sender, recipient = _envelope(content)
        client = self._client()
        try:
            await client.connect()
            if self._server.user is not None and self._server.password is not None:
                await client.login(self._server.user, self._server.password)
            await client.mail(sender)
            await client.rcpt(recipient)
        except (aiosmtplib.SMTPException, OSError) as error:
            client.close()
            return _before_data(error)
        return await self._data(client, content)

    async def fault(self) -> str | None:
        """Nothing can be told without a connection; a notice that meets a dead server waits in the outbox."""
        return None

    def _client(self) -> aiosmtplib.SMTP:
        return aiosmtplib.SMTP(
            hostname=self._server.host,
            port=self._server.port,
            local_hostname=self._server.helo,
            timeout=_SMTP_SECONDS,
            use_tls=self._server.tls == "implicit",
            start_tls=self._server.tls == "starttls",
        )

    async def _data(self, client: aiosmtplib.SMTP, content: bytes) -> Delivery:
        try:
            await client.data(content)
        except (aiosmtplib.SMTPException, OSError) as error:
            return _after_data(error)
        else:
            with suppress(aiosmtplib.SMTPException, OSError):  # it was accepted; a lost goodbye changes nothing
                await client.quit()
            return Sent()
        finally:
            client.close()


def _envelope(content: bytes) -> tuple[str, str]:
    """Read sender and recipient off the headers as they stand; nothing in a name is decoded for it."""
    message = message_from_bytes(content)
    ((_, recipient),) = getaddresses([str(message["To"])])
    return parseaddr(str(message["From"]))[1], recipient


def _before_data(error: aiosmtplib.SMTPException | OSError) -> Delivery:
    """Refusing this sender or recipient is for good; refusing us, or not answering, may pass."""
    match error:
        case aiosmtplib.SMTPSenderRefused(code=code) | aiosmtplib.SMTPRecipientRefused(code=code) if _for_good(code):
            return Rejected(f"smtp {code}")
        case aiosmtplib.SMTPResponseException(code=code):
            return NotSent(f"smtp {code}")
        case _:
            return NotSent(type(error).__name__)


def _after_data(error: aiosmtplib.SMTPException | OSError) -> Delivery:
    """A refusal says that the message was not taken. The reply's text may hold an address: only its code is kept."""
    match error:
        case aiosmtplib.SMTPResponseException(code=code) if _for_good(code):
            return Rejected(f"smtp {code}")
        case aiosmtplib.SMTPResponseException(code=code) if 400 <= code < 500:
            return NotSent(f"smtp {code}")
        case _:
            return Lost(type(error).__name__)


def _for_good(code: int) -> bool:
    return 500 <= code < 600
