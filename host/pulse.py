"""A file that is touched while a worker works, so that whoever watches over it need not ask the worker itself.

`python -m host.pulse FILE` exits 0 while it is fresh, and 1 where it is old or not there.

Invariant: it is fresh only if, a few seconds ago, the worker's loop turned, its database answered and the tool
server's contracts were seen to fit. A worker that hangs, or has nothing to work with, lets it grow old.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

FRESH_SECONDS = 20.0  # a round takes five seconds; one slow answer is no reason for an alarm


def beat(file: Path, *, works: bool) -> None:
    """Tell how the last round went; a few microseconds on the memory file system that it belongs on."""
    if works:
        file.touch(mode=0o600)
    else:
        file.unlink(missing_ok=True)


def fresh(file: Path) -> bool:
    """Tell whether the worker that touches this file works."""
    try:
        age = time.time() - file.stat().st_mtime
    except OSError:
        return False
    return abs(age) <= FRESH_SECONDS


if __name__ == "__main__":
    sys.exit(0 if len(sys.argv) == 2 and fresh(Path(sys.argv[1])) else 1)
