"""A token that was revoked is good for nothing, and what cannot be looked up is good for nothing either."""

from __future__ import annotations

import pytest

from tests.support.server import LEGACY, MODERN, Server

METHODS = ("initialize", "ping", "server/discover", "tools/list", "notifications/initialized", "no/such")
PARAMS = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def asked(server: Server, method: str, era: str, token: str) -> tuple[int, str | None]:
    answer = server.rpc(method, PARAMS if method == "initialize" else None, token=token, era=era)
    code = answer.json()["error"]["data"]["code"] if answer.status_code >= 400 else None
    return answer.status_code, code


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_asks_whether_the_token_stands(server, method, era):
    server.dispatcher.token_faults |= {"revoked": "token_revoked", "unknown": "unavailable"}
    assert asked(server, method, era, server.issuer.token(jti="revoked")) == (401, "token_revoked")
    assert asked(server, method, era, server.issuer.token(jti="unknown")) == (503, "unavailable")
    assert asked(server, method, era, server.issuer.token(exp=1, iat=0, nbf=0)) == (401, "token_invalid")
    assert asked(server, method, era, server.issuer.probe(jti="revoked")) in {
        (401, "token_revoked"),
        (403, "scope_missing"),
    }


def test_who_is_refused_so_learns_the_way_in_and_when_to_come_again(server):
    server.dispatcher.token_faults |= {"revoked": "token_revoked", "unknown": "unavailable"}
    refused = server.rpc("tools/list", token=server.issuer.token(jti="revoked"))
    assert 'error="invalid_token", error_description="The token was revoked."' in refused.headers["www-authenticate"]
    assert server.rpc("tools/list", token=server.issuer.token(jti="unknown")).headers["retry-after"] == "1"
    assert server.rpc("tools/list", token=server.issuer.token()).status_code == 200
