"""One real server per module: what a test asserts of its calls, it counts itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import Server, StubDispatcher, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(StubDispatcher(), tmp_path_factory.mktemp("keys")) as server:
        yield server
