"""The right token in another spelling, in another place, or beside another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.security.forgery.attempt import MISSING, NO_HTTP, UNPROVEN, Answer, Attempt, plain, right, with_text
from tests.security.forgery.forge import Forge, Wire

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_STANDARD = str.maketrans("-_", "+/")


def _twin(bits: int) -> Callable[[Forge], str]:
    """The last character holds four bits that no byte needs: fifteen other spellings of the same bytes."""

    def text(forge: Forge) -> str:
        token = forge.token()
        return token[:-1] + _ALPHABET[_ALPHABET.index(token[-1]) ^ bits]

    return text


def _tailed(tail: str) -> Callable[[Forge], str]:
    return lambda forge: forge.token() + tail


def _rejoined(made: Callable[[list[str]], str]) -> Callable[[Forge], str]:
    return lambda forge: made(forge.token().split("."))


def _standard(forge: Forge) -> str:
    """Its own bytes in the other alphabet; where none of its characters differs, two more make it another text."""
    token = forge.token()
    changed = token.translate(_STANDARD)
    return changed if changed != token else f"{token}+/"


_TAILS = ("=", "==", "===", ".", "..", ".AAAA", "A", "AAAA", "%3D", "~", "/", "+", "-", "_")
MALLEABLE = [
    plain("another spelling of the token"),
    *with_text("another spelling of the token", UNPROVEN, [(f"unused bits {n}", _twin(n)) for n in range(1, 16, 2)]),
    *with_text("another spelling of the token", UNPROVEN, [(f"{tail} behind it", _tailed(tail)) for tail in _TAILS]),
    *with_text(
        "another spelling of the token",
        UNPROVEN,
        [
            ("= behind the header", lambda f: f.token().replace(".", "=.", 1)),
            (". before it", lambda f: "." + f.token()),
            ("no signature", _rejoined(lambda p: f"{p[0]}.{p[1]}")),
            ("no payload", _rejoined(lambda p: f"{p[0]}..{p[2]}")),
            ("payload and header exchanged", _rejoined(lambda p: f"{p[1]}.{p[0]}.{p[2]}")),
            ("its end first", _rejoined(lambda p: f"{p[2]}.{p[1]}.{p[0]}")),
            ("the payload twice", _rejoined(lambda p: f"{p[0]}.{p[1]}.{p[1]}.{p[2]}")),
            ("the other alphabet", _standard),
            ("in small letters", lambda f: f.token().lower()),
            ("back to front", lambda f: f.token()[::-1]),
            ("twice", lambda f: f.token() * 2),
        ],
    ),
]


def _sent(*values: bytes) -> Callable[[Forge], Wire]:
    return lambda forge: forge.call(forge.token(), authorization=values)


def _headers(kind: str, answer: Answer, cases: Iterable[Any]) -> list[Attempt]:
    return [
        Attempt(kind, repr(case)[:80], _sent(*(case if isinstance(case, tuple) else (case,))), answer) for case in cases
    ]


_SPELLINGS = [
    b"Bearer  @", b"Bearer\t@", b"Bearer\xa0@", b"Bearer\xc2\xa0@", b"Bearer@", b"Beaver @", b"Bearer ", b"Bearer",
    b"@",
    b"Bearer @ extra", b"Bearer @,Bearer @", b"Bearer @, Bearer @", b"Basic @", b"", b"Bearer Bearer @", b"Bearer: @",
    b'Bearer "@"', b"Bearer token=@", b"Token @", b"DPoP @", b"Bearer <@>", b"Bearer @;", b"Bearer @,", b"Bearer=@",
    b"Negotiate @", b"Bearer \xe3\x80\x80@",
]  # fmt: skip
_SCHEMES = [b"Bearer @", b"bearer @", b"BEARER @", b"bEaReR @", b"  Bearer @ \t"]
SPELLINGS = [
    *(right("another spelling of the header", repr(value), _sent(value)) for value in _SCHEMES),
    *_headers("another spelling of the header", UNPROVEN, _SPELLINGS),
]

_PAIRS: list[tuple[bytes, ...]] = [
    (b"Bearer @", b"Bearer @"), (b"Basic eA==", b"Bearer @"), (b"Bearer @", b"Basic eA=="), (b"", b"Bearer @"),
    (b"Bearer @", b""), (b"Bearer x", b"Bearer @"), (b"Bearer @", b"Bearer x"), (b"Bearer @", b"Bearer @", b"Bearer @"),
]  # fmt: skip
TWO_HEADERS = [
    plain("two Authorization headers"),
    *_headers("two Authorization headers", UNPROVEN, _PAIRS),
    Attempt(
        "two Authorization headers",
        "the second in other letters",
        lambda f: f.call(f.token(), more=(b"aUTHORIZATION: Bearer @",)),
        UNPROVEN,
    ),
]

_BYTES = [
    b"Bearer caf\xe9", b"Bearer \xff\xfe", "Bearer 🔑".encode(), b"\x80", b"Bearer @\xe9", b"Bearer \xe9@",
    b"\xe9Bearer @",
    "Bearer トークン".encode(), b"Bearer @\xc2\xad", b"Bearer \xc0\xae@", "Bearer @\u202e".encode(),
    b"Bearer \xed\xa0\x80@",
]  # fmt: skip
NO_TEXT = [
    plain("bytes that are no text"),
    *_headers("bytes that are no text", UNPROVEN, _BYTES),
    *_headers(
        "bytes that are no text",
        NO_HTTP,
        [b"Bearer @\x00", b"\x00Bearer @", b"Bearer\x00@", b"Bearer @\x7f", b"\x1b @"],
    ),
    *_headers("bytes that are no text", NO_HTTP, [b"Bearer\r\n @", b"Bearer @\rX: y"]),
]

_LARGE = Answer(431)
_SIZES = [(UNPROVEN, 8_193), (UNPROVEN, 20_000), (UNPROVEN, 50_000), (_LARGE, 100_000), (_LARGE, 250_000)]
LARGE = [
    plain("a header that is too large"),
    *(
        Attempt("a header that is too large", f"{size} letters", _sent(b"Bearer " + b"A" * size), answer)
        for answer, size in _SIZES
    ),
    *(
        Attempt(
            "a header that is too large", f"a payload of {size}", lambda f, n=size: f.call(f.token(sub="x" * n)), answer
        )
        for answer, size in ((UNPROVEN, 10_000), (_LARGE, 100_000))
    ),
    Attempt(
        "a header that is too large",
        "100 kB beside it",
        lambda f: f.call(f.token(), more=(b"X-Large: " + b"A" * 100_000,)),
        _LARGE,
    ),
]


def _at(line: bytes) -> Callable[[Forge], Wire]:
    return lambda forge: forge.call(forge.token(), line=line, authorization=())


def _named(name: bytes) -> Callable[[Forge], Wire]:
    return lambda forge: forge.call(forge.token(), more=(name,), authorization=())


def _within_body(member: str) -> Callable[[Forge], Wire]:
    def wire(forge: Forge) -> Wire:
        token = forge.token()
        return forge.call(
            token,
            authorization=(),
            body=lambda text: text.replace('"params": {', f'"params": {{"{member}": "{token}", '),
        )

    return wire


_QUERIES = ("token", "access_token", "authorization", "bearer", "Authorization")
_BESIDE = [
    b"Cookie: access_token=@", b"Cookie: Authorization=Bearer @", b"X-Authorization: Bearer @", b"X-Api-Key: @",
    b"Proxy-Authorization: Bearer @", b"X-Forwarded-Authorization: Bearer @", b"Authentication: Bearer @", b"Token: @",
    b"Sec-WebSocket-Protocol: @", b"X-Amzn-Oidc-Accesstoken: @",
]  # fmt: skip
ELSEWHERE = [
    plain("a token elsewhere"),
    *(
        Attempt("a token elsewhere", f"query: {name}", _at(b"POST /mcp?%s=@ HTTP/1.1" % name.encode()), MISSING)
        for name in _QUERIES
    ),
    Attempt("a token elsewhere", "query, with the scheme", _at(b"POST /mcp?Bearer%20@ HTTP/1.1"), MISSING),
    Attempt("a token elsewhere", "fragment", _at(b"POST /mcp#access_token=@ HTTP/1.1"), MISSING),
    *(Attempt("a token elsewhere", name.decode(), _named(name), MISSING) for name in _BESIDE),
    *(
        Attempt("a token elsewhere", f"body: {name}", _within_body(name), MISSING)
        for name in ("access_token", "_token", "authorization")
    ),
    Attempt("a token elsewhere", "nowhere", lambda f: f.call(None), MISSING),
]


def _chunked(*trailers: bytes) -> Callable[[str], bytes]:
    return lambda text: b"\r\n".join([b"%x" % len(text.encode()), text.encode(), b"0", *trailers, b"", b""])


def _trailed(*lines: bytes) -> Callable[[Forge], Wire]:
    """The token comes behind the body."""

    def wire(forge: Forge) -> Wire:
        token = forge.token()
        trailers = [line.replace(b"@", token.encode()) for line in lines]
        return forge.call(
            token, authorization=(), body=_chunked(*trailers), framing=(_CHUNKED, b"Trailer: Authorization")
        )

    return wire


_CHUNKED = b"Transfer-Encoding: chunked"
ELSEWHERE += [
    right(
        "a token elsewhere", "before a body in chunks",
        lambda f: f.call(f.token(), body=_chunked(), framing=(_CHUNKED,)),
    ),
    *(
        Attempt("a token elsewhere", f"behind the body, {name}", _trailed(*lines), MISSING)
        for name, lines in (
            ("alone", (b"Authorization: Bearer @",)),
            ("twice", (b"Authorization: Bearer @", b"Authorization: Bearer @")),
            ("with a header", (b"X: y", b"authorization: bearer @")),
        )
    ),
]  # fmt: skip


_NO_CODING = Answer(501, "invalid_request")


def _framed(name: str, *framing: bytes, chunks: bool = False, answer: Answer = NO_HTTP) -> Attempt:
    """A body whose end is told in two ways, in one that is none, or in chunks of what is no plain text."""
    body = _chunked() if chunks else None
    return Attempt("a body of doubtful length", name, lambda f: f.call(f.token(), body=body, framing=framing), answer)


FRAMES = [
    right("a body of doubtful length", "in chunks", lambda f: f.call(f.token(), body=_chunked(), framing=(_CHUNKED,))),
    _framed("in chunks and of a length", _CHUNKED, b"Content-Length: 5", chunks=True),
    _framed("of a length and in chunks", b"Content-Length: 5", _CHUNKED, chunks=True),
    _framed("of two lengths", b"Content-Length: 300", b"Content-Length: 3"),
    _framed("of one length twice", b"Content-Length: 300", b"Content-Length: 300"),
    _framed("of a signed length", b"Content-Length: +300"),
    _framed("of a negative length", b"Content-Length: -1"),
    _framed("of a length in hexadecimal", b"Content-Length: 0x12c"),
    _framed("of a list of lengths", b"Content-Length: 300, 300"),
    _framed("in another coding", b"Transfer-Encoding: xchunked", chunks=True),
    _framed("in chunks, then as it is", b"Transfer-Encoding: chunked, identity", chunks=True),
    _framed("in chunks twice", _CHUNKED, _CHUNKED, b"Content-Length: 3", chunks=True),
    _framed(
        "in chunks of gzip, and of a length", b"Transfer-Encoding: gzip, chunked", b"Content-Length: 5", chunks=True
    ),
    *(
        _framed(
            f"as {lines}", *(b"Transfer-Encoding: %s" % line for line in lines.encode().split(b" + ")),
            chunks=True, answer=_NO_CODING,
        )
        for lines in (
            "gzip, chunked", "GZIP,chunked", "identity, chunked", "gzip + chunked", ",chunked", 'x;a=",",chunked',
        )
    ),
]  # fmt: skip

_GONE, _OTHER_WAY = Answer(404), Answer(405)


def _door(line: bytes, answer: Answer, **more: Any) -> Attempt:
    return Attempt("another door", line.decode(), lambda f: f.call(f.token(), line=line, **more), answer)


DOORS = [
    plain("another door"),
    *(
        _door(line, _GONE)
        for line in (
            b"POST / HTTP/1.1", b"POST /mcp/ HTTP/1.1", b"POST //mcp HTTP/1.1", b"POST /MCP HTTP/1.1",
            b"POST /sse HTTP/1.1",
            b"POST /mcp%2f HTTP/1.1", b"POST /messages HTTP/1.1", b"POST /mcp/tools/call HTTP/1.1",
            b"POST /mcp;x HTTP/1.1", b"POST /healthz/../mcp HTTP/1.1",
        )
    ),
    *(
        _door(b"%s /mcp HTTP/1.1" % method, _OTHER_WAY)
        for method in (b"GET", b"DELETE", b"PUT", b"PATCH", b"OPTIONS")
    ),
]  # fmt: skip

_FOREIGN_HOST, _FOREIGN_ORIGIN = Answer(421, "invalid_request"), Answer(403, "invalid_request")


def _addressed(name: str, headers: dict[str, str], answer: Answer) -> Attempt:
    return Attempt("another address", name, lambda f: f.call(f.token(), headers=headers), answer)


ADDRESSES = [
    plain("another address"),
    *(
        _addressed(f"origin {value}", {"Origin": value}, _FOREIGN_ORIGIN)
        for value in ("http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1.evil.example", "file://")
    ),
    right(
        "another address",
        "this one, in the target",
        lambda f: f.call(f.token(), line=b"POST http://127.0.0.1:%d/mcp HTTP/1.1" % f.port),
    ),
    *(
        Attempt(
            "another address",
            f"target {target.decode()}",
            lambda f, target=target: f.call(
                f.token(), line=b"POST %s HTTP/1.1" % target.replace(b"PORT", b"%d" % f.port)
            ),
            _FOREIGN_HOST,
        )
        for target in (
            b"http://evil.example/mcp",
            b"http://127.0.0.1.evil.example:PORT/mcp",
            b"https://evil.example/mcp?http://127.0.0.1:PORT",
            b"http://127.0.0.1/mcp",
        )
    ),
    Attempt(
        "another address", "a second Host", lambda f: f.call(f.token(), more=(b"Host: evil.example",)), _FOREIGN_HOST
    ),
    *(
        Attempt(
            "another address", f"host {name.decode()}", lambda f, n=name: _hosted(f.call(f.token()), n), _FOREIGN_HOST
        )
        for name in (b"evil.example", b"127.0.0.1", b"localhost:80", b"")
    ),
]


def _hosted(wire: Wire, name: bytes) -> Wire:
    return Wire(wire.line, (b"Host: " + name, *wire.headers[1:]), wire.body, wire.secrets)


ATTEMPTS: list[Attempt] = [
    *MALLEABLE, *SPELLINGS, *TWO_HEADERS, *NO_TEXT, *LARGE, *ELSEWHERE, *FRAMES, *DOORS, *ADDRESSES,
]  # fmt: skip
