"""Words that both programs have for the same mistake of a person: a setting, a model's complaint, a database's refusal.

Invariant: no value of a setting is repeated; what PostgreSQL says to a connection names host, port, database and role.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic.fields import FieldInfo

_NAME_MAX = 80  # characters of a name that somebody else has chosen


def missing(variable: str, field: FieldInfo, where: str = "Several machines") -> str:
    """Say of a setting that is not set what it is, with its example, and where it is explained."""
    example = field.examples[0] if field.examples else ""
    shown = f'"{example}"' if " " in example else example
    return f"{variable} is missing: {field.description}, such as {variable}={shown}; see “{where}” in RUNBOOK.md"


def complaints(problems: Iterable[Mapping[str, Any]], whole: str) -> list[str]:
    """Say pydantic's problems one per line: the place, what is wrong with it, what to do; `whole` names the root."""
    return [f"{place(problem['loc']) or whole}: {_wrong(problem)}" for problem in problems]


def place(location: Iterable[int | str]) -> str:
    """Name a place in a document, a name that is no word of ours as far as one can read it; the whole has no name."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{_short(step)}" for step in location)
    return "".join(steps).removeprefix(".")


def _short(name: str) -> str:
    return name if len(name) <= _NAME_MAX else f"{name[:_NAME_MAX]}…"


def _wrong(problem: Mapping[str, Any]) -> str:
    match problem["type"]:
        case "missing":
            return "is missing; write it"
        case "extra_forbidden":
            return "is not known here; correct the name, or remove it"
        case "enum" | "literal_error":
            return f"must be {problem['ctx']['expected']}"
        case _:
            return str(problem["msg"]).removeprefix("Value error, ")


def unconnected(said: str, *, wants_password: bool, setting: str) -> tuple[str, str]:
    """Give what a failed connection means and what mends it; `said` is libpq's text."""
    line = " ".join(said.split())
    if wants_password:
        mend = (
            f"Let {setting} name the file that holds it, passfile=FILE: a line for this host, port, database and user, "
            "chmod 600. `kessai secrets` makes such files."
        )
        return f"the database wants a password and got none ({line})", mend
    if "FATAL" in line:  # the server's own word, so it runs and can be reached
        return f"the database refuses the connection ({line})", f"Mend what it names in {setting}, or at the database."
    return (
        f"the database does not answer ({line})",
        f"Check host and port in {setting}, and that the database runs.",
    )
