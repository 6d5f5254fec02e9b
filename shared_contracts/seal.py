"""The seal of a record: how its lines are chained and how the end of the chain is signed. One copy for both sides.

A line's place in the chain is the digest of the place before it, of its number and name, and of what was sealed of
it. A head names a place and is signed with a key that signs nothing else, but for an evaluation's report, as another
type. Each side keeps the other's heads. Invariant: a head is believed only under a key that was trusted for its own
side, and only as the exact bytes that were signed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field, ValidationError

from shared_contracts.approval import PublicKey, jwk_of, public_key
from shared_contracts.base import Contract, dump
from shared_contracts.digest import canonical_json
from shared_contracts.strict_json import NotJsonError, strict_json

TYPE = "kessai-seal+jws"
HEAD_CHARACTERS_MAX = 2000
PATH = "/heads"  # where a tool server takes a host's newest head, and gives its own

SideName = Literal["host", "tools"]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Head(Contract):
    """The end of a chain: everything up to line `n`. Below `horizon` no transaction was left that could still write,
    and where the batch was `whole`, everything that those wrote is sealed.
    """

    side: SideName
    chain: Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$")]
    n: Annotated[int, Field(ge=1)]
    chained: Digest
    horizon: Annotated[str, Field(pattern=r"^[0-9]{1,20}$")]
    whole: bool
    at: Annotated[str, Field(pattern=r"^[0-9]{4,5}-[0-9T:.-]{10,26}Z$")]


class SealLag(Contract):
    """How far behind one side's seals are, in seconds: its oldest line without a signed seal, its own newest head, and
    the newest that it keeps of the other side. None where there is no such thing.
    """

    waits: float | None
    signed: float | None
    kept: float | None


class SealKey(PublicKey):
    """A public key with what it may be used for."""

    alg: Literal["EdDSA"] = "EdDSA"
    use: Literal["sig"] = "sig"


class SealKeys(Contract):
    """Whose heads are believed: each side's keys, the newest first. Older keys stay, for older heads."""

    host: tuple[SealKey, ...]
    tools: tuple[SealKey, ...]


class UnsealedError(ValueError):
    """It is nothing that a trusted key of its side has signed; the text says why and repeats none of it."""


@dataclass(frozen=True, slots=True)
class Signer:
    """The private key of one side."""

    side: SideName
    key: Ed25519PrivateKey

    def sign(self, head: Head) -> str:
        """Write a head as a compact JWS of canonical JSON."""
        return self.signed(TYPE, canonical_json(dump(head)))

    def signed(self, kind: str, payload: bytes) -> str:
        """Write a compact JWS of some type, which passes for no other."""
        kid = jwk_of(self.key.public_key()).kid
        text = f"{_encoded(_header(kind, kid))}.{_encoded(payload)}"
        return f"{text}.{_encoded(self.key.sign(text.encode()))}"


def signer_of(side: SideName, content: bytes) -> Signer:
    """Read a private key's file, an Ed25519 JWK (RFC 8037) whose parts belong together; raises UnsealedError."""
    try:
        jwk = strict_json(content)
        key = Ed25519PrivateKey.from_private_bytes(_decoded(jwk["d"]))
        mine = jwk_of(key.public_key())
        fits = (jwk["kty"], jwk["crv"], jwk["x"], jwk["kid"]) == (mine.kty, mine.crv, mine.x, mine.kid)
    except (ValueError, KeyError, TypeError) as error:
        raise UnsealedError("no private Ed25519 JWK") from error
    if not fits:
        raise UnsealedError("its public half or its kid does not belong to its private half")
    return Signer(side, key)


def genesis(side: SideName, chain: str) -> str:
    """Where a chain begins."""
    return _hex(f"kessai-seal-1 {side} {chain}")


def chained(before: str, n: int, source: str, row_id: str, sealed: str) -> str:
    """The place of a line, from the place before it."""
    return _hex(f"{before} {n} {source} {row_id} {_hex(sealed)}")


def trusted_keys(content: bytes) -> SealKeys:
    """Read a file of public keys; raises UnsealedError."""
    try:
        keys = SealKeys.model_validate_json(json.dumps(strict_json(content)))
    except (NotJsonError, ValidationError) as error:
        raise UnsealedError("no JSON object with the lists of keys `host` and `tools`") from error
    every = [*keys.host, *keys.tools]
    if any(jwk_of(_public(key)).kid != key.kid for key in every):
        raise UnsealedError("a key's kid is not the key's own")
    if len({key.kid for key in every}) != len(every):
        raise UnsealedError("a key stands in it twice; each side has keys of its own")
    return keys


def keys_of(keys: SealKeys, side: SideName) -> Mapping[str, Ed25519PublicKey]:
    """One side's keys by their id."""
    return {key.kid: _public(key) for key in (keys.host if side == "host" else keys.tools)}


def opened(text: str, side: SideName, keys: Mapping[str, Ed25519PublicKey]) -> Head:
    """Read a head whose signature holds under one of these keys of this side; raises UnsealedError."""
    head = _head(payload_of(text, TYPE, keys))
    if head.side != side:
        raise UnsealedError("it is another side's")
    return head


def payload_of(text: str, kind: str, keys: Mapping[str, Ed25519PublicKey]) -> bytes:
    """Give what one of these keys has signed as of this type; raises UnsealedError."""
    parts = text.split(".")
    if len(text) > HEAD_CHARACTERS_MAX or not text.isascii() or len(parts) != 3:
        raise UnsealedError("it is not signed")
    header, payload, signature = (_decoded(part) for part in parts)
    kid = _kid(header, kind)
    if kid not in keys:
        raise UnsealedError("its key is not trusted for this side")
    if header != _header(kind, kid):
        raise UnsealedError("its header is spelt otherwise")
    try:
        keys[kid].verify(signature, f"{parts[0]}.{parts[1]}".encode())
    except InvalidSignature:
        raise UnsealedError("its signature does not hold") from None
    return payload


def _header(kind: str, kid: str) -> bytes:
    return canonical_json({"alg": "EdDSA", "kid": kid, "typ": kind})


def _kid(header: bytes, kind: str) -> str:
    try:
        said = strict_json(header)
    except NotJsonError:
        raise UnsealedError("it is not signed") from None
    if not isinstance(said, dict) or not isinstance(said.get("kid"), str):
        raise UnsealedError("it is not signed")
    if said != {"alg": "EdDSA", "kid": said["kid"], "typ": kind}:
        raise UnsealedError("it is signed as something else")
    return str(said["kid"])


def _head(payload: bytes) -> Head:
    try:
        head = Head.model_validate_json(payload)
    except ValidationError:
        raise UnsealedError("what was signed is no head") from None
    if canonical_json(dump(head)) != payload:
        raise UnsealedError("what was signed is spelt otherwise")
    return head


def _public(key: PublicKey) -> Ed25519PublicKey:
    return public_key(key.x)


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decoded(text: str) -> bytes:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise UnsealedError("it is not signed") from None
    if _encoded(data) != text:
        raise UnsealedError("it is not signed")
    return data
