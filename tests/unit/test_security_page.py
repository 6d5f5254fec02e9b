"""What is said of security is shown by tests that are there, or says why nothing shows it; no number is left out."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import pytest

from tests.traceability import ROOT, node
from tests.unit.test_traceability import defined

ASVS, MODEL = ROOT / "docs" / "security.md", ROOT / "SECURITY.md"
# levels 1 and 2 of ASVS 5.0.0: in each section the numbers from 1 on
NUMBERS = {
    "V1": (2, 9, 11, 3, 2), "V2": (3, 3, 4, 1), "V4": (3, 1, 2, 4), "V6": (3, 12, 4, 4, 5, 3, 0, 4),
    "V7": (3, 4, 2, 5, 2, 2), "V8": (2, 3, 1, 1), "V9": (3, 4), "V10": (2, 2, 4, 11, 5, 2, 3),
    "V11": (2, 3, 3, 4, 1, 1), "V12": (3, 2, 4), "V13": (1, 5, 2, 5), "V16": (1, 5, 4, 3, 3),
}  # fmt: skip
PRACTICES = 27
NAME = re.compile(r"`([a-z0-9_]+/[a-z0-9_]+::[a-z0-9_]+)`")
RULE = re.compile(r"`ruff ([A-Z]+[0-9]+)`")
SHOWN = {"met": True, "in part": True, "not met": False, "n/a": False}


@dataclass(frozen=True)
class Row:
    name: str
    cells: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def table_rows(text: str, first: str) -> list[Row]:
    """The rows of every table whose heading begins with this word."""
    rows: list[Row] = []
    inside = False
    for line, following in pairwise([*text.splitlines(), ""]):
        if line.startswith("|") and following.startswith("|---"):
            inside = cells(line)[0] == first
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|---"):
            rows.append(Row(cells(line)[0], cells(line)[1:]))
    return rows


ROWS = table_rows(ASVS.read_text("utf-8"), "row")
CANNOT = table_rows(MODEL.read_text("utf-8"), "cannot")
NAMED = sorted(
    {name for page in (ASVS, MODEL) for name in NAME.findall(page.read_text("utf-8"))} - {"folder/file::name"}
)


def numbers(name: str) -> list[str]:
    """`V6.2.1-3` is three of them; a row of level 3 is one more than has to be there."""
    if name.endswith("*3*"):
        return []
    found = re.fullmatch(r"(V\d+\.\d+)\.(\d+)(?:-(\d+))?", name)
    assert found is not None, name
    section, first, last = found.groups()
    return [f"{section}.{number}" for number in range(int(first), int(last or first) + 1)]


@cache
def functions(file: str) -> set[str]:
    return defined(ROOT / file)


def test_every_number_of_the_standards_chapters_stands_there_once():
    given = [number for row in ROWS if row.name.startswith("V") for number in numbers(row.name)]
    wanted = [
        f"{chapter}.{section}.{number}"
        for chapter, counts in NUMBERS.items()
        for section, count in enumerate(counts, 1)
        for number in range(1, count + 1)
    ]
    assert given == wanted


def test_every_practice_stands_there_once():
    assert [row.name for row in ROWS if not row.name.startswith("V")] == [f"MCP-{n}" for n in range(1, PRACTICES + 1)]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row_is_shown_by_tests_or_says_why_not(row: Row):
    asks, state, how, shown = row.cells
    evidence = NAME.findall(shown) + RULE.findall(shown)
    assert asks != ""
    assert bool(evidence) is SHOWN[state]
    assert re.sub(r"`[^`]*`", "", shown).strip() == ""
    assert state == "met" or how != ""


@pytest.mark.parametrize("row", CANNOT, ids=str)
def test_what_somebody_cannot_do_is_shown_by_tests_or_said_not_to_be(row: Row):
    (shown,) = row.cells
    assert bool(NAME.findall(shown)) is not shown.startswith("not shown: ")


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_is_named_is_there(name: str):
    file, test = node(name)
    assert test in functions(str(file.relative_to(ROOT)))


def test_a_rule_that_is_named_holds_for_all_code_that_is_delivered():
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]["lint"]
    excused = [
        *lint["ignore"],
        *(one for where, some in lint["per-file-ignores"].items() if "test" not in where for one in some),
    ]
    named = RULE.findall(ASVS.read_text("utf-8"))
    assert lint["select"] == ["ALL"]
    assert len(named) > 5
    assert not [rule for rule in named for excuse in excused if rule.startswith(excuse)]


def test_each_attacker_has_what_he_can_and_what_he_cannot():
    parts = MODEL.read_text("utf-8").split("\n## ")
    (model,) = [part for part in parts if part.startswith("Who could do what")]
    attackers = model.split("\n### ")[1:]
    assert len(attackers) >= 10
    for attacker in attackers:
        can = re.findall(r"^- ", attacker, re.MULTILINE)
        assert (bool(can), "\n| cannot | shown by |\n" in attacker) == (True, True), attacker.partition("\n")[0]
