"""One tool server as it is deployed, for all tests of the group `forgery`: one server, not one on each core."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security.forgery.stand import Stand, opened_stand


@pytest.fixture(scope="session")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with opened_stand(tmp_path_factory.mktemp("forgery")) as stand:
        yield stand
