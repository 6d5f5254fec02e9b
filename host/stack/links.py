"""What a host process is linked to, wherever it runs: its database, the tool server, the keys that it signs with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sealing:
    """Who seals the host's record: the sealer's connection, its private key, and everybody's public keys."""

    dsn: str
    key_file: Path
    keys_file: Path


@dataclass(frozen=True, slots=True)
class Links:
    """No password need be in it: the connection string may name a file."""

    dsn: str
    server_url: str
    audience: str
    issuer: str
    signing_key_file: Path
    sealing: Sealing | None = None  # None: nothing is sealed by this process
