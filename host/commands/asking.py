"""A question on the terminal.

Invariant: only a written y is a yes; an empty line, the end of the input and letters that are none are a no.
"""

from __future__ import annotations

import sys

_YES = (b"y", b"yes")


def confirmed(question: str) -> bool:
    """Ask on standard error; Ctrl-C goes through, to end the command as it ends every other."""
    sys.stderr.write(f"{question} [y/N]: ")
    sys.stderr.flush()
    answer = sys.stdin.buffer.readline()
    if not answer.endswith(b"\n"):
        sys.stderr.write("\n")
    return answer.strip().lower() in _YES
