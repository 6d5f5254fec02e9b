"""What may be asked of `resume`, and which command comes next. Nothing is read or changed here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from host.commands.exits import CommandError, Exit
from host.commands.output import command
from host.settings import Settings
from host.store.stops import Held
from host.workflows.catalogue import state_names

PART = "10"
PART_MAX = 100_000
UNCHANGED = "Nothing was changed."


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for. `state` None: no part is released."""

    by: str
    reason: str
    state: str | None
    limit: int | None
    full: bool


def check(settings: Settings, wanted: Wanted) -> None:
    """Refuse what cannot be meant, before anything is started; raises CommandError."""
    if wanted.full and (wanted.state is not None or wanted.limit is not None):
        mend = (
            "--state and --limit release a part; --full comes once nothing is held any more, in a command of its own: "
            f"{again(settings, '--full')}"
        )
        raise CommandError(Exit.BAD_INPUT, "--full and --state or --limit do not go together", f"{mend}\n{UNCHANGED}")
    if (wanted.state is None) is not (wanted.limit is None):
        mend = f"Which state, and how many of it at most: --state ELIGIBLE --limit {PART}. {_states()}"
        raise CommandError(Exit.BAD_INPUT, "--state and --limit go together", mend)
    if wanted.limit is not None and not 1 <= wanted.limit <= PART_MAX:
        mend = f"How many cases go on at most: from 1 to {PART_MAX}, such as --limit {PART}. {UNCHANGED}"
        raise CommandError(Exit.BAD_INPUT, f"--limit {wanted.limit} is no number of cases", mend)
    if wanted.state is not None and wanted.state not in state_names():
        raise CommandError(Exit.BAD_INPUT, f"there is no state {wanted.state!r}", f"{_states()} {UNCHANGED}")
    if (settings.dsn is None) is not (settings.migrate_dsn is None):
        lacking, other = (
            ("KESSAI_MIGRATE_DSN", "KESSAI_DSN")
            if settings.migrate_dsn is None
            else ("KESSAI_DSN", "KESSAI_MIGRATE_DSN")
        )
        mend = f"Set {lacking} for the same database as {other}. Only its owner lifts a stop."
        raise CommandError(Exit.NOT_READY, f"{lacking} is not set", mend)


def _states() -> str:
    return f"The states are: {', '.join(state_names())}; kessai status says how many are held in which."


def again(settings: Settings, *options: str) -> str:
    """Spell the command with other options."""
    return command(settings, "resume", "--as", "NAME", "--reason", "TEXT", *options)


def next_part(settings: Settings, state: str) -> str:
    """Spell the command that releases some of a state."""
    return again(settings, "--state", state, "--limit", PART)


def next_act(settings: Settings, held: Sequence[Held], *, stopped: bool, one_at_a_time: bool) -> str | None:
    """Spell the command that comes next; None where work goes on as usual."""
    if stopped:
        return again(settings)
    if held:
        return next_part(settings, held[0].state)
    return again(settings, "--full") if one_at_a_time else None


def waiting(held: Sequence[Held]) -> str:
    """Say in one line what is held."""
    return ", ".join(f"{one.state} {one.cases}" for one in held)
