"""The host's signing key: private where it signs, public before it signs, and trusted by name."""

from __future__ import annotations

import json
import stat
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from host.stack.errors import StackError, StackProblem
from host.stack.files import write_secret
from host.stack.home import Home, open_home
from host.stack.keys import ensure_keys, issuer_of, key_files, read_signing_key, thumbprint


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def raw(text: str) -> bytes:
    return urlsafe_b64decode(text + "==")


def published(home: Home) -> list[dict[str, Any]]:
    return list(json.loads(key_files(home).jwks.read_text())["keys"])


def test_a_new_home_gets_a_key_of_its_own_that_verifies_with_what_is_published(home: Home, tmp_path: Path) -> None:
    files = ensure_keys(home)
    key = read_signing_key(files.signing)
    (public,) = published(home)
    signature = Ed25519PrivateKey.from_private_bytes(raw(key["d"])).sign(b"message")
    Ed25519PublicKey.from_public_bytes(raw(public["x"])).verify(signature, b"message")
    assert public["kid"] == key["kid"]
    other = open_home(tmp_path / "other")
    assert read_signing_key(ensure_keys(other).signing)["kid"] != key["kid"]
    assert issuer_of(other) != issuer_of(home)


def test_the_private_half_is_in_one_file_that_only_we_can_read(home: Home) -> None:
    files = ensure_keys(home)
    assert stat.S_IMODE(files.signing.stat().st_mode) == 0o600
    for key in published(home):
        assert set(key) == {"kty", "crv", "x", "kid", "alg", "use"}
        assert (key["alg"], key["use"]) == ("EdDSA", "sig")


def test_the_kid_is_the_thumbprint_of_the_standards_own_example() -> None:
    example = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"  # RFC 8037, appendix A
    assert thumbprint(example) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_what_is_there_is_kept(home: Home) -> None:
    before = [path.read_text() for path in vars_of(home)]
    assert [path.read_text() for path in vars_of(home)] == before


def vars_of(home: Home) -> list[Path]:
    files = ensure_keys(home)
    return [files.signing, files.jwks, files.issuers]


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"keys": "no"}', '{"keys": [1]}'])
def test_a_lost_or_broken_list_of_public_keys_is_made_anew(home: Home, content: str | None) -> None:
    files = ensure_keys(home)
    files.jwks.unlink()
    if content is not None:
        files.jwks.write_text(content)
    kid = read_signing_key(ensure_keys(home).signing)["kid"]
    assert [key["kid"] for key in published(home)] == [kid]


def test_a_signing_key_that_others_can_read_is_refused(home: Home) -> None:
    files = ensure_keys(home)
    files.signing.chmod(0o644)
    with pytest.raises(StackError) as caught:
        ensure_keys(home)
    assert caught.value.problem is StackProblem.SECRET_READABLE
    assert read_text_of_error(caught.value).count(json.loads(files.signing.read_text())["d"]) == 0


def read_text_of_error(error: StackError) -> str:
    return f"{error} {error.what} {error.mend}"


@pytest.mark.parametrize(
    "change",
    [
        {"d": "AAAA"}, {"d": None}, {"x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}, {"kid": "mine"},
        {"crv": "P-256"}, {"kty": "oct"}, {"d": "ü" * 43},
    ],
)  # fmt: skip
def test_a_signing_key_that_does_not_fit_together_is_refused(home: Home, change: dict[str, object]) -> None:
    file = ensure_keys(home).signing
    write_secret(file, json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(StackError) as caught:
        read_signing_key(file)
    assert caught.value.problem is StackProblem.SECRET_MALFORMED


@pytest.mark.parametrize("content", ["", "no json", "[]", "{}", "7", '"text"'])
def test_a_signing_key_that_is_none_is_refused(home: Home, content: str) -> None:
    file = ensure_keys(home).signing
    write_secret(file, content)
    with pytest.raises(StackError) as caught:
        read_signing_key(file)
    assert caught.value.problem is StackProblem.SECRET_MALFORMED


def test_an_issuer_that_an_operator_added_stays_and_ours_is_put_right(home: Home) -> None:
    files = ensure_keys(home)
    theirs = {"issuer": "https://login.example.com", "jwks_file": "/etc/their/jwks.json", "tenants": ["shop-9"]}
    files.issuers.write_text(json.dumps([theirs, {"issuer": issuer_of(home), "jwks_file": "/moved"}]))
    ensure_keys(home)
    assert json.loads(files.issuers.read_text()) == [
        {"issuer": issuer_of(home), "jwks_file": files.jwks.name, "tenants": "every"},
        theirs,
    ]
    files.issuers.write_text("{}")
    with pytest.raises(StackError) as caught:
        ensure_keys(home)
    assert caught.value.problem is StackProblem.SECRET_MALFORMED
