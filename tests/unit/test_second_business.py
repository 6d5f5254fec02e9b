"""The runtime knows no business by name: a second one stands in its own files and in the catalogues alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN = {
    "host/workflows/claims.py",
    "host/workflows/claims_messages.py",
    "tool_server/tools/claims.py",
    "tool_server/load_cases.py",
    "tool_server/store/claims.sql",
    "tool_server/store/claims_seed.sql",
    "tool_server/store/migrations/0021_hold_documents.sql",
}
CATALOGUES = {"host/workflows/catalogue.py", "tool_server/tools/catalogue.py", "tool_server/loads.py"}
A_TOKENS_CLAIMS = {"tool_server/jws.py"}  # the word means what a token says, there
NAMES = re.compile(r"caseops|document:resolve|document:read", re.IGNORECASE)
LITERAL = re.compile(r"""(["'])claims\1""")
MODULES = re.compile(r"\b(workflows|tools)(\.| import .*\b)claims\b|\bload_cases\b")


def files() -> Iterator[tuple[str, str]]:
    for folder in ("host", "tool_server"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in {".py", ".sql"} and name not in OWN:
                yield name, path.read_text(encoding="utf-8")


def test_its_own_files_are_there():
    assert all((ROOT / name).is_file() for name in OWN | CATALOGUES)


def test_no_other_file_names_its_tools_or_its_scopes():
    assert [name for name, text in files() if NAMES.search(text)] == []


def test_no_other_file_has_its_kind_as_a_literal():
    assert {name for name, text in files() if LITERAL.search(text)} <= A_TOKENS_CLAIMS


def test_nothing_but_a_catalogue_imports_it():
    imports = {
        name
        for name, text in files()
        if name.endswith(".py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom) and MODULES.search(ast.unparse(node))
    }
    assert imports == CATALOGUES


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (NAMES, 'if tool == "caseops_get_case_snapshot":'),
        (NAMES, "scope = 'document:resolve'"),
        (LITERAL, 'if kind == "claims":'),
        (LITERAL, "kind = 'claims'"),
        (MODULES, "from host.workflows.claims import CLAIMS"),
        (MODULES, "from host.workflows import claims"),
        (MODULES, "from tool_server.tools import Handler, claims, orders"),
    ],
)
def test_the_scan_finds_what_it_looks_for(pattern, text):
    assert pattern.search(text)


def test_the_scan_does_not_take_a_tokens_claims_for_the_business():
    assert not LITERAL.search("parse(TaskClaims, claims)")
    assert not MODULES.search("from shared_contracts.task_token import TaskClaims")
