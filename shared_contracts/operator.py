"""Who runs a command, for the record: by the operating system's own word.

Invariant: no variable of the environment is asked, since whoever runs the command writes them.
"""

from __future__ import annotations

import os
import pwd


def operator() -> str:
    """Name who runs this; in a container a user may have a number and no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
