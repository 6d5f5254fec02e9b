"""Tokens that the right key signed and that still are not worth this call."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from shared_contracts.task_token import LEEWAY_SECONDS, LIFETIME_SECONDS_MAX, Use
from tests.support.server import Server, StubDispatcher, running
from tests.support.tokens import DROP, Issuer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(StubDispatcher(), tmp_path_factory.mktemp("keys")) as server:
        yield server


def refused(server: Server, token: str, reason: str | None = None) -> None:
    before = len(server.dispatcher.calls)
    response = server.call(token=token)
    assert response.status_code == 401
    data = response.json()["error"]["data"]
    assert data["code"] == "token_invalid"
    assert reason is None or data["details"] == {"reason": reason}
    assert len(server.dispatcher.calls) == before


def accepted(server: Server, token: str, name: str = "get_order") -> None:
    assert server.call(name, token=token).status_code == 200


@pytest.mark.parametrize(
    "audience",
    [
        DROP,
        "",
        [],
        None,
        {"tools": 1},
        "{aud}/",
        "{aud}-admin",
        ["{aud}"],
        ["{aud}", "admin"],
        "{aud} ",
        "http://127.0.0.1:1/mcp",
        "https://approvals.example/events",
        7,
    ],
    ids=repr,
)
def test_only_the_exact_single_audience_is_accepted(server, audience):
    real = server.issuer.resource
    if isinstance(audience, str):
        audience = audience.format(aud=real)
    if isinstance(audience, list):
        audience = [item.format(aud=real) for item in audience]
    refused(server, server.issuer.token(aud=audience))


def test_an_audience_in_other_letters_is_another_audience(server):
    refused(server, server.issuer.token(aud=server.issuer.resource.upper()), "audience")
    refused(server, server.issuer.token(aud=server.issuer.resource.replace("/mcp", "")), "audience")


@pytest.mark.parametrize(
    "issuer",
    ["h", "", "https://host", "https://host.example/x", "https://host.example/", ["https://host.example"], None, DROP],
)
def test_only_the_exact_issuer_of_the_key_is_accepted(server, issuer):
    refused(server, server.issuer.token(iss=issuer))


def raw_exp(server: Server, text: str) -> str:
    """A token whose exp is spelt exactly so in its JSON."""
    claims = json.dumps(server.issuer.claims(exp="@")).replace('"@"', text)
    return server.issuer.sign(server.issuer.header(), claims.encode())


@pytest.mark.parametrize(
    "spelling",
    [
        '"{soon}"', "{soon}.5", "{soon}.0", '"9_999_999_999"', "1" + "0" * 50, "9" * 5000, "1e999", "Infinity", "NaN",
        "true", "null", "[1]", "[{soon}]", "{{}}", "-1", "0", "-0", "{soon}e0", '""',
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_an_expiry_is_a_plain_integer(server, spelling):
    refused(server, raw_exp(server, spelling.format(soon=int(time.time()) + 60)))


@pytest.mark.parametrize("claim", ["iat", "nbf"])
@pytest.mark.parametrize("value", ["1", 1.5, True, None, 10**50, -1, DROP], ids=repr)
def test_the_other_times_are_plain_integers_too(server, claim, value):
    refused(server, server.issuer.token(**{claim: value}), "claims")


@pytest.mark.parametrize(
    "claim",
    [
        "iss", "aud", "sub", "client_id", "tenant_id", "task_id", "scope", "iat", "nbf", "exp", "jti", "use",
        "authorization_details",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [DROP, "", None], ids=["absent", "empty", "null"])
def test_every_claim_is_needed(server, claim, value):
    refused(server, server.issuer.token(**{claim: value}))


def test_a_claim_that_we_do_not_know_is_refused(server):
    refused(server, server.issuer.token(roles=["admin"]), "claims")


def test_a_well_formed_token_that_merely_lacks_the_scope_is_forbidden_not_unknown(server):
    response = server.call(token=server.issuer.token(scope="policies:read"))
    assert response.status_code == 403
    assert response.json()["error"]["data"]["code"] == "scope_missing"


@pytest.mark.parametrize(
    "scope", [" ", "orders:read ", " orders:read", "orders:read  returns:read", "a\tb", 'a"b', "é"]
)
def test_a_malformed_scope_is_refused(server, scope):
    refused(server, server.issuer.token(scope=scope), "scope")


@pytest.mark.parametrize("payload", [b"", b"{}", b"[]", b"null", b"\xff", b"{", b"[" * 3000, b'"x"'], ids=repr)
def test_a_payload_that_is_no_set_of_claims_is_refused(server, payload):
    refused(server, server.issuer.sign(server.issuer.header(), payload))


@pytest.mark.parametrize("name", ["tenant_id", "scope", "use", "exp", "customer", "resource", "attempt"])
@pytest.mark.parametrize("first", [True, False], ids=["before the true one", "after it"])
def test_a_claim_that_is_given_twice_has_two_meanings_and_is_refused(server, name, first):
    claims = server.issuer.claims()
    inside = claims["authorization_details"][0]
    value = json.dumps(inside[name] if name in inside else claims[name])  # even the same value
    written, member = json.dumps(claims), f'"{name}": {value}'
    assert written.count(member) == 1
    twice = written.replace(member, f'"{name}": null, {member}' if first else f"{member}, {member}")
    refused(server, server.issuer.sign(server.issuer.header(), twice.encode()), "claims")


def test_expiry_not_before_and_issue_allow_for_a_small_difference_of_clocks_and_no_more(server):
    now, slack = int(time.time()), LEEWAY_SECONDS
    early = {"iat": now - 60, "nbf": now - 60}
    accepted(server, server.issuer.token(**early, exp=now - slack + 3))
    refused(server, server.issuer.token(**early, exp=now - slack - 1), "expired")
    accepted(server, server.issuer.token(nbf=now + slack - 2))
    refused(server, server.issuer.token(nbf=now + slack + 5), "not_yet")
    refused(server, server.issuer.token(iat=now + slack + 5, exp=now + 60), "not_yet")


def test_a_lifetime_is_capped_by_use_whatever_the_token_says(server):
    now = int(time.time())
    mint = {Use.CALL: server.issuer.token, Use.PROBE: server.issuer.probe, Use.EXTERNAL: server.issuer.external}
    assert set(mint) == set(Use)
    for use, token in mint.items():
        longest = LIFETIME_SECONDS_MAX[use]
        times = {"iat": now, "nbf": now}
        assert server.rpc("tools/list", token=token(**times, exp=now + longest)).status_code == 200
        refused(server, token(**times, exp=now + longest + 1), "lifetime")
        refused(server, token(**times, exp=now), "lifetime")


@pytest.mark.parametrize("member", ["tool", "resource", "customer", "arguments_sha256", "attempt"])
def test_a_call_token_without_a_member_that_binds_the_call_is_refused(server, member):
    refused(server, server.issuer.token(details={member: DROP}))
    refused(server, server.issuer.token(details={member: None}))


def test_a_tool_that_takes_its_key_from_the_token_needs_one_there_and_another_does_not(server):
    accepted(server, server.issuer.token(details={"idempotency_key": DROP}))
    for name in ("create_return", "find_return", "send_return_notice"):
        refused(server, server.issuer.token(details={"tool": name, "idempotency_key": DROP}), "details")


@pytest.mark.parametrize(
    "details",
    [
        {"type": "other"},
        {"type": DROP},
        {"approved": True},
        {"attempt": 0},
        {"attempt": "1"},
        {"attempt": True},
        {"arguments_sha256": "A" * 64},
        {"arguments_sha256": "a" * 63},
        {"idempotency_key": ""},
        {"idempotency_key": "a b"},
        {"customer": ""},
        {"resource": "R-1\u0000"},
    ],
    ids=repr,
)
def test_malformed_details_are_refused(server, details):
    refused(server, server.issuer.token(details=details), "claims")


def test_a_token_is_for_one_call_and_not_for_two_or_none(server):
    one = server.issuer.details()
    refused(server, server.issuer.token(authorization_details=[one, one]))
    refused(server, server.issuer.token(authorization_details=[]), "details")


def test_a_probe_reads_what_is_offered_and_calls_nothing(server):
    probe = server.issuer.probe
    for method in ("server/discover", "tools/list"):
        assert server.rpc(method, token=probe()).status_code == 200
    for name in ("get_order", "create_return", "no_such_tool"):
        before = len(server.dispatcher.calls)
        response = server.call(name, token=probe())
        assert response.status_code == 403
        assert 'scope=""' not in response.headers["www-authenticate"]
        assert len(server.dispatcher.calls) == before


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": "orders:read"},
        {"task_id": "task-1"},
        {"authorization_details": [{"type": "kessai_call", "customer": "C"}]},
    ],
    ids=repr,
)
def test_a_probe_that_carries_more_than_a_probe_may_is_refused(server, claims):
    refused(server, server.issuer.probe(**claims))


def test_an_external_token_reads_for_its_one_customer(server):
    accepted(server, server.issuer.external())
    refused(server, server.issuer.external(details={"customer": DROP}))
    refused(server, server.issuer.external(authorization_details=[]), "details")
    refused(server, server.issuer.external(details={"arguments_sha256": "a" * 64}), "details")


WRITE: dict[str, Any] = {"tool": "create_return", "resource": "R-1001", "idempotency_key": "K-1"}


def test_an_external_token_writes_by_name_with_one_resource_and_one_key(server):
    accepted(server, server.issuer.external(scope="returns:write", details=WRITE), "create_return")


@pytest.mark.parametrize(
    "changes", [{name: DROP} for name in WRITE] + [{"tool": "get_return"}, {"tool": "no_such_tool"}], ids=repr
)
def test_an_external_token_for_a_write_that_is_not_wholly_bound_is_refused(server, changes):
    refused(server, server.issuer.external(scope="returns:write", details={**WRITE, **changes}), "details")


@pytest.mark.parametrize("scope", ["returns:write orders:read", "returns:write notices:write", "notices:write"])
def test_an_external_token_for_a_write_has_that_writes_scope_and_no_other(server, scope):
    refused(server, server.issuer.external(scope=scope, details=WRITE), "details")


def test_the_dispatcher_is_given_what_the_token_says_and_nothing_else(server):
    token = server.issuer.token(
        sub="clerk-9", jti="j-1", scope="orders:read", details={"customer": "C-9", "attempt": 3}
    )
    accepted(server, token)
    caller, name, arguments = server.dispatcher.calls[-1]
    assert (caller.claims.sub, caller.claims.jti, caller.kid) == ("clerk-9", "j-1", server.issuer.kid)
    assert caller.scopes == frozenset({"orders:read"})
    assert (caller.claims.authorization_details[0].customer, caller.claims.authorization_details[0].attempt) == (
        "C-9",
        3,
    )
    assert (name, arguments) == ("get_order", {"order_id": "R-1001"})


def test_the_issuer_of_a_token_is_the_one_that_its_key_belongs_to(tmp_path):
    with running(StubDispatcher(), tmp_path) as server:
        other = Issuer.at(tmp_path / "other", server.issuer.resource, "key-2", "https://partner.example")
        rows = [(server.issuer.name, "jwks.json"), (other.name, "other/jwks.json")]
        server.issuer.issuers_file.write_text(json.dumps([{"issuer": name, "jwks_file": file} for name, file in rows]))
        accepted(server, other.token())
        refused(server, other.token(iss=server.issuer.name), "issuer")
