"""The host's signing key and what others need to verify with it.

A public key is published before its private half signs anything, and stays for one rotation after:
a token that is on its way while the key changes still verifies.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.stack.errors import StackError, StackProblem
from host.stack.files import BYTES_MAX, malformed, read_json, read_secret, write_secret
from host.stack.home import Home
from host.stack.locks import Hold
from shared_contracts.named_file import Unread, read_file

PUBLISHED_MAX = 2  # the current one and the one before


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """`signing` is for the host alone; the next two, side by side, are what the tool server reads.

    Each side seals its record with a key of its own, which signs nothing else; `seal_keys` has the public halves.
    """

    signing: Path
    jwks: Path
    issuers: Path
    seal_host: Path
    seal_tools: Path
    seal_keys: Path
    lock: Path


def key_files(home: Home) -> KeyFiles:
    """Where they lie in a home, made or not."""
    return key_files_in(home.keys, home.run / "keys.lock")


def key_files_in(directory: Path, lock: Path) -> KeyFiles:
    """Where they lie in any directory of ours."""
    return KeyFiles(
        directory / "signing.jwk", directory / "jwks.json", directory / "issuers.json",
        directory / "seal-host.jwk", directory / "seal-tools.jwk", directory / "seal-keys.json", lock,
    )  # fmt: skip


def issuer_of(home: Home) -> str:
    """Names this home and no other; a name under .invalid is nobody's, so it can never be resolved."""
    return f"https://{home.id}.kessai.invalid"


def ensure_keys(home: Home) -> KeyFiles:
    """Make what a home lacks; what is there is checked and kept."""
    files = key_files(home)
    ensure_key_files(files, issuer_of(home))
    return files


def ensure_key_files(files: KeyFiles, issuer: str) -> None:
    """The same for files anywhere."""
    if not files.signing.exists():
        rotate_keys(files)
    current = public_part(read_signing_key(files.signing))
    if current["kid"] not in [key.get("kid") for key in _published(files.jwks)]:
        _publish(files.jwks, [current])
    _trust(files.issuers, issuer, files.jwks)
    _ensure_seals(files)


def _ensure_seals(files: KeyFiles) -> None:
    """Each side's key, and all public halves that ever were: a head of long ago still wants its own."""
    found = read_json(files.seal_keys)
    wanted = {side: [] if found is None else list(found.get(side, ())) for side in ("host", "tools")}
    for side, file in (("host", files.seal_host), ("tools", files.seal_tools)):
        if not file.exists():
            write_secret(file, json.dumps(_generate(), indent=1) + "\n")
        mine = public_part(read_signing_key(file))
        if mine not in wanted[side]:
            wanted[side].insert(0, mine)
    if wanted != found:
        write_secret(files.seal_keys, json.dumps(wanted, indent=1) + "\n")


def rotate_keys(files: KeyFiles) -> str:
    """A new signing key; answers with its kid. Processes that read the old one sign with it until restarted."""
    hold = Hold(files.lock)
    try:
        if not hold.exclusive():
            raise StackError(StackProblem.HOME_BUSY, "Another process is changing the signing key.", "Try again.")
        before = [public_part(read_signing_key(files.signing))] if files.signing.exists() else []
        new = _generate()
        _publish(files.jwks, [public_part(new), *before])
        write_secret(files.signing, json.dumps(new, indent=1) + "\n")
        return str(new["kid"])
    finally:
        hold.close()


def read_signing_key(file: Path) -> dict[str, Any]:
    """A private Ed25519 JWK whose public half and kid belong to it; a `StackError` otherwise."""
    try:
        key = json.loads(read_secret(file))
        private = Ed25519PrivateKey.from_private_bytes(_decoded(key["d"]))
        public = _encoded(private.public_key().public_bytes_raw())
        fits = (key["kty"], key["crv"], key["x"], key["kid"]) == ("OKP", "Ed25519", public, thumbprint(public))
    except (ValueError, KeyError, TypeError) as error:
        raise malformed(file, f"no private Ed25519 JWK ({type(error).__name__})") from error
    if not fits:
        raise malformed(file, "its public half or its kid does not belong to its private half")
    return dict(key)


def public_part(key: dict[str, Any]) -> dict[str, Any]:
    """What may be published; named one by one, so that nothing else can slip through."""
    return {name: key[name] for name in ("kty", "crv", "x", "kid")} | {"alg": "EdDSA", "use": "sig"}


def thumbprint(public: str) -> str:
    """RFC 7638, of the members that RFC 8037 requires."""
    members = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": public}, separators=(",", ":"))
    return _encoded(hashlib.sha256(members.encode("ascii")).digest())


def _generate() -> dict[str, Any]:
    private = Ed25519PrivateKey.generate()
    public = _encoded(private.public_key().public_bytes_raw())
    return {
        "kty": "OKP", "crv": "Ed25519", "x": public, "d": _encoded(private.private_bytes_raw()),
        "kid": thumbprint(public), "alg": "EdDSA", "use": "sig",
    }  # fmt: skip


def _published(jwks: Path) -> list[dict[str, Any]]:
    found = read_json(jwks)
    return [] if found is None else [key for key in found.get("keys", []) if isinstance(key, dict)]


def _publish(jwks: Path, keys: list[dict[str, Any]]) -> None:
    write_secret(jwks, json.dumps({"keys": keys[:PUBLISHED_MAX]}, indent=1) + "\n")


def trusted_issuers(file: Path) -> list[dict[str, Any]]:
    """What an issuers' file says; nothing where there is none."""
    content = read_file(file, BYTES_MAX)
    if isinstance(content, Unread):
        if content.missing:
            return []
        raise malformed(file, content.why)
    try:
        found = json.loads(content)
        if isinstance(found, list):
            return [{**entry, "issuer": entry["issuer"], "jwks_file": entry["jwks_file"]} for entry in found]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise malformed(file, "no JSON list of issuer and jwks_file") from error
    raise malformed(file, "no JSON list of issuer and jwks_file")


def _trust(issuers: Path, issuer: str, jwks: Path) -> None:
    """Our own entry, by a name beside it, so that both may be moved together; issuers that an operator added stay."""
    found = trusted_issuers(issuers)
    wanted = [{"issuer": issuer, "jwks_file": jwks.name}, *(entry for entry in found if entry["issuer"] != issuer)]
    if found != wanted:
        write_secret(issuers, json.dumps(wanted, indent=1) + "\n")


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
