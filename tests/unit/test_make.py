"""The order of the test run: each tool alone before what is combined of tools."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

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
    assert re.findall(r"^make (\w+)", script, re.MULTILINE) == ["static", "conformance", "clients", "test"]
    assert not any("pytest" in line for line in recipe("static"))


def test_the_official_suite_is_run_by_no_other_target():
    assert recipe("conformance") == ["$(BIN)/python -m tests.conformance.run $(SUITE)"]
    assert "conformance" not in " ".join((*recipe("test"), *recipe("static")))


@pytest.mark.parametrize("folder", ["conformance", "clients"])
def test_what_npm_installs_is_pinned_by_digest_and_comes_from_no_named_address(folder: str):
    place = ROOT / "tests" / folder
    wanted = json.loads((place / "package.json").read_text(encoding="utf-8"))["dependencies"]
    locked = json.loads((place / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert locked[""]["dependencies"] == wanted
    assert all(re.fullmatch(r"\d+\.\d+\.\d+(-alpha\.\d+)?", version) for version in wanted.values())
    packages = {name: package for name, package in locked.items() if name}
    assert wanted.keys() <= {name.removeprefix("node_modules/") for name in packages}
    assert [name for name, package in packages.items() if not package["integrity"].startswith("sha512-")] == []
    assert [name for name, package in packages.items() if "resolved" in package] == []


def test_the_list_of_parts_is_made_of_the_lock_that_is_installed_and_held_against_its_schema():
    made = " ".join(recipe("sbom"))
    assert "cyclonedx-py environment $(SUPPLY)/product --pyproject pyproject.toml" in made
    assert "--python $(SUPPLY)/product install --quiet --require-hashes -r requirements.lock" in MAKEFILE
    assert "--validate --output-file sbom.json" in made
    assert "--require-hashes -r deploy/supply.lock" in MAKEFILE
    assert "sbom.json" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_what_asks_about_versions_online_is_no_part_of_what_judges_a_change():
    assert "pip-audit" in " ".join(recipe("audit"))
    assert "audit" not in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_no_lock_file_holds_an_address():
    places = ("*.lock", "deploy/*.lock", "tests/**/*.lock", "tests/**/package-lock.json")
    locks = [path for pattern in places for path in ROOT.glob(pattern)]
    assert len(locks) > 4
    assert [path.name for path in locks if "://" in path.read_text(encoding="utf-8")] == []
