"""Every demand has its tests, by names that are there, or says what it waits for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.traceability import PAGE, ROOT, TABLE, WIRE, Row, node, page

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
STEPS = (ROOT / "docs" / "control-plane.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`((?:host|tool_server|shared_contracts|tests)/[^`]+)`", STEPS)))


def defined(file: Path) -> set[str]:
    return {one.name for one in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(one, FUNCTIONS)}


def test_the_page_is_the_table():
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize("row", [*TABLE, *(row for rows in WIRE.values() for row in rows)], ids=lambda row: row.what)
def test_a_row_names_tests_that_are_there_or_what_it_waits_for(row: Row):
    assert bool(row.tests) is not bool(row.later)
    for name in row.tests:
        file, test = node(name)
        assert test in defined(file), name


def test_what_has_to_be_there_is_numbered_and_no_row_stands_twice():
    said = [row.what for row in TABLE]
    assert [int(found[1]) for what in said if (found := re.match(r"(\d+)\. ", what))] == list(range(1, 15))
    assert len({row.tests or row.later for row in TABLE}) == len(set(said)) == len(said)


def test_each_of_the_seven_ways_has_its_own_test_and_the_file_holds_no_other():
    seven = [row for row in TABLE if "told and so, " in row.what]
    firsts = [node(row.tests[0]) for row in seven]
    (file,) = {file for file, _ in firsts}
    assert [row.what.partition(": ")[0] for row in seven] == [f"told and so, {n} of 7" for n in range(1, 8)]
    assert {name for name in defined(file) if name.startswith("test_")} == {name for _, name in firsts}


def test_the_steps_are_ten_and_each_names_code_and_a_test():
    rows = re.findall(r"^\| [0-9]+\. .*$", STEPS, re.MULTILINE)
    assert len(rows) == 10
    assert all("`tests/" in row and re.search(r"`(host|tool_server|shared_contracts)/", row) for row in rows)


@pytest.mark.parametrize("name", NAMED)
def test_what_the_steps_name_is_there(name: str):
    file, _, test = name.partition("::")
    assert (ROOT / file).is_file()
    assert not test or test in defined(ROOT / file)
