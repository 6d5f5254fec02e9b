"""Options for files that are not part of the repository; a test that needs one is deselected without it.

So is, and counted among the deselected, what only root can try, where root does not run the tests.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import fuzzing

FILES = {
    "vectors": "a directory of Wycheproof's JWS vectors (json_web_signature_test.json and others)",
    "retail": "a JSON file of a retail shop's orders and return requests",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, what in FILES.items():
        parser.addoption(f"--{name}", metavar="PATH", type=Path, default=None, help=f"run the tests that read {what}")
    parser.addoption("--fuzz", metavar="COUNT", type=int, default=None, help="try so many generated examples, new ones")


def pytest_configure(config: pytest.Config) -> None:
    count = config.getoption("fuzz")
    fuzzing.ASKED[:] = [] if count is None else [count]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    absent = {name for name in FILES if config.getoption(name) is None}
    beyond = os.geteuid() != 0
    unwanted = [
        item
        for item in items
        if absent & set(getattr(item, "fixturenames", ())) or (beyond and item.get_closest_marker("root") is not None)
    ]
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = [item for item in items if item not in unwanted]


@pytest.fixture
def vectors(request: pytest.FixtureRequest) -> Path:
    return Path(request.config.getoption("vectors"))


@pytest.fixture
def retail(request: pytest.FixtureRequest) -> Path:
    return Path(request.config.getoption("retail"))
