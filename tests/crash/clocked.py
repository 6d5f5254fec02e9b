"""Runs one of our programs with a clock that is wrong: python -m tests.crash.clocked SECONDS MODULE ARGUMENT…

A file named by CRASH_CLOCK, once it exists, holds seconds that are added from then on, as a step of the clock does.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path

CLOCK = "CRASH_CLOCK"
_now, _now_ns = time.time, time.time_ns


def _wrong(always: float) -> float:
    file = Path(os.environ[CLOCK]) if CLOCK in os.environ else None
    return always + (float(file.read_text()) if file is not None and file.exists() else 0.0)


def main() -> None:
    always, module, *arguments = sys.argv[1:]
    time.time = lambda: _now() + _wrong(float(always))
    time.time_ns = lambda: _now_ns() + int(_wrong(float(always)) * 1e9)
    sys.argv = [module, *arguments]
    importlib.import_module(module).main()


if __name__ == "__main__":
    main()
