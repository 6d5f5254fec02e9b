"""`approve` and `deny`: show from the database what would be done, then take one person's signed decision on it.

look ──► the person says y, or gives the digest of what was shown ──► sign ──► the host verifies, records, wakes

Nothing is held open while a person looks; what is signed is what was shown, and is refused where it changed meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from host.commands import passphrase, sheets
from host.commands.approver_keys import files_of, is_locked, opened
from host.commands.approvers import approver_of
from host.commands.exits import CommandError, Exit
from host.commands.lookup import found_id
from host.commands.output import command, console, error_console, fact, say, write_json
from host.commands.possible import or_what_is_possible
from host.commands.workplace import POOL_SIZE_READING, engines_dsn
from host.database import database
from host.domain.state import Asked, State
from host.engine.approve import Desk, decision_on, take_decision, waiting
from host.engine.wake import queue_app, waker
from host.rights import kinds, read_authorization
from host.settings import Settings, approvers_directory
from host.views import ApprovalView, DecisionTaken, PlannedEffect
from host.workflows.catalogue import BY_RELEASE
from shared_contracts.approval import LIFETIME, ApprovalEvent, sign
from shared_contracts.base import dump
from shared_contracts.tools import TOOLS

Key: TypeAlias = tuple[Ed25519PrivateKey, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A decision as it was typed. `digest` None: none was given."""

    name: str
    approver: str
    decision: Literal["approve", "deny"]
    reason: str
    yes: bool
    digest: str | None


async def look(settings: Settings, wanted: Wanted) -> ApprovalView:
    """Read what is asked; raises CommandError and ApprovalRefusedError, also for a name that cannot decide."""
    if wanted.decision == "deny" and wanted.reason.strip() == "":
        raise CommandError(Exit.BAD_INPUT, "a no needs its reason", "Write it with --reason.")
    approver_of(settings, wanted.approver)
    async with desk_of(settings) as desk:
        workflow_id = await found_id(desk.pool, wanted.name)
        async with or_what_is_possible(settings, desk.pool, workflow_id):
            state, asked = await waiting(desk, workflow_id)
    _need_key(settings, wanted.approver)
    if asked.expires_at <= asked.read_at:
        mend = "Nobody decides on it any more; it ends as EXPIRED by itself."
        raise CommandError(Exit.BAD_INPUT, f"its time was up at {asked.expires_at.isoformat()}", mend)
    return _view(state, asked)


def _need_key(settings: Settings, name: str) -> None:
    files = files_of(approvers_directory(settings), approver_of(settings, name).name)
    if not (files.private.exists() and files.public.exists()):
        mend = f"It is made with: {command(settings, 'approver', 'add', name)}"
        raise CommandError(Exit.BAD_INPUT, f"there is no key of {name} in {files.private.parent}", mend)


@asynccontextmanager
async def desk_of(settings: Settings) -> AsyncIterator[Desk]:
    """Give what a person's act on a waiting case needs; no worker and no tool server has to run."""
    async with engines_dsn(settings) as dsn, database(dsn, POOL_SIZE_READING) as pool:
        queue = queue_app(dsn)
        async with queue.open_async():
            yield Desk(pool, await kinds(pool), read_authorization(settings.authz_file), waker(queue))


def _view(state: State, asked: Asked) -> ApprovalView:
    task, action = state.task, asked.action
    expected = BY_RELEASE[task.kind, task.release].effects
    done = state.evidence.verified_ids()
    planned = (action.tool, *(name for name in expected if name != action.tool and name not in done))
    return ApprovalView(
        workflow_id=task.workflow_id,
        version=asked.version,
        requester=task.principal,
        request_id=task.request_id,
        action=action,
        effects=tuple(_planned(name) for name in planned),
        requested_at=asked.expires_at - LIFETIME,
        expires_at=asked.expires_at,
        action_digest=asked.action_digest,
    )


def _planned(name: str) -> PlannedEffect:
    tool = TOOLS[name]
    undo = TOOLS.get(tool.compensate_with)
    return PlannedEffect(
        tool=name,
        summary=tool.summary,
        risk=tool.risk,
        undone_with=None if undo is None else undo.name,
        undone_within_hours=None if undo is None else tool.compensate_within_hours,
        undone_if=() if undo is None else undo.preconditions,
    )


def show(seen: ApprovalView, *, as_json: bool) -> None:
    """Show the sheet to the person who decides; beside the document where that is wanted."""
    sheets.approval(error_console() if as_json else console(), seen)


def may_ask(settings: Settings, wanted: Wanted, seen: ApprovalView) -> bool:
    """Tell whether the person is still to be asked; raises CommandError where nobody can be."""
    digest = command(settings, "show", str(seen.workflow_id), "--json")
    if wanted.digest is not None and wanted.digest != seen.action_digest:
        what = "--digest names something else than what would be done"
        raise CommandError(Exit.BAD_INPUT, what, f"It is approvals[-1].action_digest of: {digest}")
    if wanted.yes and wanted.digest is None:
        mend = f"Look at the case, then give its approvals[-1].action_digest: {digest}"
        raise CommandError(Exit.BAD_INPUT, "--yes needs --digest: what exactly the yes or no is about", mend)
    if not wanted.yes and not sys.stdin.isatty():
        mend = f"Run it on a terminal, or add --yes --digest with approvals[-1].action_digest of: {digest}"
        raise CommandError(Exit.BAD_INPUT, "there is no terminal to ask on", mend)
    return not wanted.yes


def key_of(settings: Settings, name: str) -> Key:
    """Open the person's key, asking for its passphrase where it has one; raises CommandError."""
    files = files_of(approvers_directory(settings), name)
    return opened(files, passphrase.known(settings, name) if is_locked(files) else None)


async def decide(
    settings: Settings, wanted: Wanted, seen: ApprovalView, key: Key, looked_seconds: float
) -> DecisionTaken:
    """Sign what was shown, hand it in, and wake the case; raises CommandError and ApprovalRefusedError."""
    async with desk_of(settings) as desk, or_what_is_possible(settings, desk.pool, seen.workflow_id):
        event = _event(wanted, seen, *await waiting(desk, seen.workflow_id))
        await take_decision(desk, sign(event, *key), looked_seconds)
    return DecisionTaken(
        workflow_id=seen.workflow_id,
        **{name: getattr(event, name) for name in _KEPT},
        approval_seconds=looked_seconds,
    )


_KEPT = (
    "version", "event_id", "approver", "decision", "reason", "action_digest", "requested_at", "decided_at",
    "expires_at",
)  # fmt: skip


def _event(wanted: Wanted, seen: ApprovalView, state: State, asked: Asked) -> ApprovalEvent:
    """Give what is signed; raises CommandError where it is not what was shown, or is no decision."""
    if (asked.version, asked.action_digest) != (seen.version, seen.action_digest):
        raise CommandError(Exit.BAD_INPUT, "something else is asked by now", "Look at the case again.")
    try:
        return decision_on(state, asked, wanted.approver, wanted.decision, wanted.reason)
    except ValidationError as error:
        said = "; ".join(f"{one['loc'][0]}: {one['msg']}" for one in error.errors(include_url=False))
        raise CommandError(Exit.BAD_INPUT, f"this is no decision: {said}", "Nothing was changed.") from error


def tell(settings: Settings, taken: DecisionTaken, *, as_json: bool) -> None:
    """Say what was recorded, and how it goes on."""
    if as_json:
        write_json(dump(taken))
        return
    done = "approved" if taken.decision == "approve" else "denied"
    fact(console(), done, f"by {taken.approver}, event {taken.event_id}")
    if taken.decision == "deny":
        say("The case has ended as REJECTED, and nothing was made.")
        return
    go_on = command(settings, "run", str(taken.workflow_id))
    say(f"A worker goes on with it at once, or once a stop that holds it is lifted. Where none runs: {go_on}")
