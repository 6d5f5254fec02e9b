"""The three standard streams, as a command finds them.

Invariant: none is missing and none refuses a letter, so that no command fails, half done, over where it was started.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TextIO


def prepare() -> None:
    """Put the null device where a stream was closed, before anything else gets its number; show what can be shown."""
    sys.stdin = _there(sys.stdin, "r")
    sys.stdout = _there(sys.stdout, "w")
    sys.stderr = _there(sys.stderr, "w")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]  # for a narrow terminal


def _there(stream: TextIO | None, mode: str) -> TextIO:
    if stream is not None:
        return stream
    number = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(number, True)  # a program that is started from here finds it too
    return TextIOWrapper(os.fdopen(number, f"{mode}b"), encoding="utf-8")  # open for as long as the program runs
