"""Rules of this code base that neither the linter nor the import contracts can hold, read from the sources."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("host", "tool_server", "shared_contracts")
LINES_MAX = 400

READS_ENVIRONMENT = {
    "host/evaluation/crash/nursery.py",  # gives what it has forked its environment, which is all that a program gets
    "host/settings.py",
    "host/stack/processes.py",  # hands the operating system's own variables on to what it starts, by name
    "tool_server/settings.py",
}
OPENS_SQL = re.compile(r"^(host|tool_server)/store/(queries|packaged|migrate)\.py$")
BUILDS_SQL = re.compile(r"^(host|tool_server)/store/|^host/stack/")


def sources(*folders: str) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path


def trees() -> Iterator[tuple[str, ast.Module]]:
    for name, path in sources(*PROGRAMS):
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def reads_environment(tree: ast.Module) -> bool:
    names = {"environ", "environb", "getenv", "getuser"}  # the last asks LOGNAME and USER before the system
    used = any(isinstance(node, ast.Attribute) and node.attr in names for node in ast.walk(tree))
    imported = any(
        isinstance(node, ast.ImportFrom)
        and node.module in {"os", "getpass"}
        and names & {alias.name for alias in node.names}
        for node in ast.walk(tree)
    )
    return used or imported


def file_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(".sql"):
            yield node.value


def imports_sql_builder(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module == "psycopg.sql" or (node.module == "psycopg" and "sql" in {a.name for a in node.names}))
        for node in ast.walk(tree)
    )


def test_only_the_settings_read_the_environment():
    assert {name for name, tree in trees() if reads_environment(tree)} == READS_ENVIRONMENT


def test_the_scan_for_the_environment_finds_every_way_of_reading_it():
    ways = (
        "import os\nos.environ['A']",
        "from os import environ",
        "import os\nos.getenv('A')",
        "from getpass import getuser",
    )
    for text in ways:
        assert reads_environment(ast.parse(text)), text
    assert not reads_environment(ast.parse("import os\nos.getpid()"))


def test_only_the_store_opens_sql_files():
    opened = {name for name, tree in trees() if any(text != ".sql" for text in file_names(tree))}
    suffixes = {name for name, tree in trees() if ".sql" in set(file_names(tree))}
    assert all(OPENS_SQL.match(name) for name in opened), opened
    assert suffixes - {"host/stack/build.py"} <= {"host/store/queries.py", "tool_server/store/queries.py"}


def test_only_the_stores_and_the_embedded_stack_build_sql():
    builders = {name for name, tree in trees() if imports_sql_builder(tree)}
    assert all(BUILDS_SQL.match(name) for name in builders), builders
    assert builders


@pytest.mark.parametrize("folder", ["host/store", "tool_server/store"])
def test_every_named_query_is_used(folder):
    found = sorted((ROOT / folder).glob("*.sql"))
    package = folder.partition("/")[0]
    modules = "".join(path.read_text(encoding="utf-8") for _, path in sources(package))
    assert found
    for file in found:
        names = re.findall(r"^-- name: (\w+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        unused = [name for name in names if f'"{name}"' not in modules]
        assert (file.name, unused) == (file.name, [])
        assert len(names) == len(set(names)) > 0


def test_no_file_is_longer_than_can_be_read_in_one_go():
    counted = {name: path.read_text(encoding="utf-8").count("\n") for name, path in sources(*PROGRAMS, "tests")}
    assert {name: lines for name, lines in counted.items() if lines > LINES_MAX} == {}


def test_only_commands_write_to_standard_output():
    writers = {
        name
        for name, tree in trees()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == "print")
        or (isinstance(node, ast.Attribute) and node.attr == "stdout" and getattr(node.value, "id", "") == "sys")
    }
    allowed = re.compile(
        r"^host/(commands/.*|cli/streams|evaluation/crash/nursery|runbook)\.py$|^tool_server/(terminal|log)\.py$"
    )
    assert all(allowed.match(name) for name in writers), writers


def test_every_module_says_what_it_is_for():
    silent = [name for name, tree in trees() if ast.get_docstring(tree) is None and tree.body]
    assert silent == []


def test_nobody_claims_that_something_happens_only_once_by_itself():
    claim = re.compile("exactly[- ]" + "once", re.IGNORECASE)
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(path for _, path in sources(*PROGRAMS, "tests"))]
    assert [page.name for page in pages if claim.search(page.read_text(encoding="utf-8"))] == []


def test_no_two_tests_that_share_a_stack_name_the_same_request():
    named = re.compile(r'case\([^\n]*request_id="([^"]+)"')
    files = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests" / "e2e").glob("test_*.py"))]
    ids = [request for text in files if 'xdist_group("cli")' in text for request in named.findall(text)]
    assert ids
    assert sorted(set(ids)) == sorted(ids)


def test_each_decision_has_a_number_of_its_own():
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    assert numbers == sorted(set(numbers))
    assert [page.read_text(encoding="utf-8").split(".")[0] for page in pages] == [f"# {number}" for number in numbers]
