"""Keys that are trusted no more, not yet, or must never be; and tokens that an operator has revoked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.security.forgery.attempt import REVOKED as NO_MORE
from tests.security.forgery.attempt import UNPROVEN, UNTRUSTED, Attempt, as_it_stands, plain, right, told
from tests.security.forgery.forge import CALLS, DROP, LEGACY, MODERN, Forge, Wire
from tests.security.forgery.stand import Stand
from tests.support.tokens import Issuer, b64

Members = Callable[[Stand, Forge], list[Any]]
Within = Callable[[Stand, Forge], AbstractContextManager[Any]]


def _published(members: Members) -> Within:
    return lambda stand, forge: stand.published(*members(stand, forge))


def _without(*kids: str) -> Within:
    return _published(lambda stand, _forge: [one for one in stand.members() if one["kid"] not in kids])


def _with(*more: dict[str, Any]) -> Within:
    return _published(lambda stand, _forge: [*stand.members(), *more])


def _new_bytes(kid: str) -> Within:
    """The kid stays, the key is another."""
    return _published(
        lambda stand, forge: [
            {**one, "x": forge.keys.stranger.jwk()["x"]} if one["kid"] == kid else one for one in stand.members()
        ]
    )


def _reads(signer: str) -> Callable[[Forge], Wire]:
    return lambda forge: forge.call(forge.token(getattr(forge.keys, signer)))


def _writes(signer: str) -> Callable[[Forge], Wire]:
    return lambda forge: forge.call(forge.token(getattr(forge.keys, signer), tool="create_return"), "create_return")


ROTATED = [
    right("a key that was rotated", "the old one, while both are published", _reads("host")),
    right("a key that was rotated", "the new one, while both are published", _reads("second")),
    right("a key that was rotated", "the new one, after the old one's end", _reads("second"), within=_without("key-1")),
    *(
        Attempt("a key that was rotated", f"{name} {when}", wire, UNPROVEN, within=within)
        for name, wire in (("reads", _reads("host")), ("writes", _writes("host")))
        for when, within in (
            ("after its end", _without("key-1")),
            ("with another key under its kid", _new_bytes("key-1")),
            ("after the end of all but one", _without("key-1", "key-revoked")),
        )
    ),
]

REVOKED = [
    plain("a revoked key"),
    *(
        Attempt(
            "a revoked key",
            name,
            lambda f, name=name: f.call(f.token(f.keys.revoked, tool=name), name),
            told("token_revoked"),
        )
        for name in CALLS
    ),
]


def _revoking() -> Within:
    @contextmanager
    def within(stand: Stand, forge: Forge) -> Iterator[None]:
        stand.revoke_token(forge.mark)
        yield

    return within


def _asking(token: Callable[[Forge], str], method: str, era: str) -> Callable[[Forge], Wire]:
    """What needs a token and calls nothing."""
    return lambda f: f.ask(token(f), method, era)


def _revoked_key(forge: Forge) -> str:
    return forge.token(forge.keys.revoked)


ASKED = ("initialize", "notifications/initialized", "ping", "server/discover", "tools/list", "prompts/list", "no/such")
BEYOND_CALLS = [
    *(
        right("a revoked token that calls nothing", f"a good one, {method} in {era}", _asking(Forge.token, method, era))
        for method, era in (("tools/list", MODERN), ("tools/list", LEGACY), ("initialize", LEGACY), ("ping", LEGACY))
    ),
    *(
        Attempt(
            "a revoked token that calls nothing", f"{what}, {method} in {era}", _asking(token, method, era), NO_MORE,
            within=within,
        )
        for what, token, within in (
            ("its key", _revoked_key, as_it_stands), ("itself", Forge.token, _revoking()),
            ("a probe", Forge.probe, _revoking()),
        )
        for method in ASKED
        for era in (MODERN, LEGACY)
        if what != "a probe" or method in {"tools/list", "initialize"}
    ),
]  # fmt: skip
REVOKED_TOKENS = [
    plain("a revoked token"),
    *(
        Attempt(
            "a revoked token", name, lambda f, name=name: f.call(f.token(tool=name), name), told("token_revoked"),
            within=_revoking(),
        )
        for name in ("get_order", "create_return", "find_return", "send_return_notice")
    ),
    Attempt(
        "a revoked token", "for what it was not for", lambda f: f.call(f.token(details={"resource": "A-2"})),
        told("token_revoked"), within=_revoking(),
    ),
]  # fmt: skip


def _nobody(_stand: Stand, _forge: Forge) -> list[Any]:
    return []


_WEAK_RSA = {"kty": "RSA", "kid": "weak", "alg": "RS256", "n": b64(b"\xc1" * 128), "e": "AQAB"}


def _secret(issuer: Issuer) -> str:
    return b64(issuer.private.private_bytes_raw())


_SECRETS = {"": "none", "secret": "a word", "x" * 31: "31 bytes", "x" * 64: "64 bytes"}
_SETS: dict[str, Members] = {
    **{
        f"a shared secret of {what}": lambda s, _f, secret=secret: [
            *s.members(), {"kty": "oct", "kid": "s", "alg": "HS256", "k": b64(secret.encode())},
        ]
        for secret, what in _SECRETS.items()
    },
    "an RSA key of 1024 bits": lambda s, _f: [*s.members(), _WEAK_RSA],
    "an RSA key with the exponent 1": lambda s, _f: [*s.members(), {**_WEAK_RSA, "n": b64(b"\xc1" * 256), "e": "AQ"}],
    "an RSA key with the exponent 3": lambda s, _f: [*s.members(), {**_WEAK_RSA, "n": b64(b"\xc1" * 256), "e": "Aw"}],
    "a kid twice": lambda s, f: [*s.members(), f.keys.stranger.jwk()],
    "a key under two kids": lambda s, f: [*s.members(), f.keys.host.jwk(kid="again")],
    "a key of both hosts": lambda s, f: [*s.members(), f.keys.partner.jwk(kid="theirs")],
    "a kid of the partner's": lambda s, f: [*s.members(), f.keys.stranger.jwk(kid="partner-1")],
    "a private key": lambda s, f: [*s.members(), {**f.keys.stranger.jwk(kid="p"), "d": _secret(f.keys.stranger)}],
    "a key for encryption": lambda s, f: [*s.members(), f.keys.stranger.jwk(kid="e", use="enc")],
    "a key without an algorithm": lambda s, f: [*s.members(), f.keys.stranger.jwk(kid="a", alg=DROP)],
    "a key of the algorithm none": lambda s, f: [*s.members(), f.keys.stranger.jwk(kid="n", alg="none")],
    "a point of small order": lambda s, f: [*s.members(), f.keys.stranger.jwk(kid="o", x=b64(bytes(32)))],
    "what is no key": lambda s, _f: [*s.members(), "key"],
}  # fmt: skip
UNTRUSTED_SETS = [
    right("a set of keys that is none", "a set with one more key", _reads("host"), within=_with(
        Issuer(Ed25519PrivateKey.generate(), "key-9", "", None, "").jwk()  # type: ignore[arg-type]  # its key alone
    )),
    *(
        Attempt("a set of keys that is none", name, _reads("host"), UNTRUSTED, within=_published(members))
        for name, members in _SETS.items()
    ),
    *(
        Attempt(
            "a set of keys that is none", f"{name}, by a partner", _reads("partner"), UNTRUSTED,
            within=_published(members),
        )
        for name, members in _SETS.items() if name in {"a private key", "a kid twice", "what is no key"}
    ),
]  # fmt: skip


@contextmanager
def _no_key_at_all(stand: Stand, _forge: Forge) -> Iterator[None]:
    with stand.published(), stand.published(by=stand.keys.partner):
        yield


NO_KEYS = [
    right(
        "an empty set of keys", "the partner's, whose set is not empty", _reads("partner"), within=_published(_nobody)
    ),
    *(
        Attempt("an empty set of keys", f"{name} of the host's", wire, UNPROVEN, within=_published(_nobody))
        for name, wire in (
            ("a read", _reads("host")),
            ("a write", _writes("host")),
            ("the second key", _reads("second")),
        )
    ),
    *(
        Attempt("an empty set of keys", f"no key at all, {name}", _reads(name), UNTRUSTED, within=_no_key_at_all)
        for name in ("host", "second", "partner", "stranger")
    ),
]


def _broken(text: Callable[[str], str | None]) -> Within:
    """The file itself is another one."""

    @contextmanager
    def within(stand: Stand, _forge: Forge) -> Iterator[None]:
        with stand.published(*stand.members()):
            path = stand.keys.host.jwks_file
            changed = text(path.read_text())
            if changed is None:
                path.unlink()
            else:
                path.write_text(changed)
            yield

    return within


_FILES: dict[str, Callable[[str], str | None]] = {
    "away": lambda _text: None,
    "empty": lambda _text: "",
    "half": lambda text: text[: len(text) // 2],
    "a list": lambda text: json.dumps(json.loads(text)["keys"]),
    "twice": lambda text: text + text,
    "with a member twice": lambda text: text.replace('{"keys"', '{"keys": [], "keys"'),
}
BROKEN_FILES = [
    right(
        "a file of keys that is broken", "one that is written anew", _reads("host"), within=_broken(lambda text: text)
    ),
    *(
        Attempt("a file of keys that is broken", name, _reads("host"), UNTRUSTED, within=_broken(text))
        for name, text in _FILES.items()
    ),
]

ATTEMPTS: list[Attempt] = [*ROTATED, *REVOKED, *REVOKED_TOKENS, *BEYOND_CALLS, *UNTRUSTED_SETS, *NO_KEYS, *BROKEN_FILES]
