"""Every demand has its tests, by names that are there, or says what it waits for."""

from __future__ import annotations

import ast

import pytest

from tests.traceability import PAGE, TABLE, Row, node, page


def test_the_page_is_the_table():
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.what)
def test_a_row_names_tests_that_are_there_or_what_it_waits_for(row: Row):
    assert bool(row.tests) is not bool(row.later)
    for name in row.tests:
        file, test = node(name)
        defined = {one.name for one in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(one, FUNCTIONS)}
        assert test in defined, name


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
