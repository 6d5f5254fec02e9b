"""What every act of a person is written with, in whichever history it stands."""

from __future__ import annotations

from typing import Any

from psycopg.types.json import Jsonb

from host.domain.acting import By


def said_by(by: By, reason: str) -> dict[str, Any]:
    """Give who acts, why, and what is kept beside the name."""
    return {"actor": by.name, "reason": reason, "details": Jsonb(by.details())}
