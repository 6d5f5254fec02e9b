"""Who acts: the name under which an operator's act is recorded."""

from __future__ import annotations

import getpass
import os


def operator() -> str:
    """Name who runs the command; in a container a user may have a number and no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"
