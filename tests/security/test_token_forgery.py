"""Tokens that somebody else made, or changed: refused through the outermost door, with nothing executed."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.server import Server, StubDispatcher, running
from tests.support.tokens import DROP, Issuer, b64, unb64


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(StubDispatcher(), tmp_path_factory.mktemp("keys")) as server:
        yield server


def refused(server: Server, token: str) -> dict[str, Any]:
    """The 401's error data, after asserting that it is one and that no call was carried out."""
    before = len(server.dispatcher.calls)
    response = server.call(token=token)
    assert response.status_code == 401, token
    assert response.headers["www-authenticate"].startswith("Bearer ")
    assert len(server.dispatcher.calls) == before
    return dict(response.json()["error"]["data"])


def with_header(token: str, header: Any) -> str:
    """The same payload and signature under another header."""
    return ".".join([b64(json.dumps(header).encode()), *token.split(".")[1:]])


def test_the_good_token_that_all_these_are_made_from_is_accepted(server):
    assert server.call(token=server.issuer.token()).status_code == 200


def test_every_spelling_of_no_algorithm_is_refused_for_one_reason(server):
    good = server.issuer.token()
    answers = []
    for name in ("none", "None", "NONE", "nOnE", "", None, ["RS256"], ["EdDSA"], True, {}):
        forged = with_header(good, server.issuer.header(alg=name))
        unsigned = forged.rpartition(".")[0] + "."
        answers += [refused(server, forged), refused(server, unsigned)]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["details"] == {}


def test_a_token_without_an_algorithm_is_refused(server):
    refused(server, with_header(server.issuer.token(), server.issuer.header(alg=DROP)))


def test_the_public_key_is_no_secret_to_sign_with(server):
    public = server.issuer.private.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    secrets = (
        pem,
        pem.rstrip(b"\n"),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH),
        json.dumps(server.issuer.jwk()).encode(),
        public.public_bytes_raw(),
    )
    for secret in secrets:
        for algorithm, digest in (("HS256", hashlib.sha256), ("HS512", hashlib.sha512)):
            header = server.issuer.header(alg=algorithm)
            signed = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(server.issuer.claims()).encode())}"
            refused(server, f"{signed}.{b64(hmac.digest(secret, signed.encode(), digest))}")


def test_the_library_is_new_enough_to_refuse_a_jwk_as_an_hmac_key():
    assert tuple(int(part) for part in jwt.__version__.split(".")[:2]) >= (2, 13)


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """An address that a verifier must never ask, and what was asked there."""
    hits: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.send_error(404)

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/", hits
        http.shutdown()
        thread.join()


def test_a_key_that_the_token_brings_or_names_is_neither_used_nor_fetched(server, listener):
    address, hits = listener
    attacker = Issuer(
        Ed25519PrivateKey.generate(),
        server.issuer.kid,
        server.issuer.name,
        server.issuer.directory,
        server.issuer.resource,
    )
    for signer in (attacker, server.issuer):  # even the right key does not make such a header acceptable
        for hint in (
            {"jwk": attacker.jwk()},
            {"jku": address},
            {"x5u": address},
            {"x5c": [b64(b"certificate")]},
            {"x5t": "AAAA"},
            {"kid": DROP, "jwk": attacker.jwk()},
        ):
            refused(server, signer.token(header=hint))
    refused(server, attacker.token())
    assert hits == []


@pytest.mark.parametrize(
    "kid",
    [
        "../../dev/null",
        "' OR 1=1--",
        "k" * 10_000,
        "",
        "key-1 ",
        "KEY-1",
        "key-1\x00",
        None,
        1,
        ["key-1"],
        {"a": 1},
        DROP,
    ],
    ids=repr,
)
def test_a_kid_is_an_opaque_name_and_only_the_exact_one_is_known(server, kid):
    refused(server, server.issuer.token(header={"kid": kid}))


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["x"], "x": 1},
        {"crit": []},
        {"crit": "x"},
        {"crit": ["alg"]},
        {"b64": False},
        {"b64": False, "crit": ["b64"]},
        {"b64": True},
        {"zip": "DEF"},
        {"cty": "JWT"},
    ],
    ids=repr,
)
def test_a_header_that_asks_for_more_than_we_do_is_refused(server, header):
    refused(server, server.issuer.token(header=header))


@pytest.mark.parametrize("typ", ["JWT", "at+JWT", "AT+JWT", "application/at+jwt", "", None, 1, DROP], ids=repr)
def test_another_kind_of_token_by_the_same_issuer_is_refused(server, typ):
    refused(server, server.issuer.token(header={"typ": typ}))


def test_a_header_that_says_a_thing_twice_is_refused(server):
    header = b'{"alg":"none","alg":"EdDSA","kid":"key-1","typ":"at+jwt"}'
    refused(server, server.issuer.sign(header, server.issuer.claims()))


@pytest.mark.parametrize("header", [b"", b"[]", b"null", b"7", b'"x"', b"\xff\xfe", b"{", b"[" * 5000], ids=repr)
def test_a_header_that_is_no_object_is_refused(server, header):
    refused(server, server.issuer.sign(header, server.issuer.claims()))


def test_the_text_of_a_token_has_one_spelling(server):
    good = server.issuer.token()
    head, payload, signature = good.split(".")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet.index(signature[-1])
    twins = [signature[:-1] + alphabet[last ^ bits] for bits in range(1, 16)]
    assert all(unb64(twin)[:63] == unb64(signature)[:63] for twin in twins)
    spellings = [f"{head}.{payload}.{twin}" for twin in twins]
    spellings += [good + tail for tail in ("=", "==", ".", "..", ".AAAA", "A", "%3D", "~")]
    spellings += [
        good.replace(".", "=.", 1),
        f".{good}",
        f"{head}.{payload}",
        f"{head}..{signature}",
        f"{head}.{payload}.",
    ]
    spellings += [f"{head}.{payload}.{signature.translate(str.maketrans('-_', '+/'))}+"]
    for spelling in spellings:
        refused(server, spelling)


@pytest.mark.parametrize("at", [0, 1, 2], ids=["header", "payload", "signature"])
def test_one_changed_bit_anywhere_breaks_the_token(server, at):
    parts = server.issuer.token().split(".")
    content = bytearray(unb64(parts[at]))
    for index in range(0, len(content), 7):
        changed = bytearray(content)
        changed[index] ^= 1
        refused(server, ".".join([*parts[:at], b64(bytes(changed)), *parts[at + 1 :]]))


def test_another_trusted_key_of_the_same_file_cannot_sign_under_this_kid(server):
    other = Issuer(
        Ed25519PrivateKey.generate(), "key-2", server.issuer.name, server.issuer.directory, server.issuer.resource
    )
    server.issuer.publish(server.issuer.jwk(), other.jwk())
    assert server.call(token=other.token()).status_code == 200
    refused(server, other.token(header={"kid": "key-1"}))


def test_what_an_unproven_token_is_told_does_not_depend_on_its_claims(server):
    stranger = Issuer(Ed25519PrivateKey.generate(), "key-1", "x", server.issuer.directory, server.issuer.resource)
    answers = [
        refused(server, stranger.token(**claims)) for claims in ({}, {"exp": 1}, {"aud": "elsewhere"}, {"sub": 7})
    ]
    assert all(answer == answers[0] for answer in answers)
