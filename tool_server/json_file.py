"""Files by which an operator says whom to trust: read whole or not at all, bounded, as JSON that has one meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared_contracts.named_file import Unread, read_file
from shared_contracts.strict_json import NotJsonError, strict_json
from tool_server.errors import ToolServerError


def read_json(path: Path, bytes_max: int, wrong: type[ToolServerError]) -> Any:
    """Give the file's value; raises `wrong` with the file's name and what is the matter, never with its content."""
    data = read_file(path, bytes_max, decides=True)
    if isinstance(data, Unread):
        raise wrong(f"{path} cannot be read: {data.why}")
    try:
        return strict_json(data)
    except NotJsonError as error:
        raise wrong(f"{path}: {error}") from None
