"""How a run ends on the screen: what came of it, where the mail lies, what the customer reads, which code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from uuid import UUID

from rich.console import Console
from rich.text import Text

from host.commands.exits import Exit, exit_of
from host.commands.follow import STOPS
from host.commands.output import COLOURS, command, fact, own_members, say
from host.domain.draft import steps
from host.handover.sheet import is_a_persons
from host.settings import Settings
from host.store.record import Position
from shared_contracts.named_file import Unread, open_file
from shared_contracts.printed import plain
from shared_contracts.record import Record, Status

MAILS_LOOKED_AT = 200  # the newest; what was just sent is among them
HEADER_BYTES = 16_384


def show(to: Console, record: Record, settings: Settings, maildir: Path | None) -> None:
    """Say what came of it."""
    to.print()
    to.print(Text(record.state, style=COLOURS.get(record.state, "bold")), Text(f"({plain(record.reason)})"))
    if record.handover_reason is not None:
        fact(to, "a person", f"has it: {record.handover_reason}")
    for number, step in enumerate(steps(record.draft)):
        fact(to, "draft" if number == 0 else "then", step)
    for name, value in own_members(record.result):
        fact(to, name, value)
        mail = find_mail(maildir, value) if name == "message" and maildir is not None else None
        if mail is not None:
            fact(to, "mail", str(mail))
    if record.approvals and record.approvals[-1].decision is None and record.status is Status.WAITING:
        decide = command(settings, "approve", str(record.workflow_id), "--as", "NAME")
        fact(to, "decide", f"{decide}, until {record.approvals[-1].expires_at.astimezone():%Y-%m-%d %H:%M}")
    if record.state == "COMPENSATION_REQUIRED":
        fact(to, "undo", command(settings, "compensate", str(record.workflow_id), "--as", "NAME"))
    if record.supersedes is not None and record.state == "REJECTED" and record.superseded_by is None:
        anew = command(settings, "reapply", str(record.workflow_id), "--as-of", "TIME")
        fact(to, "asked", f"anew, and judged by the time of that; by the time of the first request: {anew}")
    if record.superseded_by is not None:
        fact(to, "new case", f"superseded by {record.superseded_by}")
    if is_a_persons(record):
        fact(to, "hand over", command(settings, "handover", str(record.workflow_id)))
    fact(to, "customer", record.customer_message.ja)
    fact(to, "", record.customer_message.en)
    fact(to, "record", command(settings, "show", str(record.workflow_id)))


def code(position: Position, settings: Settings, workflow_id: UUID) -> Exit:
    """Give the exit code; say so where the workflow did not come to rest in an end or with a person."""
    found = exit_of(position.state, position.control_state)
    if found is not None:
        return found
    go_on = command(settings, "run", str(workflow_id))
    if position.wake_reason in STOPS:
        lift = command(settings, "resume", "--help")
        say(f"halted by a stop: an operator lifts that and releases the case ({lift}); then a worker, or: {go_on}")
        say(f"to hand it over meanwhile: {command(settings, 'handover', str(workflow_id))}")
        return Exit.STOPPED
    say(f"it stands in {position.state} and nobody works on it. Go on with: {go_on}")
    return Exit.NOT_READY


def find_mail(maildir: Path, message_id: str) -> Path | None:
    """Find the file of a message among the newest of a Maildir."""
    newest = sorted((found for part in ("new", "cur") for found in _dated(maildir / part)), reverse=True)
    return next((file for _, file in islice(newest, MAILS_LOOKED_AT) if _is(file, message_id)), None)


def _dated(folder: Path) -> Iterator[tuple[float, Path]]:
    """Give each file with its time; a reader moves files at any moment, and what has gone is passed over."""
    try:
        files = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    for file in files:
        with suppress(FileNotFoundError):
            yield file.stat().st_mtime, file


def _is(file: Path, message_id: str) -> bool:
    descriptor = open_file(file)
    if isinstance(descriptor, Unread):  # moved, or no file that we may read
        return False
    with os.fdopen(descriptor, "rb") as opened:
        head = opened.read(HEADER_BYTES).replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    return any(
        name.strip().lower() == b"message-id" and message_id.encode() in value
        for name, _, value in (header.partition(b":") for header in head.split(b"\n"))
    )
