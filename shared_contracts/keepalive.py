"""How long a connection to PostgreSQL waits for a network that says nothing, in libpq's parameters.

Invariant: after twenty seconds of silence a connection is given up by the kernel: a statement's own timeout is the
database's to keep, and where no packet comes through, its answer never arrives.
"""

from __future__ import annotations

from typing import Final

KEEPALIVE: Final = {
    "keepalives_idle": 10,  # seconds
    "keepalives_interval": 5,  # seconds
    "keepalives_count": 2,
    "tcp_user_timeout": 20_000,  # milliseconds
}
