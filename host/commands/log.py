"""What is logged while cases are driven: one JSON line per event on standard error, with its time in UTC.

Invariant: a line is one event, whatever a value holds. No text of an exception reaches the log: the database's quote
rows, and a row holds what a customer wrote; asyncio's quote the exceptions of forgotten tasks. Standard output belongs
to what was asked for. What repeats, as while a database is away, is bounded by `shared_contracts.log_limit`.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

from shared_contracts.log_limit import processor
from shared_contracts.quiet import said


class LibraryRecords(logging.Handler):
    """Passes what libraries log on as an event of our own, without what they quote."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        fields: dict[str, Any] = {"library": record.name, "place": f"{record.module}:{record.lineno}"}
        if record.exc_info is not None and record.exc_info[1] is not None:
            fields["error"] = type(record.exc_info[1]).__name__
        structlog.get_logger().log(record.levelno, "library", said=said(record), **fields)


def configure() -> None:
    """Set logging up for this process; called by the commands that drive cases."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            processor(structlog.DropEvent),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    root = logging.getLogger()
    root.handlers = [LibraryRecords()]
    root.setLevel(logging.WARNING)
