"""Schemas on both sides of a call, compiled once per tool.

Invariant: nothing reaches a handler, a digest or SQL that is not the exact JSON which the wire schema and the
model both allow; nothing leaves that the tool's output schema does not allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from pydantic import ValidationError

from shared_contracts.base import parse
from shared_contracts.contract import Tool
from shared_contracts.digest import NotCanonicalError, digest
from shared_contracts.tools import TOOLS
from tool_server.call import Refused

_MESSAGE_MAX = 300  # an error quotes what was sent; that must stay short

_INPUT = {name: jsonschema_rs.Draft202012Validator(tool.input_schema) for name, tool in TOOLS.items()}
_OUTPUT = {
    name: jsonschema_rs.Draft202012Validator(tool.output_schema, validate_formats=True) for name, tool in TOOLS.items()
}


@dataclass(frozen=True, slots=True)
class Checked:
    """Arguments that fit, and their digest."""

    arguments: dict[str, Any]
    sha256: str


def check_arguments(tool: Tool, arguments: Mapping[str, Any] | None) -> Checked | Refused:
    """Check arguments strictly: no coercion, no undeclared member, nothing that cannot be stored."""
    given = {} if arguments is None else dict(arguments)
    try:
        sha256 = digest(given)  # first: it refuses NUL, lone surrogates, fractions and depth, whatever the schema
    except NotCanonicalError as error:
        return _invalid((), str(error))
    for found in _INPUT[tool.name].iter_errors(given):
        return _invalid(tuple(found.instance_path), found.message)
    try:
        parse(tool.arguments, given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return _invalid(first["loc"], first["msg"].removeprefix("Value error, "))
    return Checked(given, sha256)


def fault_of_output(tool: Tool, result: Mapping[str, Any]) -> str | None:
    """Name where a result leaves its schema, without quoting it."""
    for found in _OUTPUT[tool.name].iter_errors(result):
        return f"{_path(tuple(found.instance_path))} breaks {'/'.join(str(part) for part in found.schema_path)}"
    return None


def _invalid(path: tuple[str | int, ...], message: str) -> Refused:
    where = _path(path)
    return Refused("invalid_arguments", f"{where}: {message}"[:_MESSAGE_MAX], {"path": where})


def _path(path: tuple[str | int, ...]) -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.removeprefix(".") if steps else "arguments"
