"""Read the named queries of a `.sql` file that lies beside its module."""

from __future__ import annotations

import re
from pathlib import Path
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load_queries(module_file: str) -> dict[str, LiteralString]:
    """Give the queries of `<module>.sql` by their `-- name: x` headers; text of ours, so literal."""
    parts = _NAME.split(Path(module_file).with_suffix(".sql").read_text(encoding="utf-8"))
    return {name: cast("LiteralString", body.strip()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}
