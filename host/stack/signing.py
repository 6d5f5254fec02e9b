"""The signing key in force, for a program that outlives it.

Invariant: no file of a key costs a signature. One that is missing or broken, as while it is being copied, leaves the
key that was read last until it is whole; only at the start, with no key read yet, it is an error. It is read again each
AGAIN_SECONDS until it is whole, since a fault that passes, as of a disk, changes no stamp.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog

from host.stack.errors import StackError
from host.stack.keys import read_signing_key
from shared_contracts.named_file import stamp_of

log = structlog.get_logger()

AGAIN_SECONDS = 1.0
K = TypeVar("K")


class SigningFile(Generic[K]):
    """Gives the key of a file, and looks at every use whether it is another one by now: one `stat`.

    `clock` gives seconds that never go back.
    """

    def __init__(
        self, file: Path, make: Callable[[Mapping[str, Any]], K], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._file, self._make, self._clock = file, make, clock
        self._again = math.inf  # when to look once more, where it was not read
        self._seen = stamp_of(file)
        self._key = make(read_signing_key(file))

    def __call__(self) -> K:
        """Give the key to sign with now."""
        stamp = stamp_of(self._file)
        if stamp != self._seen or self._clock() >= self._again:
            self._seen = stamp  # before reading: what changes meanwhile is seen at the next use
            self._read_again()
        return self._key

    def _read_again(self) -> None:
        read, self._again = _read(self._file), math.inf
        if isinstance(read, StackError):
            self._again = self._clock() + AGAIN_SECONDS
            log.error("signing_key_unusable", problem=read.problem.value)
            return
        self._key = self._make(read)
        log.warning("signing_key_read_again", kid=read["kid"])


def _read(file: Path) -> dict[str, Any] | StackError:
    try:
        return read_signing_key(file)
    except StackError as error:
        return error
