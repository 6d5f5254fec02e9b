"""A call's arguments as one JSON object, or a reason why not. Never repaired, completed or defaulted.

Whatever passes can be stored and digested: no NUL, no lone surrogate, no number without a JSON form,
bounded in size and depth. Types and ranges belong to the tool's schema.
"""

from __future__ import annotations

import json
import math
from typing import Any

from shared_contracts.digest import NotCanonicalError, storable_text
from shared_contracts.strict_json import NotJsonError, strict_json

BYTES_MAX = 64 * 1024  # a case's message has 4,000 characters; no tool needs a fraction of this
DEPTH_MAX = 32  # an object of a list of objects is 3; the rest is room


class ArgumentsRefusedError(ValueError):
    """The arguments are not one complete JSON object."""


def parse_arguments(arguments: str | dict[str, Any] | None) -> dict[str, Any]:
    """The object that a model meant, from its text or as a vendor parsed it. Raises ArgumentsRefusedError."""
    value = _parse(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(value, dict):
        raise ArgumentsRefusedError("The arguments are not a JSON object.")
    _check(value)
    if not isinstance(arguments, str):
        _check_size(_dump(value))
    return value


def _parse(text: str) -> Any:
    _check_size(text)
    try:
        return strict_json(text.encode("utf-8", "surrogatepass"))
    except NotJsonError as error:
        raise ArgumentsRefusedError(f"The arguments are not one complete JSON text: {error}.") from None


def _check(root: dict[str, Any]) -> None:
    """Walks by a list and not by recursion: a model chooses the depth."""
    pending: list[tuple[Any, int]] = [(root, 1)]
    while pending:
        value, depth = pending.pop()
        match value:
            case dict() | list() if depth > DEPTH_MAX:
                raise ArgumentsRefusedError(f"The arguments are nested deeper than {DEPTH_MAX}.")
            case dict():
                pending.extend((member, depth + 1) for pair in value.items() for member in pair)
            case list():
                pending.extend((member, depth + 1) for member in value)
            case str():
                _check_text(value)
            case float() if not math.isfinite(value):  # NaN, Infinity, 1e999
                raise ArgumentsRefusedError("The arguments hold a number that JSON cannot carry.")
            case _:
                pass


def _check_text(text: str) -> None:
    try:
        storable_text(text)
    except NotCanonicalError as error:
        raise ArgumentsRefusedError(f"The arguments cannot be kept: {error}.") from None


def _dump(value: dict[str, Any]) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except ValueError:  # an integer that the interpreter will not write out
        raise ArgumentsRefusedError("The arguments hold a number that JSON cannot carry.") from None


def _check_size(text: str) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
        raise ArgumentsRefusedError(f"The arguments are larger than {BYTES_MAX} bytes.")
