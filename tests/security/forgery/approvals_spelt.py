"""Approvals in another spelling than their one, or carried in another place than their one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from shared_contracts.approval import EVENT_CHARACTERS_MAX, Void
from tests.security.forgery.approvals import Text, over, parts, right, signed, void
from tests.security.forgery.attempt import CLAIMS, Answer, Attempt, proven, told
from tests.security.forgery.forge import CALLS, DROP, DUE, VERSION, Forge, Wire


def _payload(change: Callable[[dict[str, Any]], bytes]) -> Text:
    return over(lambda _f, header, payload: (header, change(json.loads(payload))))


def _header(change: Callable[[dict[str, Any]], bytes]) -> Text:
    return over(lambda _f, header, payload: (change(json.loads(header)), payload))


def _plain(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _spelt(change: Callable[[str], str]) -> Text:
    return lambda f: change(signed(f))


_REENCODED: dict[str, Text] = {
    "with spaces": _payload(lambda event: json.dumps(event, sort_keys=True).encode()),
    "in another order": _payload(lambda event: json.dumps(event, separators=(",", ":")).encode()[::1] + b" "),
    "with its members the other way round": _payload(
        lambda event: json.dumps(dict(sorted(event.items(), reverse=True)), separators=(",", ":")).encode()
    ),
    "with an escape": _payload(lambda event: _plain(event).replace(b'"approve"', b'"\\u0061pprove"')),
    "with a fraction": _payload(lambda event: _plain(event).replace(b'"version":9', b'"version":9.0')),
    "with an exponent": _payload(lambda event: _plain(event).replace(b'"version":9', b'"version":9e0')),
    "with a member more": _payload(lambda event: _plain({**event, "also": 1})),
    "with a member twice": _payload(lambda event: _plain(event).replace(b"{", b'{"decision":"deny",', 1)),
    "with a member less": _payload(lambda event: _plain({k: v for k, v in event.items() if k != "reason"})),
    "with a number as text": _payload(lambda event: _plain({**event, "version": "9"})),
    "with another zone": _payload(
        lambda event: _plain({**event, "decided_at": event["decided_at"].replace("Z", "+00:00")})
    ),
    "with a line break": _payload(lambda event: _plain(event) + b"\n"),
    "with a byte-order mark": _payload(lambda event: b"\xef\xbb\xbf" + _plain(event)),
    "in a list": _payload(lambda event: _plain([event])),
    "nothing": _payload(lambda _event: b""),
    "null": _payload(lambda _event: b"null"),
    "with another algorithm": _header(lambda header: _plain({**header, "alg": "none"})),
    "with another type": _header(lambda header: _plain({**header, "typ": "at+jwt"})),
    "with a member more in the header": _header(lambda header: _plain({**header, "crit": []})),
    "with a space in the header": _header(lambda header: json.dumps(header, sort_keys=True).encode()),
    "with its header in another order": _header(
        lambda header: json.dumps(dict(sorted(header.items(), reverse=True)), separators=(",", ":")).encode()
    ),
    "without a key's name": _header(lambda header: _plain({k: v for k, v in header.items() if k != "kid"})),
    "with a surrogate for a name": _header(lambda header: _plain({**header, "kid": "\ud800"})),
    "with =": _spelt(lambda text: text + "="),
    "with a line break behind it": _spelt(lambda text: text + "\n"),
    "with a space before it": _spelt(lambda text: " " + text),
    "with a dot behind it": _spelt(lambda text: text + "."),
    "with four letters more": _spelt(lambda text: text + "AAAA"),
    "in unused bits": _spelt(lambda text: text[:-1] + chr(ord(text[-1]) + 1)),
    "with = in the middle": _spelt(lambda text: text.replace(".", "=.", 1)),
}


def _malformed(name: str) -> Void:
    return Void.BAD_SIGNATURE if name == "with four letters more" else Void.MALFORMED


REENCODED = [
    right("an approval in another spelling"),
    *(void("an approval in another spelling", _malformed(name), name, text) for name, text in _REENCODED.items()),
]


def _claimed(name: str, answer: Answer, tool: str = "create_return", **details: Any) -> Attempt:
    """A token that carries it in a way that no token may."""

    def wire(forge: Forge) -> Wire:
        given = {name: value(forge) if callable(value) else value for name, value in details.items()}
        carried = {"approval": signed(forge), "approved_version": VERSION, **given}
        arguments = CALLS.get(tool, CALLS["get_order"]) if tool != "create_return" else DUE
        token = forge.token(tool=tool, arguments=arguments, details=carried)
        return forge.call(token, tool, arguments, secrets=tuple(parts(forge)[1:]))

    return Attempt("an approval that is carried wrongly", name, wire, answer)


def _beside(name: str, answer: Answer, **more: Any) -> Attempt:
    """The token has none; it stands somewhere else in the request."""

    def wire(forge: Forge) -> Wire:
        token, text = forge.token(tool="create_return", arguments=DUE), signed(forge)
        sent = {key: value(text) if callable(value) else value for key, value in more.items()}
        return forge.call(token, "create_return", DUE, secrets=tuple(text.split(".")), **sent)

    return Attempt("an approval that is carried wrongly", name, wire, answer)


_NEEDED, _HALF = told("approval_required", "high_value"), proven("details")


def _in_meta(approval: str) -> Callable[[str], str]:
    return lambda text: text.replace('"_meta": {', f'"_meta": {{"dev.kessai/approval": "{approval}", ', 1)


def _argued(forge: Forge) -> Wire:
    given = {**DUE, "approval": signed(forge)}
    return forge.call(forge.token(tool="create_return", arguments=given), "create_return", given)


CARRIED = [
    right("an approval that is carried wrongly"),
    *(
        _claimed(name, CLAIMS, approval=value)
        for name, value in (
            ("as nothing", ""), ("as a list", lambda f: [signed(f)]), ("as an object", {"decision": "approve"}),
            ("as true", True), ("as a lone surrogate", "\ud800"),
            ("as too long a text", "A" * (EVENT_CHARACTERS_MAX + 1)),
        )
    ),
    *(
        _claimed(f"for the version {value!r}", CLAIMS, approved_version=value)
        for value in (0, -1, str(VERSION), 9.5, True)
    ),
    _claimed("without a version", _HALF, approved_version=DROP),
    _claimed("as a version alone", _HALF, approval=DROP),
    _claimed("as null", _HALF, approval=None),
    *(
        _claimed(f"for {name}", _HALF, tool=name)
        for name in ("get_order", "cancel_return", "send_return_notice", "no_such_tool")
    ),
    _beside("in a header", _NEEDED, headers=lambda text: {"Approval": text, "X-Approval": text}),
    _beside("nowhere", _NEEDED, headers={"X-Approved": "true"}),
    _beside("in _meta", _NEEDED, body=_in_meta),
    Attempt(
        "an approval that is carried wrongly", "in the arguments",
        _argued, told("invalid_arguments"),
    ),
    *(
        Attempt(
            "an approval that is carried wrongly", f"by an outside host, {name}",
            lambda f, carried=carried: f.call(f.outside_write(details=carried(f)), "create_return"),
            _HALF,
        )
        for name, carried in (
            ("whole", lambda f: {"approval": signed(f), "approved_version": VERSION}),
            ("without its version", lambda f: {"approval": signed(f)}),
            ("as a version alone", lambda _f: {"approved_version": VERSION}),
        )
    ),
]  # fmt: skip


ATTEMPTS: list[Attempt] = [*REENCODED, *CARRIED]
