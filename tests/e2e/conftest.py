"""One stack of this machine for all tests of the command line: brought up once, taken away at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """`kessai` on a stack that is up, with a worker, and with the shop's data."""
    cli = Cli(tmp_path_factory.mktemp("kessai") / "home", {})
    said = cli("up")
    assert said.code == 0, said.err
    yield cli
    assert cli("empty", "--yes").code == 0


@pytest.fixture
def nowhere(tmp_path: Path) -> Cli:
    """`kessai` with a home that is not there, and must not be made by a mistake."""
    return Cli(tmp_path / "home", {})
