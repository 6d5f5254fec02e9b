"""Tokens that no trusted key signed as they stand: no algorithm, another one, another key, a key of the token's own."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.security.forgery.attempt import UNPROVEN, Attempt, plain, proven, right, with_text
from tests.security.forgery.forge import DROP, Forge
from tests.support.tokens import Issuer, b64, unb64

Text = Callable[[Forge], str]
_DIGESTS = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}


def _under(changes: dict[str, Any], *, signature: bool = True) -> Text:
    """A good token under another header, with its signature or with none."""

    def text(forge: Forge) -> str:
        forged = forge.changed_header(forge.token(), changes)
        return forged if signature else forged.rpartition(".")[0] + "."

    return text


_NONE: list[Any] = ["none", "None", "NONE", "nOnE", "", None, ["RS256"], ["EdDSA"], True, {}, DROP]
_OTHER = ["HS256", "HS512", "ES256", "ES384", "RS256", "PS256", "Ed25519", "EDDSA", "eddsa", "EdDSA ", "A128KW", "dir"]

NO_ALGORITHM = [
    plain("no algorithm"),
    *with_text("no algorithm", UNPROVEN, [(f"{name!r}, signed", _under({"alg": name})) for name in _NONE]),
    *with_text(
        "no algorithm", UNPROVEN, [(f"{name!r}, unsigned", _under({"alg": name}, signature=False)) for name in _NONE]
    ),
]


def _curve(name: str) -> Text:
    return lambda forge: forge.on_the_curve(alg=name)


OTHER_ALGORITHM = [
    plain("another algorithm"),
    right("another algorithm", "a key of another kind", lambda forge: forge.call(forge.on_the_curve())),
    *with_text("another algorithm", UNPROVEN, [(name, _under({"alg": name})) for name in _OTHER]),
    *with_text(
        "another algorithm", UNPROVEN, [(f"{name}, ES256 key", _curve(name)) for name in ("EdDSA", "ES384", "none")]
    ),
    *with_text(
        "another algorithm",
        UNPROVEN,
        [
            ("EdDSA under the ES256 key's name", lambda f: f.token(header={"kid": "curve"})),
            ("EdDSA called ES256", lambda f: f.token(header={"kid": "curve", "alg": "ES256"})),
            ("ES256 under the EdDSA key's name", lambda f: f.on_the_curve(kid="key-1")),
        ],
    ),
]


def _public(form: str, issuer: Issuer) -> bytes:
    key = issuer.private.public_key()
    match form:
        case "PEM" | "PEM without its last line break":
            pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            return pem if form == "PEM" else pem.rstrip(b"\n")
        case "DER":
            return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        case "OpenSSH":
            return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        case "JWK":
            return json.dumps(issuer.jwk()).encode()
        case "point":
            return key.public_bytes_raw()
        case _:
            return form.encode()


def _mac(form: str, algorithm: str) -> Text:
    def text(forge: Forge) -> str:
        parts = (forge.header(header={"alg": algorithm}), forge.claims())
        signed = ".".join(b64(json.dumps(part).encode()) for part in parts)
        secret = _public(form, forge.keys.host)
        return f"{signed}.{b64(hmac.digest(secret, signed.encode(), _DIGESTS[algorithm]))}"

    return text


_FORMS = ("PEM", "PEM without its last line break", "DER", "OpenSSH", "JWK", "point", "", "secret", "key-1")
PUBLIC_KEY_AS_SECRET = [
    plain("the public key as a secret"),
    *with_text(
        "the public key as a secret",
        UNPROVEN,
        [(f"{form!r}, {name}", _mac(form, name)) for form in _FORMS for name in _DIGESTS],
    ),
]


def _hint(changes: Callable[[Forge], dict[str, Any]], *, stranger: bool) -> Text:
    return lambda f: f.token(f.keys.stranger if stranger else f.keys.host, header=changes(f))


_HINTS: dict[str, Callable[[Forge], dict[str, Any]]] = {
    "jwk": lambda f: {"jwk": f.keys.stranger.jwk()},
    "jwk, no kid": lambda f: {"jwk": f.keys.stranger.jwk(), "kid": DROP},
    "jku": lambda f: {"jku": f.listener},
    "jku, file": lambda f: {"jku": f.keys.stranger.jwks_file.as_uri()},
    "x5u": lambda f: {"x5u": f.listener},
    "x5c": lambda _f: {"x5c": [b64(b"certificate")]},
    "x5t": lambda _f: {"x5t": "AAAA"},
    "kid, an address": lambda f: {"kid": f.listener},
}
KEY_IN_HEADER = [
    plain("a key that the token brings"),
    *with_text(
        "a key that the token brings",
        UNPROVEN,
        [
            (f"{name}, {'a stranger' if stranger else 'the right key'}", _hint(hint, stranger=stranger))
            for name, hint in _HINTS.items()
            for stranger in (True, False)
            if not (name == "kid, an address" and not stranger)
        ],
    ),
]


def _headed(changes: dict[str, Any]) -> Text:
    return lambda forge: forge.token(header=changes)


_KIDS: list[Any] = [
    "../../dev/null", "/etc/passwd", "' OR 1=1--", "k" * 4_000, "", "key-1 ", " key-1", "KEY-1", "key-1\x00", "kėy-1",
    None, 1, True, ["key-1"], {"a": 1}, DROP, "key-3", "\ud800", "https://host.example",
]  # fmt: skip
UNKNOWN_KEY = [
    plain("an unknown key"),
    right("an unknown key", "the key that comes", lambda forge: forge.call(forge.token(forge.keys.second))),
    *with_text("an unknown key", UNPROVEN, [(repr(kid)[:20], _headed({"kid": kid})) for kid in _KIDS]),
]

_EXTENSIONS: list[dict[str, Any]] = [
    {"crit": ["x"], "x": 1}, {"crit": []}, {"crit": "x"}, {"crit": ["alg"]}, {"crit": ["exp"], "exp": 1},
    {"crit": None},
    {"b64": False}, {"b64": False, "crit": ["b64"]}, {"b64": True}, {"zip": "DEF"}, {"cty": "JWT"}, {"enc": "A128GCM"},
    {"iss": "https://host.example"}, {"x": 1}, {"": ""}, {"epk": {}},
]  # fmt: skip
EXTENSIONS = [
    plain("a header that asks for more"),
    *with_text("a header that asks for more", UNPROVEN, [(repr(one), _headed(one)) for one in _EXTENSIONS]),
]

_TYPES: list[Any] = [
    "JWT", "at+JWT", "AT+JWT", "application/at+jwt", "kessai-approval+jws", "at+jwt ", "", None, 1, ["at+jwt"], DROP,
]  # fmt: skip
OTHER_TYPE = [
    plain("another type of token"),
    *with_text("another type of token", proven("type"), [(repr(typ), _headed({"typ": typ})) for typ in _TYPES]),
]

_TEXTS: list[bytes] = [
    b"", b"{}", b"[]", b"null", b"7", b'"x"', b"\xff\xfe", b"{", b"[" * 3000, b'{"a":' * 1000,
    b'{"alg":"none","alg":"EdDSA","kid":"key-1","typ":"at+jwt"}',
    b'{"alg":"EdDSA","kid":"x","kid":"key-1","typ":"at+jwt"}',
    b'{"alg":"EdDSA","kid":"key-1","typ":"at+jwt"}{}', b'\xef\xbb\xbf{"alg":"EdDSA","kid":"key-1","typ":"at+jwt"}',
    b'{"alg":"EdDSA","kid":"key-1","typ":NaN}', b"{'alg':'EdDSA','kid':'key-1','typ':'at+jwt'}",
]  # fmt: skip


def _header_text(text: bytes) -> Text:
    return lambda forge: forge.keys.host.sign(text, forge.claims())


NO_HEADER = [
    plain("a header that is none"),
    *with_text("a header that is none", UNPROVEN, [(repr(text)[:70], _header_text(text)) for text in _TEXTS]),
]


def _signature(made: Callable[[Forge, list[str]], str]) -> Text:
    def text(forge: Forge) -> str:
        parts = forge.token().split(".")
        return ".".join([*parts[:2], made(forge, parts)])

    return text


def _by(name: str) -> Callable[[Forge, list[str]], str]:
    def made(forge: Forge, parts: list[str]) -> str:
        keys = {"partner": forge.keys.partner.private, "approver": forge.keys.tanaka.key}
        key = keys[name] if name in keys else getattr(forge.keys, name).private
        return b64(key.sign(".".join(parts[:2]).encode()))

    return made


_SIGNATURES: dict[str, Text] = {
    "a stranger's": _signature(_by("stranger")),
    "of the host's other key": _signature(_by("second")),
    "of the host's revoked key": _signature(_by("revoked")),
    "of a trusted partner": _signature(_by("partner")),
    "of an approver": _signature(_by("approver")),
    "zeros": _signature(lambda _f, _p: b64(bytes(64))),
    "ones": _signature(lambda _f, _p: b64(b"\xff" * 64)),
    "of another token": _signature(lambda f, _p: f.token(sub="clerk-2").rpartition(".")[2]),
    "of the payload alone": _signature(lambda f, p: b64(f.keys.host.private.sign(p[1].encode()))),
    "of what is encoded": _signature(lambda f, p: b64(f.keys.host.private.sign(unb64(p[0]) + b"." + unb64(p[1])))),
    "half of it": _signature(lambda _f, p: p[2][:43]),
    "twice": _signature(lambda _f, p: p[2] + p[2][:-2]),
    "none": _signature(lambda _f, _p: ""),
    "its halves exchanged": _signature(lambda _f, p: b64(unb64(p[2])[32:] + unb64(p[2])[:32])),
    "its second half above the order": _signature(lambda _f, p: b64(_above_the_order(unb64(p[2])))),
    "the payload of another": lambda f: _with_payload(f, f.token(sub="clerk-2")),
    "the header of another": _under({"kid": "key-2"}),
}


def _above_the_order(signature: bytes) -> bytes:
    order = 2**252 + 27742317777372353535851937790883648493
    scalar = int.from_bytes(signature[32:], "little") + order
    return signature[:32] + scalar.to_bytes(32, "little")


def _with_payload(forge: Forge, other: str) -> str:
    header, _, signature = forge.token().split(".")
    return f"{header}.{other.split('.')[1]}.{signature}"


_LIES: list[dict[str, Any]] = [{"sub": 7}, {"exp": 1}, {"aud": "elsewhere"}, {"iss": ""}, {"use": "admin"}]
OTHER_SIGNATURE = [
    plain("another signature"),
    *with_text(  # what the claims say is not even looked at
        "another signature",
        UNPROVEN,
        [(f"a stranger's, {lies}", lambda f, lies=lies: f.token(f.keys.stranger, **lies)) for lies in _LIES],
    ),
    *with_text("another signature", UNPROVEN, list(_SIGNATURES.items())),
]


def _flipped(at: int, share: float) -> Text:
    def text(forge: Forge) -> str:
        parts = forge.token().split(".")
        content = bytearray(unb64(parts[at]))
        content[int(share * (len(content) - 1))] ^= 1
        return ".".join([*parts[:at], b64(bytes(content)), *parts[at + 1 :]])

    return text


_PARTS = ("header", "payload", "signature")
ONE_BIT = [
    plain("one bit"),
    *with_text(
        "one bit",
        UNPROVEN,
        [
            (f"{part}, at {step}/12 of it", _flipped(at, step / 12))
            for at, part in enumerate(_PARTS)
            for step in range(13)
        ],
    ),
]

ATTEMPTS: list[Attempt] = [
    *NO_ALGORITHM, *OTHER_ALGORITHM, *PUBLIC_KEY_AS_SECRET, *KEY_IN_HEADER, *UNKNOWN_KEY, *EXTENSIONS, *OTHER_TYPE,
    *NO_HEADER, *OTHER_SIGNATURE, *ONE_BIT,
]  # fmt: skip
