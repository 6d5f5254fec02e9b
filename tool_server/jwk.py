"""One trusted public key from its JWK: signature use, one pinned asymmetric algorithm, strong.

Invariant: a key that is private, symmetric, for encryption, without `alg`, short, or of a known weak kind never
becomes a key that a token can be verified with. One with an `exp`, as OpenID Federation writes it, is none from
then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tool_server.errors import TrustError

KINDS: Final[dict[str, tuple[str, str | None]]] = {
    "EdDSA": ("OKP", "Ed25519"),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
}
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_KID_CHARACTERS_MAX = 120
_RSA_BITS_MIN, _RSA_BITS_MAX, _RSA_EXPONENT_MIN = 2048, 8192, 65537

_P = 2**255 - 19
_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_SMALL_ORDER_Y = frozenset({0, 1, _P - 1, _ORDER_8, _P - _ORDER_8})  # such a "key" fits many messages at once

_ROCA_PRIMES = (
    3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107,
    109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """`issuer` may sign with `key`, and with `algorithm` alone, and until `ends`; `raw` tells two keys apart."""

    kid: str
    issuer: str
    algorithm: str
    key: jwt.PyJWK
    raw: bytes
    ends: int | None  # seconds since the epoch


def trusted_key(issuer: str, member: Any) -> TrustedKey:
    """Check one member of a JWK set; raises TrustError, which says what is wrong and never prints the key."""
    if not isinstance(member, dict):
        raise TrustError("a key is not a JSON object")
    kid = _kid(member)
    if _PRIVATE & member.keys():
        raise TrustError(f"key {kid!r} is private or symmetric; publish the public half alone")
    _refuse_other_use(kid, member)
    algorithm = _algorithm(kid, member)
    try:
        key = jwt.PyJWK(member, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        raise TrustError(f"key {kid!r} is not a well-formed {algorithm} key") from None
    _refuse_weak(kid, key.key)
    raw = key.key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return TrustedKey(kid=kid, issuer=issuer, algorithm=algorithm, key=key, raw=raw, ends=_end(kid, member))


def _kid(member: dict[str, Any]) -> str:
    kid = member.get("kid")
    if not isinstance(kid, str) or not kid.isprintable() or not 0 < len(kid) <= _KID_CHARACTERS_MAX:
        raise TrustError(f"a key has no kid, or one that is not 1 to {_KID_CHARACTERS_MAX} printable characters")
    return kid


def _end(kid: str, member: dict[str, Any]) -> int | None:
    if "exp" not in member:
        return None
    end = member["exp"]
    if type(end) is not int or end < 0:  # a bool is an int, too
        raise TrustError(f"key {kid!r} has an exp that is no number of whole seconds since the epoch")
    return end


def _refuse_other_use(kid: str, member: dict[str, Any]) -> None:
    if member.get("use", "sig") != "sig":
        raise TrustError(f"key {kid!r} is not for signatures (use)")
    if member.get("key_ops", ["verify"]) != ["verify"]:
        raise TrustError(f"key {kid!r} is not for verification alone (key_ops)")


def _algorithm(kid: str, member: dict[str, Any]) -> str:
    algorithm = member.get("alg")
    if not isinstance(algorithm, str) or algorithm not in KINDS:
        raise TrustError(f"key {kid!r} names no algorithm that is trusted here; alg is one of {', '.join(KINDS)}")
    kind, curve = KINDS[algorithm]
    if member.get("kty") != kind or (curve is not None and member.get("crv") != curve):
        raise TrustError(f"key {kid!r} is of another kind than its alg {algorithm}")
    return algorithm


def _refuse_weak(kid: str, key: Any) -> None:
    match key:
        case Ed25519PublicKey():
            encoded = int.from_bytes(key.public_bytes_raw(), "little") & ((1 << 255) - 1)
            if encoded >= _P or encoded in _SMALL_ORDER_Y:
                raise TrustError(f"key {kid!r} is a point of small order or not canonical")
        case RSAPublicKey():
            _refuse_weak_rsa(kid, key)
        case _:
            pass  # the curve decides an EC key's strength, and a point off its curve was refused above


def _refuse_weak_rsa(kid: str, key: RSAPublicKey) -> None:
    numbers = key.public_numbers()
    if not _RSA_BITS_MIN <= key.key_size <= _RSA_BITS_MAX:
        raise TrustError(f"key {kid!r} has {key.key_size} bits; RSA needs {_RSA_BITS_MIN} to {_RSA_BITS_MAX}")
    if numbers.e < _RSA_EXPONENT_MIN or numbers.e % 2 == 0 or numbers.n % 2 == 0:
        raise TrustError(f"key {kid!r} has a weak exponent or modulus")
    if all(numbers.n % prime in _powers_of_65537(prime) for prime in _ROCA_PRIMES):
        raise TrustError(f"key {kid!r} was made by a generator with the ROCA fault (CVE-2017-15361)")


def _powers_of_65537(prime: int) -> frozenset[int]:
    powers, power = {1}, 65537 % prime
    while power not in powers:
        powers.add(power)
        power = power * 65537 % prime
    return frozenset(powers)
