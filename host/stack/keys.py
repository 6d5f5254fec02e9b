"""The host's signing key and what others need to verify with it.

Invariant: a public key is published before its private half signs anything, and stays until what it signed has run
out. How one follows another is `rotation`; here is what the files are, and a set of them that fits together.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.stack.files import BYTES_MAX, malformed, read_json, read_secret, write_secret
from host.stack.home import Home
from shared_contracts.named_file import Unread, read_file
from shared_contracts.strict_json import strict_json
from shared_contracts.task_token import LEEWAY_SECONDS, LIFETIME_SECONDS_MAX

# the longest token, the leeway of clocks, and a command that had read the key and is just about to sign
OLD_STAYS_SECONDS = max(LIFETIME_SECONDS_MAX.values()) + LEEWAY_SECONDS + 60
# more, where somebody has to bring the new key to other machines, which sign with the old one meanwhile
CARRIED_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """`signing`, and `next` that will follow it, are for the host alone; the next two are what the tool server reads.

    Each side seals its record with a key of its own, which signs nothing else; `seal_keys` has the public halves.
    `old_stays` is how long a key is published, in seconds, once it signs no more.
    """

    signing: Path
    next: Path
    jwks: Path
    issuers: Path
    seal_host: Path
    seal_tools: Path
    seal_keys: Path
    lock: Path
    old_stays: int


def key_files(home: Home) -> KeyFiles:
    """Where they lie in a home, made or not."""
    return _key_files(home.keys, home.run / "keys.lock", OLD_STAYS_SECONDS)


def key_files_in(directory: Path) -> KeyFiles:
    """Where they lie in a directory of secrets, from which they are brought to other machines."""
    return _key_files(directory, directory / ".keys.lock", OLD_STAYS_SECONDS + CARRIED_SECONDS)


def _key_files(at: Path, lock: Path, old_stays: int) -> KeyFiles:
    return KeyFiles(
        at / "signing.jwk", at / "next.jwk", at / "jwks.json", at / "issuers.json",
        at / "seal-host.jwk", at / "seal-tools.jwk", at / "seal-keys.json", lock, old_stays,
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
        key = new_key()
        publish(files, [public_part(key)])
        write_key(files.signing, key)
    current = public_part(read_signing_key(files.signing))
    if current["kid"] not in [key.get("kid") for key in published(files)]:
        publish(files, [current])
    _trust(files.issuers, issuer, files.jwks)
    _ensure_seals(files)


def _ensure_seals(files: KeyFiles) -> None:
    """Each side's key, and all public halves that ever were: a head of long ago still wants its own."""
    found = read_json(files.seal_keys)
    wanted = {side: [] if found is None else list(found.get(side, ())) for side in ("host", "tools")}
    for side, file in (("host", files.seal_host), ("tools", files.seal_tools)):
        if not file.exists():
            write_key(file, new_key())
        mine = public_part(read_signing_key(file))
        if mine not in wanted[side]:
            wanted[side].insert(0, mine)
    if wanted != found:
        write_secret(files.seal_keys, json.dumps(wanted, indent=1) + "\n")


def read_signing_key(file: Path) -> dict[str, Any]:
    """A private Ed25519 JWK whose public half and kid belong to it; a `StackError` otherwise."""
    try:
        key = strict_json(read_secret(file).encode())
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


def new_key() -> dict[str, Any]:
    """A private Ed25519 JWK, in memory alone."""
    private = Ed25519PrivateKey.generate()
    public = _encoded(private.public_key().public_bytes_raw())
    return {
        "kty": "OKP", "crv": "Ed25519", "x": public, "d": _encoded(private.private_bytes_raw()),
        "kid": thumbprint(public), "alg": "EdDSA", "use": "sig",
    }  # fmt: skip


def write_key(file: Path, key: dict[str, Any]) -> None:
    """Whole or not at all."""
    write_secret(file, json.dumps(key, indent=1) + "\n")


def published(files: KeyFiles) -> list[dict[str, Any]]:
    """The public keys as they stand there; none where the file is lost or broken."""
    return published_in(files.jwks)


def published_in(jwks: Path) -> list[dict[str, Any]]:
    """The same of any set of keys, such as another issuer's."""
    found = read_json(jwks)
    members = None if found is None else found.get("keys")
    return [key for key in members if isinstance(key, dict)] if isinstance(members, list) else []


def publish(files: KeyFiles, keys: list[dict[str, Any]]) -> None:
    """Replace the published set; a tool server on the same files has it at its next token."""
    write_secret(files.jwks, json.dumps({"keys": keys}, indent=1) + "\n")


def trusted_issuers(file: Path) -> list[dict[str, Any]]:
    """What an issuers' file says; nothing where there is none."""
    content = read_file(file, BYTES_MAX, decides=True)
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
    """Our own entry, by a name beside it, so that both may be moved together; issuers that an operator added stay.

    A host of ours serves every tenant of its authorization set; whom another issuer speaks for, its operator says.
    """
    found = trusted_issuers(issuers)
    ours = {"issuer": issuer, "jwks_file": jwks.name, "tenants": "every"}
    wanted = [ours, *(entry for entry in found if entry["issuer"] != issuer)]
    if found != wanted:
        write_secret(issuers, json.dumps(wanted, indent=1) + "\n")


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
