"""The order of the test run: each tool alone before what is combined of tools."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def recipe(target: str) -> list[str]:
    found = re.search(rf"^{target}:[^\n]*\n((?:\t[^\n]*\n)+)", MAKEFILE, re.MULTILINE)
    assert found is not None, target
    return [line.strip() for line in found[1].splitlines()]


def test_every_tool_alone_is_tested_before_what_is_combined_of_tools():
    alone, combined = recipe("test")
    assert "tests/unit tests/contract tests/security" in alone
    assert "tests/integration tests/e2e" in combined
    assert not any(line.startswith("-") or "||" in line for line in (alone, combined))  # a failure ends it


def test_every_folder_of_tests_is_run():
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    run = " ".join(recipe("test"))
    assert folders
    assert [name for name in sorted(folders) if f"tests/{name}" not in run] == []


def test_a_change_is_checked_without_running_a_test_twice():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^make (\w+)", script, re.MULTILINE) == ["static", "test"]
    assert not any("pytest" in line for line in recipe("static"))


def test_the_official_suite_is_run_in_a_pinned_version_and_by_no_other_target():
    assert recipe("conformance") == ["$(BIN)/python -m tests.conformance.run $(SUITE)"]
    packages = re.search(r"^SUITE_PACKAGES := (.+)$", MAKEFILE, re.MULTILINE)
    assert packages is not None
    assert all(re.fullmatch(r"@?[a-z0-9/-]+@\d+\.\d+\.\d+(-alpha\.\d+)?", one) for one in packages[1].split())
    assert "conformance" not in " ".join((*recipe("test"), *recipe("static")))
