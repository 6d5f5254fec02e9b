"""Tokens that the right key signed, each with one claim that is not right."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from shared_contracts.task_token import LEEWAY_SECONDS, LIFETIME_SECONDS_MAX, Use
from tests.security.forgery.attempt import CLAIMS, Answer, Attempt, plain, proven, right, with_claims, with_text
from tests.security.forgery.forge import DROP, Forge
from tests.support.tokens import b64

Text = Callable[[Forge], str]
NAMES = (
    "iss", "aud", "sub", "client_id", "tenant_id", "task_id", "scope", "iat", "nbf", "exp", "jti", "use",
    "authorization_details",
)  # fmt: skip
_EMPTY: dict[str, Answer] = {"scope": proven("scope"), "authorization_details": CLAIMS}
_WRONG: list[Any] = [True, 7, 1.5, ["x"], {"x": 1}]
_LISTS: dict[str, list[Any]] = {"authorization_details": [True, 7, "x", {"x": 1}, [[]], [None], ["x"]]}
_NUMBERS = frozenset({"iat", "nbf", "exp"})


def _wrong_types(name: str) -> list[Any]:
    if name in _NUMBERS:
        return []  # a table of their own, below
    return _LISTS.get(name, _WRONG)


ABSENT = [
    plain("a claim is absent"),
    *with_claims("a claim is absent", CLAIMS, [(name, {name: DROP}) for name in NAMES]),
    *with_claims("a claim is null", CLAIMS, [(name, {name: None}) for name in NAMES]),
    plain("a claim is null"),
    *(one for name in NAMES for one in with_claims("a claim is empty", _EMPTY.get(name, CLAIMS), [(name, {name: ""})])),
    plain("a claim is empty"),
]
TYPES = [
    plain("a claim of another type"),
    *with_claims(
        "a claim of another type",
        CLAIMS,
        [(f"{name} {value!r}", {name: value}) for name in NAMES for value in _wrong_types(name)],
    ),
]
_ODD = ["a\x00b", "a\nb", "a\x1b[2Jb", "\ud800", "a\u202eb", "a\u200b", "e\u0301", "x" * 5_000]
_NO_IDS = [" ", "a b", "a ", "*", "%", "a/b", "' OR '1'='1", "a\nb", "\uff41", "a\u202eb", "../a"]
_TEXTS = [
    *(("sub", text) for text in _ODD),
    *((name, text) for name in ("client_id", "jti") for text in _ODD[:4]),
    *((name, text) for name in ("tenant_id", "task_id") for text in _NO_IDS),
]
TEXTS = [
    plain("a claim's text is none"),
    *with_claims("a claim's text is none", CLAIMS, [(f"{name} {text[:12]!r}", {name: text}) for name, text in _TEXTS]),
    *with_claims(
        "a claim's text is none",
        CLAIMS,
        [(f"customer {text!r}", {"details": {"customer": text}}) for text in _NO_IDS],
    ),
    *with_claims(
        "a claim's text is none", CLAIMS, [("an unknown claim", {"roles": ["admin"]}), ("admin", {"admin": 1})]
    ),
]


def _number(name: str, spelling: str) -> Text:
    """A token in whose JSON the claim is spelt so; {} is a good value, for a string a good one too."""

    def text(forge: Forge) -> str:
        claims = forge.claims(**{name: "@"})
        good = forge.moment + (60 if name == "exp" else 0)
        return forge.written(json.dumps(claims).replace('"@"', spelling.replace("{}", str(good))))

    return text


_SPELLINGS = [
    '"{}"', "{}.5", "{}.0", "{}e0", '"9_999_999_999"', "1" + "0" * 50, "1" + "0" * 4_000, "1e999", "Infinity", "NaN",
    "true",
    "[1]", "[{}]", '{"$": {}}', "-1", "-{}", '" "', "1099511627777", "9223372036854775808", "0x7fffffff", "{}n",
]  # fmt: skip
NUMBERS = [
    one
    for name in sorted(_NUMBERS)
    for one in (
        plain(f"{name} is no plain number"),
        *with_text(
            f"{name} is no plain number",
            CLAIMS,
            [(spelling[:16], _number(name, spelling)) for spelling in _SPELLINGS],
        ),
    )
]


def _twice(name: str, *, first: bool, same: bool) -> Text:
    """The claim, or the member of the details, is given twice: another value before it, or the same one after it."""

    def text(forge: Forge) -> str:
        claims = forge.claims()
        inside = claims["authorization_details"][0]
        written = json.dumps(claims)
        member = f'"{name}": {json.dumps(inside[name] if name in inside else claims[name])}'
        assert written.count(member) == 1
        other = member if same else f'"{name}": null'
        return forge.written(written.replace(member, f"{other}, {member}" if first else f"{member}, {other}"))

    return text


_MEMBERS = ("tool", "resource", "customer", "arguments_sha256", "idempotency_key", "attempt", "type")
TWICE = [
    plain("a claim is given twice"),
    *with_text(
        "a claim is given twice",
        CLAIMS,
        [(f"{name}, another before it", _twice(name, first=True, same=False)) for name in (*NAMES, *_MEMBERS)]
        + [(f"{name}, the same after it", _twice(name, first=False, same=True)) for name in (*NAMES, *_MEMBERS)],
    ),
]

_PAYLOADS = [
    b"", b"{}", b"[]", b"null", b"\xff", b"{", b"[" * 3_000, b'"x"', b"7", b"{}{}", b"\xef\xbb\xbf{}", b'{"iss":',
    b'{"\xed\xa0\x80":1}', b"{'iss': 1}", b"[{}]", b'{"a":' * 100 + b"1" + b"}" * 100,
]  # fmt: skip
PAYLOADS = [
    plain("a payload that is no claims"),
    *with_text(
        "a payload that is no claims",
        CLAIMS,
        [(repr(text)[:40], lambda f, text=text: f.keys.host.sign(f.header(), text)) for text in _PAYLOADS],
    ),
    *with_text(
        "a payload that is no claims",
        CLAIMS,
        [
            ("a token in a token", lambda f: f.keys.host.sign(f.header(), f.token().encode())),
            ("claims, encoded once more", lambda f: f.written(b64(json.dumps(f.claims()).encode()))),
            ("claims in UTF-16", lambda f: f.keys.host.sign(f.header(), json.dumps(f.claims()).encode("utf-16"))),
            ("claims and more", lambda f: f.written(json.dumps(f.claims()) + ",")),
            ("claims in a list", lambda f: f.written(json.dumps([f.claims()]))),
        ],
    ),
]

L = LEEWAY_SECONDS


def _lives(kind: str, name: str, answer: Answer | None, since: int, seconds: int, **more: Any) -> Attempt:
    changes = {"exact": True, "answer": answer}
    return Attempt(kind, name, lambda f: f.call(f.token(**{**f.lives(seconds, since), **_late(f, more)})), **changes)


def _late(forge: Forge, more: dict[str, int]) -> dict[str, int]:
    return {name: forge.moment + since for name, since in more.items()}


_EXPIRED, _EARLY, _LONG = proven("expired"), proven("not_yet"), proven("lifetime")
TIMES = [
    _lives("exp has come", "in a second", None, -60 - L, 61),
    _lives("exp has come", "now", _EXPIRED, -60 - L, 60),
    _lives("exp has come", "a second ago", _EXPIRED, -60 - L, 59),
    _lives("exp has come", "an hour ago", _EXPIRED, -3_700, 100),
    _lives("exp has come", "in 1970", _EXPIRED, 0, 0, exp=-1_600_000_000, iat=-1_600_000_060, nbf=-1_600_000_060),
    _lives("nbf has not come", "now", None, 0, 60, nbf=L),
    _lives("nbf has not come", "in a second", _EARLY, 0, 60, nbf=L + 1),
    _lives("nbf has not come", "in two seconds", _EARLY, 0, 60, nbf=L + 2),
    _lives("nbf has not come", "in a year", _EARLY, 0, 60, nbf=31_536_000),
    _lives("nbf has not come", "after the end", _EARLY, 0, 60, nbf=61),
    _lives("iat has not come", "now", None, L, 60, nbf=0),
    _lives("iat has not come", "in a second", _EARLY, L + 1, 60, nbf=0),
    _lives("iat has not come", "in two seconds", _EARLY, L + 2, 60, nbf=0),
    _lives("iat has not come", "in a year", _EARLY, 31_536_000, 60, nbf=0),
]
_MINT: dict[Use, Callable[..., str]] = {Use.CALL: Forge.token, Use.PROBE: Forge.probe, Use.EXTERNAL: Forge.external}


def _lifetime(use: Use, name: str, seconds: int, answer: Answer | None) -> Attempt:
    listing = use is Use.PROBE  # which calls nothing, so that its right one lists

    def text(forge: Forge) -> str:
        return _MINT[use](forge, **forge.lives(seconds))

    def body(_text: str) -> str:
        return _text.replace('"tools/call"', '"tools/list"').replace('"name": "get_order", "arguments"', '"ignored"')

    if listing:
        return Attempt(
            "too long a life",
            f"{use.value}, {name}",
            lambda f: f.call(text(f), body=body, headers={"Mcp-Method": "tools/list", "Mcp-Name": DROP}),
            answer,
        )
    return Attempt("too long a life", f"{use.value}, {name}", lambda f: f.call(text(f)), answer)


LIVES = [
    one
    for use, longest in LIFETIME_SECONDS_MAX.items()
    for one in (
        _lifetime(use, "the longest", longest, None),
        _lifetime(use, "a second more", longest + 1, _LONG),
        _lifetime(use, "a day", 86_400, _LONG),
        _lifetime(use, "to the last second that can be told", 2**39, _LONG),
        _lifetime(use, "none", 0, _LONG),
        _lifetime(use, "less than none", -1, _LONG),
    )
]

_AUDIENCES: list[Any] = [
    "{aud}/", "{aud}-admin", "{aud} ", " {aud}", "{aud}#", "{aud}?", "{aud}/../mcp", "http://127.0.0.1:1/mcp",
    "https://approvals.example/events", "kessai", "*", "http://localhost/mcp", "mcp", "/mcp",
]  # fmt: skip
_AUDIENCE_TYPES: list[Any] = [
    "{aud}\u200b",
    "{aud}\n",
    ["{aud}"],
    ["{aud}", "admin"],
    [],
    [["{aud}"]],
    {"tools": 1},
    {"{aud}": 1},
    0,
    False,
]


def _audience(value: Any) -> Text:
    def text(forge: Forge) -> str:
        return forge.token(aud=json.loads(json.dumps(value).replace("{aud}", forge.keys.host.resource)))

    return text


def _said(change: Callable[[str], str]) -> Text:
    return lambda forge: forge.token(aud=change(forge.keys.host.resource))


AUDIENCES = [
    plain("another audience"),
    *with_text("another audience", proven("audience"), [(repr(one), _audience(one)) for one in _AUDIENCES]),
    *with_text("another audience", CLAIMS, [(repr(one), _audience(one)) for one in _AUDIENCE_TYPES]),
    *with_text(
        "another audience",
        proven("audience"),
        [
            ("capitals", _said(str.upper)),
            ("without its path", _said(lambda aud: aud.removesuffix("/mcp"))),
            ("without its scheme", _said(lambda aud: aud.removeprefix("http://"))),
            ("https", _said(lambda aud: aud.replace("http:", "https:"))),
            ("another name of the host", _said(lambda aud: aud.replace("127.0.0.1", "localhost"))),
            ("without its port", _said(lambda _aud: "http://127.0.0.1/mcp")),
            (
                "its metadata's address",
                _said(lambda aud: aud.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")),
            ),
        ],
    ),
]

_ISSUERS = [
    "h", "https://host", "https://host.example/", "https://host.example/x", "https://host.example.evil.example", "HOST",
    "https://partner.example", "http://host.example", "https://HOST.example", "https://host.example ", "*", ".*",
    "host.example",
]  # fmt: skip
ISSUERS = [
    plain("another issuer"),
    right("another issuer", "the partner's own", lambda f: f.call(f.token(f.keys.partner))),
    *with_claims("another issuer", proven("issuer"), [(repr(one), {"iss": one}) for one in _ISSUERS]),
    *with_claims(
        "another issuer",
        CLAIMS,
        [("a list", {"iss": ["https://host.example"]}), ("one more, unseen", {"iss": "https://host.example\u200b"})],
    ),
    *with_text(
        "another issuer",
        proven("issuer"),
        [("the host's, by a partner", lambda f: f.token(f.keys.partner, iss="https://host.example"))],
    ),
]

ATTEMPTS: list[Attempt] = [
    *ABSENT, *TYPES, *TEXTS, *NUMBERS, *TWICE, *PAYLOADS, *TIMES, *LIVES, *AUDIENCES, *ISSUERS,
]  # fmt: skip
