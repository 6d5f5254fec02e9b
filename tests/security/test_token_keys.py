"""Which keys are trusted, for how long, and what happens when their files change or break."""

from __future__ import annotations

import base64
import json
import math
import os
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.support.opens import none_to_open
from tests.support.server import StubDispatcher, running
from tests.support.tokens import DROP, ISSUER, Issuer, b64, changed
from tool_server.auth import Verifier
from tool_server.call import Caller
from tool_server.errors import TrustError
from tool_server.jws import Reason
from tool_server.keys import AGAIN_SECONDS, Keyring

ROW = {"issuer": ISSUER, "jwks_file": "jwks.json", "tenants": "every"}


def keyring_of(directory: Path, *members: object) -> Keyring:
    (directory / "jwks.json").write_text(json.dumps({"keys": list(members)}))
    (directory / "issuers.json").write_text(json.dumps([ROW]))
    return Keyring(directory / "issuers.json")


def rsa_jwk(numbers: rsa.RSAPublicNumbers, **changes: object) -> dict[str, object]:
    def number(value: int) -> str:
        return b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))

    return {"kty": "RSA", "kid": "r", "alg": "RS256", "n": number(numbers.n), "e": number(numbers.e), **changes}


def jwk_of(algorithm: str, **changes: object) -> dict[str, object]:
    match algorithm[:2]:
        case "ES":
            curve = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}[algorithm]
            base = ECAlgorithm.to_jwk(ec.generate_private_key(curve).public_key(), as_dict=True)
        case _:
            public = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
            base = RSAAlgorithm.to_jwk(public, as_dict=True)
            base.pop("key_ops", None)
    return {**base, "kid": algorithm, "alg": algorithm, **changes}


def test_each_asymmetric_algorithm_is_pinned_to_the_key_that_names_it(tmp_path):
    names = ("ES256", "ES384", "ES512", "RS256", "PS512")
    trust = keyring_of(tmp_path, *(jwk_of(name) for name in names)).trust()
    assert {kid: key.algorithm for kid, key in trust.keys.items()} == {name: name for name in names}


SECRETS = ["", "secret", "x" * 31, "x" * 64]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda text: f"{len(text)} bytes")
def test_no_shared_secret_is_a_key_however_long(tmp_path, secret):
    with pytest.raises(TrustError, match="symmetric"):
        keyring_of(tmp_path, {"kty": "oct", "kid": "s", "alg": "HS256", "k": b64(secret.encode())})


WRONG_MEMBERS = {
    "for encryption": {"use": "enc"},
    "use of another type": {"use": ["sig"]},
    "key_ops encrypt": {"use": DROP, "key_ops": ["encrypt"]},
    "key_ops sign and verify": {"key_ops": ["sign", "verify"]},
    "no algorithm": {"alg": DROP},
    "algorithm none": {"alg": "none"},
    "algorithm HS256": {"alg": "HS256"},
    "another kind's algorithm": {"alg": "ES256"},
    "another curve": {"crv": "Ed448"},
    "no curve": {"crv": DROP},
    "no kid": {"kid": DROP},
    "empty kid": {"kid": ""},
    "kid with a line break": {"kid": "a\nb"},
    "long kid": {"kid": "k" * 121},
    "kid of another type": {"kid": 7},
    "short point": {"x": b64(b"short")},
    "no point": {"x": DROP},
    "private": {"d": b64(b"d" * 32)},
    "private in part": {"q": "AA"},
}


@pytest.mark.parametrize("changes", WRONG_MEMBERS.values(), ids=WRONG_MEMBERS.keys())
def test_a_key_that_is_not_a_public_signature_key_with_its_algorithm_is_not_loaded(tmp_path, changes):
    member = Issuer.at(tmp_path).jwk(**changes)
    with pytest.raises(TrustError) as caught:
        keyring_of(tmp_path, member)
    assert str(member.get("d", "never")) not in str(caught.value)


P = 2**255 - 19


@pytest.mark.parametrize(
    "y",
    [0, 1, P - 1, P, P + 1, 2**255 - 1, 2**255, 2**255 + 1]
    + [int.from_bytes(bytes.fromhex(text), "little") for text in (
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    )],
    ids=hex,
)  # fmt: skip
def test_a_point_of_small_order_or_in_a_second_spelling_is_no_key(tmp_path, y):
    with pytest.raises(TrustError, match="small order"):
        keyring_of(tmp_path, Issuer.at(tmp_path).jwk(x=b64(y.to_bytes(32, "little"))))


def test_a_short_or_weak_rsa_key_is_not_loaded(tmp_path):
    strong = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key().public_numbers()
    keyring_of(tmp_path, rsa_jwk(strong))
    short = rsa.RSAPublicNumbers(65537, strong.n % 2**1023 | 2**1023 | 1)
    for weak in (
        short,
        rsa.RSAPublicNumbers(3, strong.n),
        rsa.RSAPublicNumbers(1, strong.n),
        rsa.RSAPublicNumbers(65537, strong.n + 1),
        rsa.RSAPublicNumbers(65537, 2**8192 + 1),  # whoever verifies with it pays for its length
    ):
        with pytest.raises(TrustError):
            keyring_of(tmp_path, rsa_jwk(weak))


def test_a_modulus_of_the_generator_that_had_the_roca_fault_is_no_key(tmp_path):
    """Such a modulus is a power of 65537 modulo each small prime; a chosen one beside it is none."""
    primorial = math.prod(one for one in range(3, 168, 2) if all(one % by for by in range(3, one, 2)))
    factor = 2**2047 // primorial
    weak = next(number for more in (1, 2) if (number := pow(65537, 4711, primorial) + (factor + more) * primorial) % 2)
    with pytest.raises(TrustError, match="ROCA"):
        keyring_of(tmp_path, rsa_jwk(rsa.RSAPublicNumbers(65537, weak)))
    keyring_of(tmp_path, rsa_jwk(rsa.RSAPublicNumbers(65537, weak + 2)))


@pytest.mark.parametrize(("curve", "named"), [("ES384", "ES256"), ("ES256", "ES512"), ("ES512", "ES384")])
def test_a_key_on_another_curve_than_its_algorithms_is_no_key(tmp_path, curve, named):
    with pytest.raises(TrustError, match=f"of another kind than its alg {named}"):
        keyring_of(tmp_path, jwk_of(curve, alg=named))


def test_a_point_off_its_curve_is_no_key(tmp_path):
    member = jwk_of("ES256")
    with pytest.raises(TrustError, match="well-formed"):
        keyring_of(tmp_path, {**member, "y": member["x"]})


@pytest.mark.parametrize("end", [True, "9999999999", 1e12, -1, None])
def test_an_end_that_is_no_time_spoils_the_set(tmp_path, end):
    with pytest.raises(TrustError, match="exp"):
        keyring_of(tmp_path, Issuer.at(tmp_path).jwk(exp=end))


def test_a_key_verifies_until_its_end_and_from_then_on_nothing_whatever_its_tokens_say(tmp_path):
    issuer = Issuer.at(tmp_path)
    end = int(time.time())
    issuer.publish(issuer.jwk(exp=end))
    keyring, token = Keyring(issuer.issuers_file), issuer.token()
    found = [Verifier(keyring, issuer.resource, lambda at=at: at).verify(token) for at in (end - 0.1, end, end + 1)]
    assert isinstance(found[0], Caller)
    assert found[1:] == [Reason.UNKNOWN_KEY, Reason.UNKNOWN_KEY]


def test_a_kid_or_a_key_that_stands_there_twice_is_refused(tmp_path):
    first = Issuer.at(tmp_path)
    second = Issuer(Ed25519PrivateKey.generate(), "key-1", ISSUER, tmp_path)
    with pytest.raises(TrustError, match="two keys have the kid"):
        keyring_of(tmp_path, first.jwk(), second.jwk())
    with pytest.raises(TrustError, match="another kid"):
        keyring_of(tmp_path, first.jwk(), first.jwk(kid="key-2"))


def test_a_set_of_more_keys_than_anybody_has_is_none(tmp_path):
    keys = [Issuer.at(tmp_path).jwk(kid=f"k{n}") for n in range(65)]
    keyring_of(tmp_path, *keys[1:])
    with pytest.raises(TrustError, match="at most 64 keys"):
        keyring_of(tmp_path, *keys)


def test_one_bad_key_spoils_the_set(tmp_path):
    good = Issuer.at(tmp_path).jwk()
    for bad in ({"kty": "oct", "kid": "s", "alg": "HS256", "k": "AAAA"}, "text", None, [], {}):
        with pytest.raises(TrustError):
            keyring_of(tmp_path, good, bad)


BROKEN = {
    "missing": None,
    "empty": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "no keys": b'{"keys": []}',
    "keys of another type": b'{"keys": {}}',
    "a member twice": b'{"keys": [], "keys": []}',
    "not UTF-8": b"\xff\xfe{}",
    "too large": b" " * (256 * 1024 + 1),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("file", ["issuers.json", "jwks.json"])
def test_the_server_does_not_start_on_files_that_it_cannot_trust(tmp_path, file, content):
    Issuer.at(tmp_path)
    path = tmp_path / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TrustError, match=file if content != b'{"keys": []}' else "issuers"):
        Keyring(tmp_path / "issuers.json")


def test_an_issuer_named_twice_is_refused(tmp_path):
    Issuer.at(tmp_path)
    for rows in ([ROW, ROW], [{**ROW, "trusted": True}], [{"issuer": ISSUER}], [{**ROW, "issuer": ""}], [7]):
        (tmp_path / "issuers.json").write_text(json.dumps(rows))
        with pytest.raises(TrustError, match="issuers"):
            Keyring(tmp_path / "issuers.json")


@pytest.mark.parametrize("tenants", [DROP, None, [], "", "all", "*", ["shop-1", ""], ["shop 1"], [None], {}, True, 1])
def test_an_issuer_whose_tenants_are_not_said_is_trusted_for_none(tmp_path, tenants):
    Issuer.at(tmp_path)
    (tmp_path / "issuers.json").write_text(json.dumps([changed(ROW, {"tenants": tenants})]))
    with pytest.raises(TrustError, match=r"\[0\]\.tenants"):
        Keyring(tmp_path / "issuers.json")


@pytest.mark.parametrize("file", ["issuers.json", "jwks.json"])
def test_a_file_that_breaks_while_the_server_runs_trusts_nobody_until_it_is_mended(tmp_path, file):
    with running(StubDispatcher(), tmp_path) as server:
        token, path = server.issuer.token(), tmp_path / file
        good = path.read_bytes()
        for broken in (None, good[: len(good) // 2], b"{}"):
            if broken is None:
                path.unlink()
            else:
                path.write_bytes(broken)
            response = server.call(token=token)
            assert response.status_code == 503
            assert response.json()["error"]["data"]["code"] == "unavailable"
            assert "retry-after" in response.headers
            ready = server.client.get(f"{server.origin}/readyz")
            assert (ready.status_code, ready.json()["reason"]) == (503, "keys_unusable")
            path.write_bytes(good)
            assert server.call(token=token).status_code == 200
            assert server.client.get(f"{server.origin}/readyz").status_code == 200


@pytest.mark.parametrize("file", ["issuers.json", "jwks.json"])
def test_what_could_not_be_read_in_passing_is_looked_at_again_though_nobody_touched_it(tmp_path, file):
    Issuer.at(tmp_path)
    path, now = tmp_path / file, [100.0]
    keyring = Keyring(tmp_path / "issuers.json", lambda: now[0])
    path.touch()
    with none_to_open():
        assert keyring.trust().problem is not None
    now[0] += AGAIN_SECONDS - 0.01
    assert (dict(keyring.trust().keys), keyring.trust().problem is None) == ({}, False)
    now[0] += 0.01
    assert keyring.trust().problem is None
    assert keyring.trust().keys.keys() == {"key-1"}


def test_a_removed_key_is_trusted_no_more_though_the_file_has_the_size_and_the_time_of_before(tmp_path):
    one, other = (Issuer.at(tmp_path, kid=kid).jwk() for kid in ("key-1", "key-2"))
    keyring, path = keyring_of(tmp_path, one), tmp_path / "jwks.json"
    before = path.stat()
    path.write_text(json.dumps({"keys": [other]}))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert keyring.trust().keys.keys() == {"key-2"}


@pytest.mark.parametrize("file", ["issuers.json", "jwks.json"])
def test_a_file_that_everybody_can_write_trusts_nobody(tmp_path, file):
    Issuer.at(tmp_path)
    keyring = Keyring(tmp_path / "issuers.json")
    assert keyring.trust().problem is None
    (tmp_path / file).chmod(0o666)
    trust = keyring.trust()
    assert (dict(trust.keys), dict(trust.issuers)) == ({}, {})
    assert "everybody can write it" in str(trust.problem)
    with pytest.raises(TrustError, match=file):
        Keyring(tmp_path / "issuers.json")
    (tmp_path / file).chmod(0o644)
    assert keyring.trust().problem is None


def test_base64_of_the_standard_alphabet_is_no_spelling_of_a_key(tmp_path):
    issuer = Issuer.at(tmp_path)
    raw = issuer.private.public_key().public_bytes_raw()
    assert keyring_of(tmp_path, issuer.jwk()).trust().keys["key-1"].raw.endswith(raw)
    with pytest.raises(TrustError):
        keyring_of(tmp_path, issuer.jwk(x=base64.b64encode(raw + b"\xff").decode()))
