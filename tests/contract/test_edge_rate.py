"""How often one principal and one tenant may call, told over HTTP."""

from __future__ import annotations

from tests.support.server import StubDispatcher, running


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


def test_a_caller_above_its_rate_is_refused_before_its_body_is_read(tmp_path):
    with running(StubDispatcher(), tmp_path, rate_principal=1) as server:
        statuses(server, 2)
        large = b"x" * 300_000
        headers = {"Authorization": f"Bearer {server.issuer.token()}", "Content-Type": "application/json"}
        assert server.post(large, headers).status_code == 429
