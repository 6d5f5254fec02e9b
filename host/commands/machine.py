"""`up`, `down`, `status`, `empty`, and `secrets` for several machines."""

from __future__ import annotations

from pathlib import Path

from host.commands import kinds, stopped
from host.commands.exits import CommandError, Exit
from host.commands.output import add, console, say, table, write_json
from host.commands.workplace import choice
from host.settings import Settings, elsewhere, home_root
from host.stack import removal
from host.stack import stack as life
from host.stack.secrets import write_secrets
from host.stack.status import status as look
from host.views import PartView, StackView
from shared_contracts.base import dump
from shared_contracts.named_file import unnameable
from shared_contracts.printed import plain

PATH_BYTES = 64  # of a file in a directory of secrets


async def up(settings: Settings) -> Exit:
    """Bring everything up, then show it."""
    await life.up(home_root(settings), choice(settings))
    return await status(settings, as_json=False)


async def down(settings: Settings) -> None:
    """Stop everything."""
    _say_which(settings)
    say("stopped" if await life.down(home_root(settings)) else "nothing ran")


def refuse_elsewhere(settings: Settings) -> None:
    """Raise CommandError where whoever asks to remove data may mean another machine's."""
    if (names := elsewhere(settings)) is not None:
        what = f"empty removes this machine's home {home_root(settings)} alone, and {names} name another place"
        raise CommandError(Exit.BAD_INPUT, what, f"Nothing was removed. If you mean the home, unset {names} first.")


async def empty(settings: Settings) -> None:
    """Remove the home's content."""
    refuse_elsewhere(settings)
    root = home_root(settings)
    say(f"emptied {root}" if await removal.empty_home(root) else f"there was nothing in {root}")


def _say_which(settings: Settings) -> None:
    if (names := elsewhere(settings)) is not None:
        say(
            f"This is about this machine's home {home_root(settings)} alone. {names} send commands such as run and "
            "list elsewhere; kessai doctor looks there."
        )


async def status(settings: Settings, *, as_json: bool) -> Exit:
    """Show what runs."""
    found = await look(home_root(settings))
    code = Exit.DONE if found.well else Exit.NOT_READY
    _say_which(settings)
    parts = tuple(
        PartView(name=part.name, state=part.state.value, pid=part.pid, port=part.port, log=str(part.log))
        for part in found.parts
    )
    known, unknown = kinds.modes(settings)
    halted = await stopped.of_home(home_root(settings), found)
    view = StackView(
        home=str(found.home), mode=found.mode.value, why=found.why, well=found.well, elsewhere=elsewhere(settings),
        parts=parts, kinds=known, kinds_unknown=unknown, stops=halted.scopes, held=halted.held,
        stops_unknown=halted.unknown,
    )  # fmt: skip
    if as_json:
        write_json(dump(view))
        return code
    to = console()
    to.print(f"{view.mode}: {view.why}", soft_wrap=True)
    to.print(f"home: {plain(view.home)}", soft_wrap=True)
    made = table("part", "state", "pid", "port", "log")
    for part in view.parts:
        add(made, part.name.replace("_", " "), part.state.replace("_", " "), part.pid, part.port, part.log)
    if parts:
        to.print(made)
    kinds.show(to, view.kinds, view.kinds_unknown)
    stopped.show(to, halted)
    return code


def secrets(directory: Path, issuer: str | None) -> None:
    """Make what is missing."""
    why = unnameable(directory, PATH_BYTES)
    if why is not None:
        raise CommandError(Exit.BAD_INPUT, f"{directory} cannot be made: {why}", "Nothing was made.")
    made = write_secrets(directory, issuer)
    say(
        f"made {len(made)} {'file' if len(made) == 1 else 'files'} in {directory}"
        if made
        else f"{directory} has everything already"
    )
