"""`approver add`, `trust`, `revoke`, `list`: whose signed decisions the host takes, each act audited.

On one machine the tool server is told by a process of its own, with its own settings; it is never told by the host,
and where it is another machine's, its operator gets the command to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from host.commands import passphrase, sheets
from host.commands.approver_keys import KeyFiles, files_of, make, read_public
from host.commands.exits import CommandError, Exit
from host.commands.output import command, console, say, write_json
from host.commands.workplace import OwnersPlace, owning, reading
from host.database import database
from host.rights import read_authorization
from host.settings import Settings, approvers_directory
from host.stack import assembly
from host.stack.processes import run_to_end
from host.store import approvals
from host.store.approvals import ListedKey
from host.views import ApproverList, ApproverView
from shared_contracts.approval import Approver, TrustedApprover
from shared_contracts.base import dump
from shared_contracts.operator import operator

TOOLS_SECONDS_MAX = 60.0


def approver_of(settings: Settings, name: str) -> Approver:
    """Find an approver of the authorization set; raises CommandError."""
    found = read_authorization(settings.authz_file).approvers
    named = [one for one in found if one.name == name]
    if not named:
        names = ", ".join(sorted({one.name for one in found})) or "none"
        raise CommandError(
            Exit.BAD_INPUT, f"{name!r} is no approver", f"The authorization set's approvers are: {names}."
        )
    if len(named) > 1:
        mend = "Give each a name of its own in the authorization set."
        raise CommandError(Exit.BAD_INPUT, f"{name!r} stands for approvers of several tenants", mend)
    return named[0]


def prepare(settings: Settings, name: str, *, locked: bool) -> tuple[KeyFiles, TrustedApprover]:
    """Make the key, before anything is started; raises CommandError."""
    approver = approver_of(settings, name)
    files = files_of(approvers_directory(settings), approver.name)
    if files.private.exists() or files.public.exists():
        raise _there_already(settings, name, files)
    chosen = passphrase.chosen(settings) if locked else None
    try:
        trusted = make(files, approver, chosen)
    except FileExistsError as error:
        raise _there_already(settings, name, files) from error
    except OSError as error:
        what = f"{files.private.parent} cannot be written: {error.strerror}"
        raise CommandError(Exit.NOT_READY, what, "Name a directory of your own in KESSAI_APPROVERS.") from error
    say(f"made {files.private} ({'with a passphrase' if locked else 'WITHOUT a passphrase'}) and {files.public}")
    return files, trusted


def _there_already(settings: Settings, name: str, files: KeyFiles) -> CommandError:
    lines = (
        f"To let this key count here: {command(settings, 'approver', 'trust', str(files.public))}",
        f"For a new one: {command(settings, 'approver', 'revoke', name)}, then put both files away.",
        "For another system: name another directory in KESSAI_APPROVERS.",
    )
    return CommandError(Exit.BAD_INPUT, f"{name} has a key already: {files.private}", "\n".join(lines))


async def trust(settings: Settings, file: Path) -> None:
    """Let a public half count: at the host, and on one machine at the tool server."""
    trusted = read_public(file)
    known = approver_of(settings, trusted.approver.name)
    if known != trusted.approver:
        what = f"the terms in {file} are not those of the authorization set"
        raise CommandError(Exit.BAD_INPUT, what, f"It says: {known.model_dump_json()}")
    name, kid = known.name, trusted.key.kid
    async with owning(settings) as place:
        if place.dsn is None:
            say("the host does not trust it yet; its owner runs, with KESSAI_MIGRATE_DSN:")
            say(f"  kessai approver trust {file}")
        else:
            async with database(place.dsn, 1) as pool, pool.connection() as connection:
                new = await approvals.trust(connection, trusted, operator())
            say(f"host: the key {kid} of {name} {'is trusted' if new else 'was trusted already'}")
        await _tell_tools(place, trusted=file, kid=None)


async def _tell_tools(place: OwnersPlace, *, trusted: Path | None, kid: str | None) -> None:
    """On one machine start the tool server's own command, else say which one its operator has to run."""
    words = ("trust", str(trusted)) if trusted is not None else ("revoke", "--", str(kid))
    if place.parts is None:
        say("tool server: it is told by its own operator, with KESSAI_TOOLS_MIGRATE_DSN:")
        say(f"  kessai-tools approver {' '.join(words)}")
        return
    parts = place.parts
    program = assembly.revoke_approver(parts, str(kid)) if trusted is None else assembly.trust_approver(parts, trusted)
    await run_to_end(parts.home, program, TOOLS_SECONDS_MAX)
    say(f"tool server: was told too, by a process with its own settings: kessai-tools approver {' '.join(words)}")


async def revoke(settings: Settings, name: str) -> None:
    """Let a person's key count no more, for good."""
    async with owning(settings) as place:
        if place.dsn is None:
            mend = "Set KESSAI_MIGRATE_DSN: the owner's connection, not that of KESSAI_DSN."
            raise CommandError(Exit.BAD_INPUT, "the host's owner alone revokes a key", mend)
        async with database(place.dsn, 1) as pool, pool.connection() as connection:
            known = _named(await approvals.listed(connection), name)
            done = await approvals.revoke(connection, known.kid, operator())
        say(f"host: the key {known.kid} of {known.name} {'is revoked' if done else 'was revoked already'}")
        await _tell_tools(place, trusted=None, kid=known.kid)


def _named(keys: Sequence[ListedKey], name: str) -> ListedKey:
    """Find the active key of a person, else the newest revoked one; or a key by its id."""
    found = [key for key in keys if name in {key.name, key.kid}]
    if not found:
        names = ", ".join(sorted({key.name for key in keys})) or "nobody"
        raise CommandError(Exit.BAD_INPUT, f"no key of {name!r} was ever trusted here", f"There are keys of: {names}.")
    return next((key for key in found if key.revoked_at is None), found[-1])


async def listed(settings: Settings, *, as_json: bool) -> None:
    """List the approvers of the authorization set with their keys, and keys without a right."""
    rights = read_authorization(settings.authz_file).approvers
    async with reading(settings) as pool, pool.connection() as connection:
        keys = await approvals.listed(connection)
    active = {key.name for key in keys if key.revoked_at is None}
    rows = [_row(rights, key.name, key) for key in keys]
    rows += [_row(rights, name, None) for name in sorted({one.name for one in rights} - active)]
    page = ApproverList(approvers=tuple(sorted(rows, key=lambda row: (row.name, row.revoked_at is not None))))
    if as_json:
        write_json(dump(page))
    else:
        sheets.approvers(console(), page)


def _row(rights: Sequence[Approver], name: str, key: ListedKey | None) -> ApproverView:
    named = next((one for one in rights if one.name == name), None)
    return ApproverView(
        name=name,
        tenant_id=None if named is None else named.tenant_id,
        limit=None if named is None else named.limit,
        kid=None if key is None else key.kid,
        added_at=None if key is None else key.added_at,
        added_by=None if key is None else key.added_by,
        revoked_at=None if key is None else key.revoked_at,
        revoked_by=None if key is None else key.revoked_by,
    )
