"""Runs a command's coroutine: on uvloop, with Ctrl-C as an ordinary end and an error as the error that it is."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from host.commands.exits import Exit

T = TypeVar("T")


def launch(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end. Several tasks' errors are told as the first of them."""
    import asyncio  # here, so that help is quick

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(work)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except ExceptionGroup as group:
        raise _first(group) from group


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:  # where there is none, such as on Windows
        return None
    return uvloop.new_event_loop


def _first(group: ExceptionGroup[Exception]) -> Exception:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first
