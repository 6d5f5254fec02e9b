"""A process that is asked to end first ends what it started: the signal becomes a cancellation.

A second one changes nothing: cleaning up is never cut short. SIGKILL cannot be heard; the next start cleans up.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

AGAIN_SECONDS = 2.0
HEARD = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Ending:
    """One task's end: asked for by a signal, and repeated until the task says that it leaves.

    Once is not enough: Python 3.11's `wait_for` loses a cancellation that meets what it waits for.
    """

    def __init__(self, task: asyncio.Task[object]) -> None:
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._again: asyncio.TimerHandle | None = None
        self._leaves = False
        self.number: int | None = None

    def ask(self, number: int) -> None:
        """The handler of a signal."""
        if self.number is None:
            self.number = number
            self._cancel()

    def leave(self) -> None:
        """From here on the task cleans up, which nothing may cut short."""
        self._leaves = True
        if self._again is not None:
            self._again.cancel()

    def _cancel(self) -> None:
        if not self._leaves:
            self._task.cancel()
            self._again = self._loop.call_later(AGAIN_SECONDS, self._cancel)


@contextmanager
def ended_by_signals() -> Iterator[Ending | None]:
    """Cancel the calling task at the first signal, and end with 128 + its number when the body has cleaned up.

    None outside of the main thread, which alone hears signals: then whoever runs there decides.
    """
    task = asyncio.current_task()
    if task is None or threading.current_thread() is not threading.main_thread():
        yield None
        return
    loop, ending = asyncio.get_running_loop(), Ending(task)
    for number in HEARD:
        loop.add_signal_handler(number, ending.ask, number)
    try:
        yield ending
    except asyncio.CancelledError:
        if ending.number is not None:
            raise SystemExit(128 + ending.number) from None
        raise
    finally:
        ending.leave()
        for number in HEARD:
            loop.remove_signal_handler(number)
