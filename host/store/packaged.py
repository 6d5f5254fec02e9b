"""The migrations that this program carries, in order, each with its content's digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

MIGRATIONS = Path(__file__).parent / "migrations"
QUEUE = "procrastinate"  # the queue's own schema, which stands beside the files in `schema_version`


@dataclass(frozen=True, slots=True)
class File:
    """One migration and its content's digest."""

    name: str
    text: str
    sha256: str


def packaged() -> tuple[File, ...]:
    """List this program's migrations in order."""
    texts = ((path.name, path.read_text(encoding="utf-8")) for path in sorted(MIGRATIONS.glob("*.sql")))
    return tuple(File(name, text, hashlib.sha256(text.encode()).hexdigest()) for name, text in texts)
