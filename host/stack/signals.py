"""A process that is asked to end first ends what it started: the signal becomes a cancellation.

SIGINT is the event loop's own affair, which does the same. SIGKILL cannot be heard; the next start cleans up.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HEARD = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Cancel the calling task at the first signal, and leave with 128 + its number when the body has cleaned up."""
    task = asyncio.current_task()
    if task is None or threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread alone; whoever runs there decides
        return
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def end(number: int) -> None:
        if not received:  # a second one must not cut the cleaning up short
            task.cancel()
        received.append(number)

    for number in HEARD:
        loop.add_signal_handler(number, end, number)
    try:
        yield
    except asyncio.CancelledError:
        if received:
            raise SystemExit(128 + received[0]) from None
        raise
    finally:
        for number in HEARD:
            loop.remove_signal_handler(number)
