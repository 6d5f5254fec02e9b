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


def test_the_steps_are_ten_and_each_names_code_and_a_test():
    rows = re.findall(r"^\| [0-9]+\. .*$", STEPS, re.MULTILINE)
    assert len(rows) == 10
    assert all("`tests/" in row and re.search(r"`(host|tool_server|shared_contracts)/", row) for row in rows)


@pytest.mark.parametrize("name", NAMED)
def test_what_the_steps_name_is_there(name: str):
    file, _, test = name.partition("::")
    assert (ROOT / file).is_file()
    assert not test or test in defined(ROOT / file)
