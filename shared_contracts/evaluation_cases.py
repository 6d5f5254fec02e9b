"""Read a set of evaluation cases: a TOML file of `[[case]]` tables, or a directory of such files.

Invariant: a set is read whole or refused with everything that is wrong with it. Its digest is that of the cases
alone, whatever files they stand in and in whatever order.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from shared_contracts.base import dump, parse
from shared_contracts.digest import canonical_json, digest
from shared_contracts.evaluation import EvaluationCase
from shared_contracts.named_file import Unread, read_text
from shared_contracts.told import complaints

NOBODY: Final = "nobody"  # TOML has no null
FILES_MAX: Final = 100
_SHOWN_MAX, _NAME_MAX = 20, 80


@dataclass(frozen=True, slots=True)
class CaseSet:
    """Cases in the order of their ids, each once."""

    cases: tuple[EvaluationCase, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no set: a line per problem, with the file, the case and the member that it is about."""

    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """One table as it stands in its file."""

    file: str
    name: str
    table: Any


def read_cases(path: Path) -> CaseSet | Refused:
    """Read a file, or every `.toml` file right in a directory."""
    files = _files(path)
    if isinstance(files, Refused):
        return files
    rows, problems = list[_Row](), list[str]()
    for file in files:
        read = _rows(file)
        if isinstance(read, str):
            problems.append(f"{file.name}: {read}")
        else:
            rows += read
    cases = list[tuple[_Row, EvaluationCase]]()
    for row in rows:
        case = _case(row)
        if isinstance(case, EvaluationCase):
            cases.append((row, case))
        else:
            problems += case
    problems += _twice(cases)
    if not rows and not problems:
        problems.append(f"{path}: no case at all; write each as a [[case]] table")
    if problems:
        return Refused(tuple(islice(problems, _SHOWN_MAX)))
    return case_set(tuple(case for _, case in cases))


def case_set(cases: tuple[EvaluationCase, ...]) -> CaseSet:
    """Put cases in order and digest them; their ids have to differ."""
    ordered = tuple(sorted(cases, key=lambda case: case.id))
    return CaseSet(ordered, digest([dump(case) for case in ordered]))


def _files(path: Path) -> list[Path] | Refused:
    try:
        if not path.is_dir():
            return [path]
        found = sorted(islice((one for one in path.iterdir() if one.suffix == ".toml"), FILES_MAX + 1))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        return Refused((f"{path}: cannot be read: {error}",))
    if len(found) > FILES_MAX:
        return Refused((f"{path}: more than {FILES_MAX} files; name the directory of one set",))
    return found


def _rows(file: Path) -> list[_Row] | str:
    text = read_text(file)
    if isinstance(text, Unread):
        return f"cannot be read: {text.why}"
    try:
        document = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError is one, and so is an integer of too many digits
        return f"is no TOML: {error}"
    except RecursionError:
        return "is nested too deeply"
    others = sorted(set(document) - {"case"})
    if others:
        return f"{', '.join(others)} is not known here; a file holds [[case]] tables and nothing else"
    tables = document.get("case", [])
    if not isinstance(tables, list):
        return "case is one table; write [[case]] in two brackets, for each case anew"
    return [_Row(file.name, _name(table, number), table) for number, table in enumerate(tables, 1)]


def _name(table: Any, number: int) -> str:
    named = table.get("id") if isinstance(table, Mapping) else None
    known = isinstance(named, str) and named.isprintable() and 0 < len(named) <= _NAME_MAX
    return str(named) if known else f"case {number}"


def _case(row: _Row) -> EvaluationCase | list[str]:
    try:
        canonical_json(row.table)  # before JSON is made of it: TOML has dates and floats, and a case has none
        return parse(EvaluationCase, _with_null(row.table))
    except ValidationError as error:
        return [f"{row.file}: {row.name}: {said}" for said in complaints(error.errors(), "the case")]
    except ValueError as error:  # NotCanonicalError is one
        return [f"{row.file}: {row.name}: {error}"]


def _with_null(table: Any) -> Any:
    match table:
        case {"expected": {"approver": str(name), **expected}, **others} if name == NOBODY:
            return {**others, "expected": {**expected, "approver": None}}
        case _:
            return table


def _twice(cases: list[tuple[_Row, EvaluationCase]]) -> Iterator[str]:
    first = dict[str, str]()
    for row, case in cases:
        if case.id in first:
            yield f"{row.file}: {case.id} stands in {first[case.id]} already; give each case an id of its own"
        first.setdefault(case.id, row.file)
