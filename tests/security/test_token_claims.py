"""What the right token leads to: the forgeries of it are in `tests.security.forgery`."""

from __future__ import annotations

from collections.abc import Iterator

import jwt
import pytest

from tests.support.server import Server, StubDispatcher, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(StubDispatcher(), tmp_path_factory.mktemp("keys")) as server:
        yield server


def test_the_library_is_new_enough_to_refuse_a_jwk_as_an_hmac_key():
    assert tuple(int(part) for part in jwt.__version__.split(".")[:2]) >= (2, 13)


def test_a_probe_reads_what_is_offered_and_calls_nothing(server):
    for method in ("server/discover", "tools/list"):
        assert server.rpc(method, token=server.issuer.probe()).status_code == 200
    for name in ("get_order", "create_return", "no_such_tool"):
        before = len(server.dispatcher.calls)
        response = server.call(name, token=server.issuer.probe())
        assert response.status_code == 403
        assert 'scope=""' not in response.headers["www-authenticate"]
        assert len(server.dispatcher.calls) == before


def test_the_dispatcher_is_given_what_the_token_says_and_nothing_else(server):
    token = server.issuer.token(
        sub="clerk-9", jti="j-1", scope="orders:read", details={"customer": "C-9", "attempt": 3}
    )
    assert server.call(token=token).status_code == 200
    caller, name, arguments = server.dispatcher.calls[-1]
    details = caller.claims.authorization_details[0]
    assert (caller.claims.sub, caller.claims.jti, caller.kid) == ("clerk-9", "j-1", server.issuer.kid)
    assert caller.scopes == frozenset({"orders:read"})
    assert (details.customer, details.attempt) == ("C-9", 3)
    assert (name, arguments) == ("get_order", {"order_id": "R-1001"})
