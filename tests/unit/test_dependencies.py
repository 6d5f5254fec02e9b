"""Each dependency has its reason in docs/dependencies.md, and nothing stands there that is not one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGE = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
EXTRAS = PROJECT["optional-dependencies"]
SECTIONS = {
    "At run time": PROJECT["dependencies"],
    "For the page of an evaluation": EXTRAS["report"],
    "For development": EXTRAS["dev"],
}


def names(requirements: Iterable[str]) -> list[str]:
    return [re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0] for requirement in requirements]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_lists_what_the_project_depends_on_with_a_reason(section: str) -> None:
    part = PAGE.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", part, re.MULTILINE)
    assert [name for name, _ in rows] == names(SECTIONS[section])
    assert all(len(reason) > 5 for _, reason in rows)


def test_the_page_has_a_section_for_every_group() -> None:
    assert set(EXTRAS) == {"report", "dev"}
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == list(SECTIONS)
