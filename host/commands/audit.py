"""`kessai audit`: verify the sealed record or an export of it, export it, cut off what is old, erase a line's words.

Invariant: keys are those that the operator names, or this machine's own; none comes from what is verified.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from psycopg import AsyncConnection
from rich.text import Text

from host.commands.auditors import auditing
from host.commands.exits import CommandError, Exit
from host.commands.output import add, console, say, table, write_json
from host.commands.seal_keys import read_key_files
from host.commands.workplace import owning
from host.domain.sealed import Verdict
from host.evaluation import sealed
from host.record_views import RecordCut, RecordExported, RecordFinding, RecordSide, RecordVerified
from host.settings import Settings, SettingsError, home_root, lacks, of_auditors
from host.stack import assembly
from host.stack.bring_up import MIGRATION_SECONDS_MAX
from host.stack.home import existing_home
from host.stack.keys import key_files
from host.stack.processes import run_to_end
from host.store import seals
from shared_contracts.base import dump
from shared_contracts.named_file import Unread, open_file
from shared_contracts.operator import operator
from shared_contracts.seal import SealKeys, SideName

FILE_MODE = 0o600


async def verify(settings: Settings, export: Path | None, keys: list[Path], *, as_json: bool) -> Exit:
    """Verify; raises CommandError, SettingsError, NotReadyError."""
    trusted = _keys(settings, keys)
    if export is None:
        async with auditing(settings) as auditors:
            found = await sealed.verified(auditors, trusted)
    else:
        found = _exported(export, trusted)
    view = _view(found)
    _tell(view, as_json=as_json)
    if not view.whole:
        return Exit.FAILED
    return Exit.DONE if any(side.lines for side in view.sides) else Exit.NOTHING_COMPARED


async def export(settings: Settings, file: Path, *, as_json: bool) -> None:
    """Write an export; one that is there is evidence, and stays."""
    with _new(file) as to:
        async with auditing(settings) as auditors:
            counts = await sealed.exported(auditors, to.write)
    view = RecordExported(file=str(file), host=counts["host"], tools=counts["tools"])
    if as_json:
        write_json(dump(view))
        return
    say(f"exported {view.host} lines of the host's record and {view.tools} of the tool server's to {file}")
    say("It has ids, codes and digests in it, and is verified anywhere: kessai audit verify --export FILE --keys FILE")


async def cut(settings: Settings, keys: list[Path], *, verify_first: bool, as_json: bool) -> Exit:
    """Take out what is older than the setting says, on every side that is ours; nothing of what is not whole."""
    days = settings.record_days
    if days is None:
        raise SettingsError(lacks("RECORD_DAYS", "Show that the record is whole"))
    if verify_first:
        if settings.migrate_dsn is not None and len(of_auditors(settings)) < len(sealed.SIDES):
            raise SettingsError("\n".join(map(lacks, ("AUDIT_HOST_DSN", "AUDIT_TOOLS_DSN"))))
        async with auditing(settings) as auditors:
            view = _view(await sealed.verified(auditors, _keys(settings, keys)))
        if not view.whole:  # what told of a row that is gone would go too
            _tell(view, as_json=as_json)
            say("nothing was cut: the record is not whole")
            return Exit.FAILED
    before = datetime.now(UTC) - timedelta(days=days)
    async with owning(settings) as place:
        if place.dsn is None:
            raise SettingsError(lacks("MIGRATE_DSN"))
        async with await AsyncConnection.connect(place.dsn, autocommit=True) as connection:
            last = await seals.cut(connection, before, operator())
        if place.parts is not None:
            program = assembly.cut_log(place.parts, days, verify_first=verify_first)
            await run_to_end(place.parts.home, program, MIGRATION_SECONDS_MAX)
    if as_json:
        write_json(dump(RecordCut(before=before, host_cut_to=last, tools_too=place.parts is not None)))
        return Exit.DONE
    say(f"the host's record begins behind line {last}" if last else f"nothing is older than {days} days")
    say(
        "the tool server's log is cut to the same days"
        if place.parts is not None
        else "the tool server's log is its own operator's: kessai-tools cut"
    )
    return Exit.DONE


async def erase(settings: Settings, number: int) -> None:
    """Erase the words of one line; that it was done is a line itself."""
    async with _owner(settings) as connection:
        done = await seals.erase(connection, number, operator())
    if not done:
        mend = "kessai audit verify and an export name each line's row; a new row is sealed within a second."
        raise CommandError(Exit.BAD_INPUT, f"no sealed row {number} of the audit has words to erase", mend)
    say(f"the words of the audit's row {number} are gone for good; the chain is as it was")


@contextmanager
def _new(file: Path) -> Iterator[TextIO]:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except OSError as error:
        why = "it is there already" if isinstance(error, FileExistsError) else error.strerror
        raise CommandError(Exit.BAD_INPUT, f"{file} cannot be written: {why}", "Name a new file.") from error
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as to:
            yield to
    except BaseException:  # an interruption too: half an export is none
        file.unlink(missing_ok=True)
        raise


async def restored(settings: Settings) -> None:
    """Note where the record of a dump ends."""
    async with _owner(settings) as connection:
        await seals.note_restored(connection)
    say("it is noted where the restored record ends; the tool server's own operator runs: kessai-tools restored")


@asynccontextmanager
async def _owner(settings: Settings) -> AsyncIterator[AsyncConnection[Any]]:
    async with owning(settings) as place:
        if place.dsn is None:
            raise SettingsError(lacks("MIGRATE_DSN"))
        async with await AsyncConnection.connect(place.dsn, autocommit=True) as connection:
            yield connection


def _keys(settings: Settings, files: list[Path]) -> SealKeys:
    """Read the named files, or those of the settings or this machine."""
    if not files and settings.seal_keys_file is not None:
        files = [settings.seal_keys_file]
    # another machine's record is not verified with this one's keys, by which none of it is signed
    home = None if of_auditors(settings) else existing_home(home_root(settings))
    if not files and home is not None:
        files = [key_files(home).seal_keys]
    if not files:
        mend = (
            "Name it with --keys, or in KESSAI_SEAL_KEYS_FILE: seal-keys.json, which kessai secrets made, kept where "
            "the databases cannot reach."
        )
        raise CommandError(Exit.BAD_INPUT, "no file of public keys to verify with", mend)
    return read_key_files(files)


def _exported(file: Path, keys: SealKeys) -> Mapping[SideName, Verdict]:
    mend = "Name a file that kessai audit export has written, as it was written."
    opened = open_file(file)
    if isinstance(opened, Unread):
        raise CommandError(Exit.BAD_INPUT, f"{file} cannot be read: {opened.why}", mend)
    try:
        with os.fdopen(opened, "rb") as lines:
            return sealed.verified_export(iter(lambda: lines.readline(sealed.LINE_BYTES_MAX), b""), keys)
    except OSError as error:
        raise CommandError(Exit.BAD_INPUT, f"{file} cannot be read: {error.strerror}", mend) from error
    except sealed.NotAnExportError as error:
        raise CommandError(Exit.BAD_INPUT, f"{file} is no whole export: {error}", mend) from error


def _view(found: Mapping[SideName, Verdict]) -> RecordVerified:
    sides = tuple(
        RecordSide(
            side=side, first=of.first, last=of.last, lines=of.lines, heads=of.heads, seen_by_other=of.seen,
            waiting=of.waiting, lost_by_restore=of.lost, erased=tuple(of.erased),
            findings=tuple(
                RecordFinding(kind=one.kind.value, line=one.n, rows=one.rows, why=one.why) for one in of.findings
            ),
        )
        for side, of in found.items()
    )  # fmt: skip
    return RecordVerified(at=datetime.now(UTC), whole=not any(side.findings for side in sides), sides=sides)


def _tell(view: RecordVerified, *, as_json: bool) -> None:
    if as_json:
        write_json(dump(view))
    else:
        _show(view)


def _show(view: RecordVerified) -> None:
    to = console()
    for side in view.sides:
        about = f"{side.lines} lines, {side.heads} signed heads; the other side has seen it up to {side.seen_by_other}"
        more = "".join(
            f"; {count} {what}"
            for count, what in (
                (side.waiting, "wait for their seal"),
                (len(side.erased), "with words erased"),
                (side.lost_by_restore, "heads of what a restore did not bring back"),
            )
            if count
        )
        to.print(Text(f"{side.side:<6} lines {side.first} to {side.last}: {about}{more}"), soft_wrap=True)
    findings = [(side.side, one) for side in view.sides for one in side.findings]
    if not findings:
        to.print(Text("every line is what was sealed", style="green"))
        return
    rows = table("side", "", "line", "rows", "what is wrong")
    for name, one in findings:
        add(rows, name, one.kind, one.line or "", ", ".join(one.rows), one.why)
    to.print(rows)
    if any(one.kind == "unsigned" for _, one in findings):
        say("After a restore or a change of keys, name every seal-keys.json that there has been, each with --keys.")
