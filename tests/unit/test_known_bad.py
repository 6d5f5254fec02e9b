"""No lock names a version that an advisory calls bad: a committed list, as old as its date."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
LIST = tomllib.loads((ROOT / "tests" / "security" / "known_bad.toml").read_text("utf-8"))
LOCKS = [path for pattern in ("*.lock", "deploy/*.lock", "tests/**/*.lock") for path in sorted(ROOT.glob(pattern))]


PINNED = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])? *==+ *([^ ;\\]+)")


def pinned(text: str) -> set[tuple[str, str]]:
    """Packages and versions; a line that pins in no way that is understood is a fault, not left out."""
    lines = [line for line in text.splitlines() if line and line[0] not in "# "]
    found = [PINNED.match(line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if match is None]
    return {(re.sub(r"[-_.]+", "-", match[1]).lower(), match[2]) for match in found if match is not None}


def bad(text: str) -> list[str]:
    """What a lock names that it should not, with the advisories."""
    return [
        f"{package} {version}: {', '.join(row['ids'])}"
        for package, version in sorted(pinned(text))
        for row in LIST["bad"]
        if row["package"] == package and SpecifierSet(row["affected"], prereleases=True).contains(version)
    ]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_no_lock_names_a_version_that_is_known_to_be_bad(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert len(pinned(text)) > 10
    assert bad(text) == []


@pytest.mark.parametrize(
    ("package", "version", "advisory"),
    [
        ("pyjwt", "2.12.1", "CVE-2026-48526"), ("pyjwt", "2.10.0", "CVE-2024-53861"),
        ("mcp", "1.28.0", "CVE-2026-59950"), ("starlette", "1.3.0", "CVE-2026-54283"),
        ("cryptography", "49.0.0", "CVE-2026-69247"), ("h11", "0.14.0", "CVE-2025-43859"),
    ],
)  # fmt: skip
def test_a_bad_version_that_is_planted_in_the_lock_is_found_and_named(
    package: str, version: str, advisory: str
) -> None:
    text = (ROOT / "requirements.lock").read_text("utf-8")
    planted = re.sub(rf"^{package}==[^ ]+", f"{package}=={version}", text, flags=re.MULTILINE)
    assert planted != text
    assert any(said.startswith(f"{package} {version}: ") and advisory in said for said in bad(planted))


@pytest.mark.parametrize("line", ["PyJWT==2.10.0", "pyjwt[crypto]==2.10.0 \\", "pyjwt == 2.10.0", "pyjwt===2.10.0"])
def test_no_other_spelling_of_a_pin_hides_a_bad_version(line: str) -> None:
    assert any("CVE-2024-53861" in said for said in bad(line))


@pytest.mark.parametrize("line", ["pyjwt @ https://packages.example/pyjwt.whl", "pyjwt>=2", "-e ./pyjwt", "pyjwt"])
def test_a_line_of_a_lock_that_pins_nothing_is_a_fault(line: str) -> None:
    with pytest.raises(AssertionError):
        pinned(line)


@pytest.mark.parametrize("row", LIST["bad"], ids=lambda row: row["ids"][0])
def test_a_row_says_what_is_bad_and_by_whom_it_is_known_and_is_about_something_installed(row: dict[str, Any]) -> None:
    assert row.keys() == {"package", "affected", "ids", "what", "source"}
    assert all(re.fullmatch(r"CVE-\d{4}-\d{4,}|GHSA(-[0-9a-z]{4}){3}|PYSEC-\d{4}-\d+", one) for one in row["ids"])
    assert re.fullmatch(r"[\w.-]+/[\w.-]+(#\d+)?", row["source"])
    assert str(SpecifierSet(row["affected"]))
    assert any(row["package"] == package for lock in LOCKS for package, _ in pinned(lock.read_text("utf-8")))


def test_the_list_has_a_date() -> None:
    assert isinstance(LIST["dated"], date)
