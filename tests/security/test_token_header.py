"""The Authorization header as bytes on a socket: one spelling, and no way in through another door."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import Server, StubDispatcher, raw_post, request, running, status_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(StubDispatcher(), tmp_path_factory.mktemp("keys")) as server:
        yield server


def answer_to(server: Server, *authorization: bytes) -> bytes:
    """What a good call gets under these Authorization lines, of which `@` is a good token."""
    body, headers = request("tools/call", {"name": "get_order", "arguments": {"order_id": "R-1001"}})
    token = server.issuer.token().encode()
    lines = [b"%s: %s" % (name.encode(), value.encode()) for name, value in headers.items()]
    lines += [b"Authorization: " + value.replace(b"@", token) for value in authorization]
    return raw_post(server, *lines, body=body.encode())


@pytest.mark.parametrize("value", [b"Bearer @", b"bearer @", b"BEARER @", b"bEaReR @", b"  Bearer @ \t"])
def test_the_scheme_is_matched_in_any_case_and_white_space_around_the_value_is_no_part_of_it(server, value):
    assert status_of(answer_to(server, value)) == 200


@pytest.mark.parametrize(
    "value",
    [
        b"Bearer  @", b"Bearer\t@", b"Bearer\xa0@", b"Bearer\xc2\xa0@", b"Bearer@", b"Beaver @", b"Bearer ", b"Bearer",
        b"Bearer @ extra", b"Bearer @,Bearer @", b"Bearer @, Bearer @", b"Basic @", b"@", b"", b"Bearer Bearer @",
        b"Bearer: @", b'Bearer "@"', b"Bearer token=@", b"Token @", b"DPoP @",
    ],
)  # fmt: skip
def test_every_other_spelling_is_refused_with_a_challenge(server, value):
    before = len(server.dispatcher.calls)
    answer = answer_to(server, value)
    assert status_of(answer) == 401
    assert b"www-authenticate: Bearer " in answer
    assert len(server.dispatcher.calls) == before


def test_two_authorization_headers_are_refused_even_when_both_are_good(server):
    assert status_of(answer_to(server, b"Bearer @", b"Bearer @")) == 401
    assert status_of(answer_to(server, b"Basic eA==", b"Bearer @")) == 401


def test_a_request_without_credentials_gets_a_challenge_that_names_no_error(server):
    answer = answer_to(server)
    assert status_of(answer) == 401
    assert b"error=" not in answer
    assert b'resource_metadata="http://127.0.0.1:%d/.well-known/oauth-protected-resource/mcp"' % server.port in answer


@pytest.mark.parametrize(
    "value",
    [b"Bearer caf\xe9", b"Bearer \xff\xfe", "Bearer 🔑".encode(), b"Bearer " + b"A" * 50_000, b"\x80", b"Bearer @\xe9"],
    ids=lambda value: repr(value[:20]),
)
def test_bytes_that_are_no_text_are_refused_like_any_other_token(server, value):
    assert status_of(answer_to(server, value)) == 401


def test_a_nul_in_a_header_is_no_http(server):
    assert status_of(answer_to(server, b"Bearer @\x00")) == 400


def test_a_header_of_64_kib_is_refused_by_one_layer_or_the_other(server):
    assert status_of(answer_to(server, b"Bearer " + b"A" * 65_536)) in {401, 431}


@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "bearer"])
def test_a_token_in_the_address_is_no_credential(server, name):
    body, headers = request("tools/list")
    response = server.client.post(f"{server.url}?{name}={server.issuer.token()}", content=body, headers=headers)
    assert response.status_code == 401
    assert 'error="' not in response.headers["www-authenticate"]


def test_a_token_in_the_body_or_a_cookie_is_no_credential(server):
    token = server.issuer.token()
    body, headers = request("tools/list", {"access_token": token}, headers={"Cookie": f"access_token={token}"})
    assert server.post(body, headers).status_code == 401
