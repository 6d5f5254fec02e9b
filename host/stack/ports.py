"""Free ports on the loopback address; a port that was used before is used again while it is free.

The range lies below the ones from which operating systems take the near ends of outgoing connections.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Collection

from host.stack.errors import StackError, StackProblem

LOOPBACK = "127.0.0.1"
FIRST, COUNT = 20_000, 10_000
TRIES = 100


def is_free(port: int) -> bool:
    """Whether a server could bind it now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers themselves do
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def choose_port(remembered: object, avoid: Collection[int] = ()) -> int:
    """Free at this moment; whoever binds it may still lose a race and must then ask again."""
    if isinstance(remembered, int) and 0 < remembered < 65_536 and remembered not in avoid and is_free(remembered):
        return remembered
    for _ in range(TRIES):
        port = FIRST + secrets.randbelow(COUNT)
        if port not in avoid and is_free(port):
            return port
    raise StackError(
        StackProblem.PORT_IN_USE,
        f"No free port was found on {LOOPBACK} between {FIRST} and {FIRST + COUNT - 1} in {TRIES} tries.",
        "End what holds them.",
    )
