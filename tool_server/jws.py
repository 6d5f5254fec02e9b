"""From a token's text to its payload and the key that signed it: nothing of the token is believed before.

Invariant: the token chooses nothing. Its `kid` is looked up as an opaque string in a fixed map, its `alg` must be
the one that is pinned to that key, and any header member beside `alg`, `kid` and `typ` (jku, jwk, x5c, crit, b64 …)
is refused, not ignored. PyJWT verifies the signature.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import jwt
from jwt.api_jws import PyJWS

from shared_contracts.strict_json import NotJsonError, strict_json
from tool_server.jwk import KINDS, TrustedKey

TOKEN_CHARACTERS_MAX = 8192  # an honest token has about a thousand
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*", re.ASCII)
_HEADER_MEMBERS = frozenset({"alg", "kid", "typ"})
_PYJWS = PyJWS(algorithms=tuple(KINDS), options={"verify_signature": True, "enforce_minimum_key_length": True})


class Reason(StrEnum):
    """Why a token is refused; for the log, and for the holder of a token whose signature was genuine."""

    MALFORMED = "malformed"
    HEADER = "header"
    UNKNOWN_KEY = "unknown_key"
    ALGORITHM = "algorithm"
    SIGNATURE = "signature"
    TYPE = "type"
    CLAIMS = "claims"
    ISSUER = "issuer"
    TENANT = "tenant"
    AUDIENCE = "audience"
    NOT_YET = "not_yet"
    EXPIRED = "expired"
    LIFETIME = "lifetime"
    SCOPE = "scope"
    DETAILS = "details"
    KEYS_UNUSABLE = "keys_unusable"


@dataclass(frozen=True, slots=True)
class Signed:
    """A payload that `key` did sign; what it says is not yet checked."""

    payload: bytes
    key: TrustedKey
    typ: object


def read_signed(token: str, keys: Mapping[str, TrustedKey]) -> Signed | Reason:
    """Verify the signature of a compact JWS. Total: any text gives a Signed or a Reason."""
    if len(token) > TOKEN_CHARACTERS_MAX or _COMPACT.fullmatch(token) is None:
        return Reason.MALFORMED
    header = _header(token.partition(".")[0])
    if header is None:
        return Reason.HEADER
    key = keys.get(header["kid"])
    if key is None:
        return Reason.UNKNOWN_KEY
    if header.get("alg") != key.algorithm:
        return Reason.ALGORITHM
    try:
        decoded = _PYJWS.decode_complete(token, key.key, algorithms=[key.algorithm])
    except (jwt.PyJWTError, ValueError, TypeError):
        return Reason.SIGNATURE
    return Signed(payload=decoded["payload"], key=key, typ=header.get("typ"))


@lru_cache(maxsize=64)  # one issuer's tokens share their header, byte for byte
def _header(segment: str) -> dict[str, Any] | None:
    try:
        value = strict_json(base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)))
    except (binascii.Error, NotJsonError):
        return None
    if not isinstance(value, dict) or not _HEADER_MEMBERS.issuperset(value):
        return None
    return value if isinstance(value.get("kid"), str) else None
