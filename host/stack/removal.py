"""Empty a home: first stop what runs in it, then remove what we made in it, and only if it is a home of ours.

Other things that lie there stay. The marker goes last, so that a removal that was cut short can be repeated.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from host.stack.errors import StackError, StackProblem
from host.stack.files import read_json
from host.stack.home import ENTRIES, MARKER, Home, existing_home, foreign
from host.stack.locks import locked
from host.stack.mode import Mode, anything_runs, in_use, recorded_mode, stack_lock
from host.stack.place import abandoned_places, remembered_place, remove_place, remove_short_directory
from host.stack.postgres import stop_data
from host.stack.stack import stop_all


async def empty_home(root: Path, *, only_unused: bool = False) -> bool:
    """False where there was nothing. A directory that is no home is refused and left as it is.

    `only_unused`: so is one in which somebody works, since what they have recorded would be gone.
    """
    home = _removable(root)
    if home is None:
        return False
    try:
        home.run.mkdir(mode=0o700, exist_ok=True)
        async with locked(stack_lock(home)):
            if only_unused:
                _refuse_used(home)
            await stop_all(home)
            for place in [*abandoned_places(home), remembered_place(home)]:
                if place is not None:
                    await stop_data(place / "data")
                    remove_place(home, place)
            remembered = read_json(home.run / "postgres.json")
            if remembered is not None:
                remove_short_directory(str(remembered.get("socket_directory")))
            _remove_entries(home)
    except OSError as error:
        raise StackError(
            StackProblem.HOME_NOT_WRITABLE,
            f"The home {home.root} cannot be emptied: {error.strerror} ({error.filename}).",
            "Mend the rights of what it names, then try again.",
        ) from error
    return True


def _refuse_used(home: Home) -> None:
    """Under the stack's lock, as its probe has to be."""
    up = recorded_mode(home) is Mode.UP and anything_runs(home)
    if up or in_use(home):
        raise StackError(
            StackProblem.HOME_BUSY,
            f"{'The stack is up' if up else 'Another command works'} in {home.root}, which keeps its record.",
            "Nothing was removed. kessai empty removes it all the same; another home in KESSAI_HOME begins anew.",
        )


def _removable(root: Path) -> Home | None:
    home = existing_home(root)
    if home is not None and home.root.stat().st_uid == os.geteuid():
        return home
    if home is None and (not root.exists() or (root.is_dir() and not any(root.iterdir()))):
        return None
    raise foreign(root)


def _remove_entries(home: Home) -> None:
    for name in ENTRIES:
        entry = home.root / name
        if entry.is_symlink():
            entry.unlink()  # never what it points to
        elif entry.exists():
            shutil.rmtree(entry)
    if not any(entry.name != MARKER for entry in home.root.iterdir()):
        (home.root / MARKER).unlink()
