"""Locks between processes: the kernel frees them when their holder dies, however it dies.

They are flocks. Their files go only with the whole home, and whoever waited for one then is told so.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from host.stack.errors import StackError, StackProblem

POLL_SECONDS = 0.02
WAIT_SECONDS_MAX = 120.0  # a first set-up on a slow disk takes some seconds; crash recovery more


class Hold:
    """An open lock file; `shared` and `exclusive` never wait, and may move from one to the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held = False
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def shared(self) -> bool:
        """Beside other shared ones; False where somebody holds it alone."""
        return self._try(fcntl.LOCK_SH)

    def exclusive(self) -> bool:
        """Alone; False where anybody else holds it."""
        return self._try(fcntl.LOCK_EX)

    def still_there(self) -> bool:
        """A lock on a file that was removed keeps nobody out."""
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Let go."""
        os.close(self._descriptor)

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            self.held = False  # a failed change of kind may have cost us the lock that we had
            return False
        self.held = True
        return True


@asynccontextmanager
async def locked(path: Path, wait_seconds: float = WAIT_SECONDS_MAX) -> AsyncIterator[None]:
    """One process at a time; whoever waits too long is told, and changes nothing."""
    hold = Hold(path)
    try:
        deadline = time.monotonic() + wait_seconds
        while not hold.exclusive():
            if time.monotonic() > deadline:
                raise StackError(
                    StackProblem.HOME_BUSY,
                    f"Another process has been starting or stopping this stack for {wait_seconds:.0f} s (lock {path}).",
                    "Look at the logs in the home; end that process if it hangs, then try again.",
                )
            await asyncio.sleep(POLL_SECONDS)
        if not hold.still_there():
            raise StackError(StackProblem.HOME_BUSY, f"The home was emptied while we waited for {path}.", "Try again.")
        yield
    finally:
        hold.close()
