"""How often one principal and one tenant may call, told over HTTP."""

from __future__ import annotations

import socket

from tests.support.server import StubDispatcher, request, running, status_of


def statuses(server, count: int, **claims: str) -> list[int]:
    return [server.call(token=server.issuer.token(**claims)).status_code for _ in range(count)]


def test_a_principal_above_its_rate_is_told_to_wait_and_nothing_is_executed(tmp_path):
    dispatcher = StubDispatcher()
    with running(dispatcher, tmp_path, rate_principal=1) as server:
        assert statuses(server, 2) == [200, 200]  # a burst of two seconds' worth
        response = server.call()
        assert response.status_code == 429
        assert response.headers["retry-after"] == "1"
        data = response.json()["error"]["data"]
        assert (data["code"], data["retryable"], data["outcome_known"]) == ("rate_limited", True, True)
        assert len(dispatcher.calls) == 2
        assert statuses(server, 1, sub="clerk-2") == [200]


def test_a_tenant_has_a_rate_of_its_own_whoever_calls(tmp_path):
    with running(StubDispatcher(), tmp_path, rate_tenant=1) as server:
        assert [statuses(server, 1, sub=f"clerk-{n}")[0] for n in range(3)] == [200, 200, 429]
        assert statuses(server, 1, tenant_id="shop-2") == [200]


def test_a_request_that_fails_counts_like_one_that_succeeds(tmp_path):
    with running(StubDispatcher(), tmp_path, rate_principal=1) as server:
        forbidden = server.call("create_return", token=server.issuer.token(scope="orders:read"))
        broken = server.post(
            "{", {"Authorization": f"Bearer {server.issuer.token()}", "Content-Type": "application/json"}
        )
        assert (forbidden.status_code, broken.status_code) == (403, 400)
        assert server.call().status_code == 429


def test_a_token_that_is_not_accepted_spends_nobodys_budget(tmp_path):
    with running(StubDispatcher(), tmp_path, rate_principal=1) as server:
        assert statuses(server, 5, aud="elsewhere") == [401] * 5
        assert statuses(server, 2) == [200, 200]


def test_an_address_that_fails_too_often_is_told_to_wait_and_a_right_token_passes_from_it_meanwhile(tmp_path):
    with running(StubDispatcher(), tmp_path, rate_failures=1) as server:
        assert statuses(server, 2, aud="elsewhere") == [401, 401]
        told = server.call(token=server.issuer.token(aud="elsewhere"))
        data = told.json()["error"]["data"]
        assert (told.status_code, told.headers["retry-after"]) == (429, "1")
        assert (data["code"], data["retryable"], data["details"]) == ("rate_limited", True, {})
        assert "resource_metadata=" in told.headers["www-authenticate"]  # who has no token still learns the way in
        assert server.rpc("tools/list").status_code == 429
        assert statuses(server, 5) == [200] * 5


def test_an_address_is_the_connections_own_whatever_a_header_says_of_it(tmp_path):
    with running(StubDispatcher(), tmp_path, rate_failures=1) as server:
        body, headers = request("tools/list")
        claimed = [{"X-Forwarded-For": f"192.0.2.{n}", "Forwarded": f"for=192.0.2.{n}"} for n in range(3)]
        assert [server.post(body, {**headers, **more}).status_code for more in claimed] == [401, 401, 429]
        with socket.create_connection(("127.0.0.1", server.port), 10, ("127.0.0.2", 0)) as another:
            another.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 0\r\n\r\n" % server.port)
            assert status_of(another.recv(65536)) == 401


def test_a_caller_above_its_rate_is_refused_before_its_body_is_read(tmp_path):
    with running(StubDispatcher(), tmp_path, rate_principal=1) as server:
        statuses(server, 2)
        large = b"x" * 300_000
        headers = {"Authorization": f"Bearer {server.issuer.token()}", "Content-Type": "application/json"}
        assert server.post(large, headers).status_code == 429
