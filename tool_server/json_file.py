"""Files that an operator writes: read whole or not at all, bounded, as JSON that has one meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared_contracts.strict_json import NotJsonError, strict_json
from tool_server.errors import ToolServerError


def read_json(path: Path, bytes_max: int, wrong: type[ToolServerError]) -> Any:
    """Give the file's value; raises `wrong` with the file's name and what is the matter, never with its content."""
    try:
        with path.open("rb") as file:
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise wrong(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > bytes_max:
        raise wrong(f"{path} is larger than {bytes_max} bytes")
    try:
        return strict_json(data)
    except NotJsonError as error:
        raise wrong(f"{path}: {error}") from None
