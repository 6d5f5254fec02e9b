"""Reads the named queries of a `.sql` file beside this module: `-- name: x`, then the statement."""

from __future__ import annotations

import re
from pathlib import Path
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def queries(concept: str) -> dict[str, LiteralString]:
    """Give the statements of `<concept>.sql` by name. They are this repository's own text, hence literal."""
    parts = _NAME.split(Path(__file__).with_name(f"{concept}.sql").read_text(encoding="utf-8"))
    return {name: cast("LiteralString", text.strip()) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
