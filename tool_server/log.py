"""One JSON line per event on stderr: ids and codes.

Invariant: no token, argument, result or personal datum reaches a line. An exception is written as its type and the
places it passed, never its text; what a library logs is written as `shared_contracts.quiet` lets it be, and the MCP
SDK's own lines, which can quote a request, as the place they came from. What PostgreSQL says to a connection that it
refuses is written as it is: it names a host, a port, a database and a role, and knows of no row.
What repeats, as a request that is no HTTP or a database that is away, is bounded by `shared_contracts.log_limit`.
"""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path
from typing import Any

import structlog

from shared_contracts.log_limit import processor
from shared_contracts.quiet import said

_FRAMES_MAX = 12


def exception_fields(error: BaseException) -> dict[str, Any]:
    """Describe an exception by its type and the innermost frames, without its text."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
    return {
        "exception": f"{type(error).__module__}.{type(error).__qualname__}",
        "frames": [f"{Path(frame.filename).name}:{frame.lineno}:{frame.name}" for frame in frames],
    }


class LibraryRecords(logging.Handler):
    """Passes what libraries log through the same door, without what they quote."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record as our own event."""
        fields: dict[str, Any] = {"library": record.name, "place": f"{record.module}:{record.lineno}"}
        if record.exc_info is not None and record.exc_info[1] is not None:
            fields |= exception_fields(record.exc_info[1])
        if not record.name.startswith("mcp"):
            fields["said"] = said(record)
        structlog.get_logger().log(record.levelno, "library", **fields)


def configure() -> None:
    """Set logging up for this process; called once, by the command that starts it."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            processor(structlog.DropEvent),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers = [LibraryRecords()]
    root.setLevel(logging.WARNING)  # below it the SDK writes whole messages
    for name in ("mcp", "uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.WARNING)
