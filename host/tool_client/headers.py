"""The three response headers that matter, read from untrusted text: bounded, and never an exception."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_PARAMETER = re.compile(r'\b(error|scope|error_description|resource_metadata)="([^"\\]{1,300})"')
_SECONDS = re.compile(r"[0-9]{1,9}")
_SESSION = re.compile(r"[\x21-\x7e]{1,200}")


def challenge(headers: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a Bearer challenge (RFC 6750, RFC 9728) that say what was missing."""
    value = headers.get("WWW-Authenticate", "")
    if not value.lower().startswith("bearer "):
        return {}
    return {name: text for name, text in _PARAMETER.findall(value[:2000]) if text.isprintable()}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait; a date counts from the answer's own Date, so that two clocks need not agree."""
    value = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("Date", ""))
    except (ValueError, TypeError, OverflowError):  # no date, or one with and one without a zone
        return None
    return wait.total_seconds()


def session_id(headers: Mapping[str, str]) -> str | None:
    """The session of a server that keeps one; ours does not."""
    value = headers.get("Mcp-Session-Id", "")
    return value if _SESSION.fullmatch(value) else None
