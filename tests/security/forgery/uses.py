"""Good tokens beyond the bounds of their use, or used before; and calls beside the one that a token is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.security.forgery.attempt import (
    CLAIMS,
    UNPROVEN,
    Answer,
    Attempt,
    needs,
    plain,
    proven,
    right,
    told,
    with_claims,
)
from tests.security.forgery.bindings import SCOPES, returning, right_write
from tests.security.forgery.forge import CALLS, DROP, LEGACY, MODERN, ONE, Forge, Wire
from tests.security.forgery.stand import Stand

_USES = ["CALL", "admin", "call ", "probe,call"]
USE = [
    plain("a token of another use"),
    right("a token of another use", "an outside host's reading one", lambda f: f.call(f.external())),
    *with_claims("a token of another use", CLAIMS, [(use, {"use": use}) for use in _USES]),
    *(
        Attempt(
            "a token of another use", f"probe calls {name}", lambda f, name=name: f.call(f.probe(), name),
            needs(SCOPES[name], "no probe, "),
        )
        for name in CALLS
    ),
    *(
        Attempt("a token of another use", f"probe with {name}", lambda f, more=more: f.call(f.probe(**more)), answer)
        for name, more, answer in (
            ("a scope", {"scope": "orders:read"}, proven("scope")),
            ("a task", {"task_id": "task-1"}, proven("details")),
            ("details", {"authorization_details": [{"type": "kessai_call", "customer": "C-1"}]}, proven("details")),
        )
    ),
    Attempt(
        "a token of another use", "a call's as a probe", lambda f: f.call(f.token(use="probe", **f.lives(30))),
        proven("scope"),
    ),
    Attempt(
        "a token of another use", "a call's as an outside one", lambda f: f.call(f.token(use="external")),
        proven("details"),
    ),
    Attempt(
        "a token of another use", "an outside one's as a call",
        lambda f: f.call(f.external(use="call")), proven("details"),
    ),
]  # fmt: skip
OUTSIDE = [
    right("an outside token beyond its bounds", "the reading one", lambda f: f.call(f.external())),
    *(
        Attempt(
            "an outside token beyond its bounds", f"reads and calls {name}", lambda f,
            name=name: f.call(f.external(), name),
            needs(SCOPES[name]),
        )
        for name in CALLS if SCOPES[name] not in {"orders:read", "returns:read"}
    ),
    *(
        Attempt(
            "an outside token beyond its bounds", f"reads for {name}", lambda f, d=d: f.call(f.external(**d)), answer,
        )
        for name, d, answer in (
            ("nobody", {"details": {"customer": DROP}}, CLAIMS),
            ("another customer", {"details": {"customer": "C-2"}}, told("not_found")),
            ("another tenant", {"tenant_id": "other"}, told("not_found")),
            ("an order that it names", {"details": {"resource": "A-2"}}, told("token_for_other_resource")),
            ("a tool that it names", {"details": {"tool": "get_return"}}, told("token_for_other_tool")),
            ("a digest", {"details": {"arguments_sha256": "a" * 64}}, proven("details")),
            ("an approval", {"details": {"approval": "a.b.c", "approved_version": 9}}, proven("details")),
        )
    ),
    *(
        Attempt(
            "an outside token beyond its bounds", f"writes with {name}",
            lambda f, d=d: f.call(f.outside_write(**d), "create_return"), answer,
        )
        for name, d, answer in (
            ("no tool", {"details": {"tool": DROP}}, proven("details")),
            ("no order", {"details": {"resource": DROP}}, proven("details")),
            ("no key", {"details": {"idempotency_key": DROP}}, proven("details")),
            ("a reading tool's name", {"details": {"tool": "get_return"}}, proven("details")),
            ("no tool's name", {"details": {"tool": "no_such_tool"}}, proven("details")),
            ("a second scope", {"scope": "returns:write orders:read"}, proven("details")),
            ("another write's scope", {"scope": "notices:write"}, proven("details")),
            ("another tool's name", {"details": {"tool": "cancel_return"}}, told("token_for_other_tool")),
            ("another order", {"details": {"resource": "A-2"}}, told("token_for_other_resource")),
            ("another customer", {"details": {"customer": "C-2"}}, told("not_found")),
        )
    ),
    right(
        "an outside token beyond its bounds", "the writing one", lambda f: f.call(f.outside_write(), "create_return"),
    ),
]  # fmt: skip


def _after(*steps: Callable[[Forge], Wire]) -> Callable[[Stand, Forge], Any]:
    """These calls were carried out before."""

    @contextmanager
    def within(stand: Stand, forge: Forge) -> Iterator[None]:
        for step in steps:
            stand.passes(step(forge))
        yield

    return within


def _keyed(key: str, **details: Any) -> Callable[[Forge], Wire]:
    return lambda f: returning(f, idempotency_key=f"{f.mark}:{key}", **details)


def _by_partner(forge: Forge, key: str) -> Wire:
    details = {"idempotency_key": f"{forge.mark}:{key}"}
    return forge.call(forge.token(forge.keys.partner, tool="create_return", details=details), "create_return")


def _quantity(forge: Forge, quantity: int, jti: str) -> Wire:
    given = {**ONE, "lines": [{"line_id": "L1", "quantity": quantity}]}
    key = {"idempotency_key": f"{forge.mark}:k"}
    return forge.call(forge.token(tool="create_return", arguments=given, details=key, jti=jti), "create_return", given)


def _other_tool(forge: Forge) -> Wire:
    key = {"idempotency_key": f"{forge.mark}:k"}
    return forge.call(forge.token(tool="cancel_return", details=key, jti=f"{forge.mark}-2"), "cancel_return")


def _other_order(forge: Forge) -> Wire:
    given, key = {**ONE, "order_id": "A-2"}, {"idempotency_key": f"{forge.mark}:k"}
    token = forge.token(tool="create_return", arguments=given, details=key, jti=f"{forge.mark}-2")
    return forge.call(token, "create_return", given)


def _quantity_of_a_new_key(forge: Forge) -> Wire:
    given = {**ONE, "lines": [{"line_id": "L1", "quantity": 2}]}
    return forge.call(forge.token(tool="create_return", arguments=given), "create_return", given)


USED = [
    right_write("a token that was used"),
    right(
        "a token that was used", "the same call again, by the next attempt's token",
        lambda f: _keyed("k", attempt=2, jti=f"{f.mark}-2")(f), within=_after(_keyed("k")),
    ),
    right(  # an id is its issuer's: no partner spends another's tokens by naming them
        "a token that was used", "another issuer's, of the same id", lambda f: _by_partner(f, "other"),
        within=_after(_keyed("k")),
    ),
    *(
        Attempt("a token that was used", name, wire, told("token_used"), within=_after(_keyed("k")))
        for name, wire in (
            ("the same", _keyed("k")),
            ("for another key", _keyed("other")),
            ("for another attempt", _keyed("k", attempt=2)),
            ("for another key and attempt", _keyed("other", attempt=2)),
            ("by another clerk", _keyed("other", sub="clerk-2")),
            ("for another task", _keyed("other", task_id="task-2")),
            ("for another quantity", _quantity_of_a_new_key),
        )
    ),
    *(
        Attempt(
            "a token that was used", name, wire, told("key_reused"), within=_after(_keyed("k")),
        )
        for name, wire in (
            ("its key, for another quantity", lambda f: _quantity(f, 2, f"{f.mark}-2")),
            ("its key, for another tool", _other_tool),
            ("its key, for another order", _other_order),
            ("its key, by its own token", lambda f: _quantity(f, 3, f.mark)),
        )
    ),
]  # fmt: skip


_TASK = "the token of another task"
_UNDER_THE_KEY = ("create_return", "cancel_return", "find_return")


def _rewritten(name: str, era: str) -> Callable[[Forge], Wire]:
    """A genuine token of task-1 that says task-2 under its old signature."""

    def wire(forge: Forge) -> Wire:
        header, _, signature = forge.token(tool=name).split(".")
        other = forge.token(tool=name, task_id="task-2").split(".")[1]
        return forge.call(f"{header}.{other}.{signature}", name, era=era)

    return wire


def _of_task_2(name: str, era: str, arguments: Any = None) -> Callable[[Forge], Wire]:
    """A genuine token of task-2 under the key by which task-1 made its return."""

    def wire(forge: Forge) -> Wire:
        claims = {"details": {"idempotency_key": f"{forge.mark}:k"}, "jti": f"{forge.mark}-2", "task_id": "task-2"}
        return forge.call(forge.token(tool=name, arguments=arguments, **claims), name, arguments, era=era)

    return wire


TASK = [
    *(Attempt(_TASK, f"{name}, rewritten, in {era}", _rewritten(name, era), UNPROVEN)
      for name in _UNDER_THE_KEY for era in (MODERN, LEGACY)),
    *(
        Attempt(
            _TASK, f"{name} under a key of the first's, {what}, in {era}", _of_task_2(name, era, arguments),
            replace(told("key_reused"), about=era), within=_after(_keyed("k")),
        )
        for era in (MODERN, LEGACY)
        for name, what, arguments in (
            ("create_return", "for another quantity", {**ONE, "lines": [{"line_id": "L1", "quantity": 2}]}),
            ("cancel_return", "for a return that there is not", None),
        )
    ),
    # whose key it is no server can tell: the same call is answered again and not done again, whichever task asks
    *(
        right(_TASK, f"{name} under a key of the first's, in {era}", _of_task_2(name, era), within=_after(_keyed("k")))
        for name in ("create_return", "find_return") for era in (MODERN, LEGACY)
    ),
]  # fmt: skip


def _closing(forge: Forge, attempt: int) -> Wire:
    details = {"idempotency_key": f"{forge.mark}:k", "attempt": attempt}
    return forge.call(forge.token(tool="find_return", details=details, jti=f"{forge.mark}-look"), "find_return")


ATTEMPT = [
    right(
        "the token of an earlier attempt", "the next attempt", _keyed("k", attempt=4),
        within=_after(lambda f: _closing(f, 3)),
    ),
    *(
        Attempt(
            "the token of an earlier attempt", f"{attempt} of {closed}", _keyed("k", attempt=attempt),
            told("attempt_superseded"), within=_after(lambda f, closed=closed: _closing(f, closed)),
        )
        for closed in (1, 2, 3, 1000)
        for attempt in sorted({1, closed})
    ),
]  # fmt: skip


def _said(forge: Forge, change: Callable[[str], str | bytes], **more: Any) -> Wire:
    return forge.call(forge.token(tool="create_return"), "create_return", body=change, **more)


_BATCH = Answer(400, "invalid_request", about="batch")
_PARSE = Answer(400, "invalid_request", about="twice")
_TWO_WORDS = '"name": "create_return"'
SMUGGLED = [
    right_write("a call beside the call"),
    *(
        Attempt("a call beside the call", name, lambda f, change=change: _said(f, change), answer)
        for name, change, answer in (
            ("a batch of one", lambda text: f"[{text}]", _BATCH),
            ("a batch of two", lambda text: f"[{text}, {text}]", _BATCH),
            ("an empty batch", lambda _text: "[]", _BATCH),
            ("two tools", lambda text: text.replace(_TWO_WORDS, f'"name": "get_order", {_TWO_WORDS}'), _PARSE),
            ("two arguments", lambda text: text.replace('"arguments": ', '"arguments": {}, "arguments": '), _PARSE),
            ("two methods", lambda text: text.replace('"method": ', '"method": "ping", "method": '), _PARSE),
            ("two orders", lambda text: text.replace('"order_id": ', '"order_id": "A-2", "order_id": '), _PARSE),
        )
    ),
    *(
        Attempt(
            "a call beside the call", name,
            lambda f, headers=headers: f.call(f.token(tool="create_return"), "create_return", headers=headers),
            Answer(400, about=name, logged="invalid_request")  # in the protocol's own words,
        )
        for name, headers in (
            ("another tool in its header", {"Mcp-Name": "get_order"}),
            ("another method in its header", {"Mcp-Method": "tools/list"}),
            ("another revision in its header", {"MCP-Protocol-Version": LEGACY}),
        )
    ),
    *(
        Attempt(  # what stands in front routes by the one, and what stands behind reads the other
            "a call beside the call", f"a second {line.decode()}",
            lambda f, line=line: f.call(f.token(tool="create_return"), "create_return", more=(line,)),
            Answer(400, about=line.decode(), logged="invalid_request"),
        )
        for line in (b"Mcp-Name: get_order", b"Mcp-Method: tools/list", b"MCP-Protocol-Version: 2025-11-25")
    ),
]  # fmt: skip


def _in_session(era: str, **claims: Any) -> Callable[[Forge], Wire]:
    """Under the id of a session that somebody with more rights may have opened."""
    session = {"Mcp-Session-Id": "0123456789abcdef0123456789abcdef"}
    return lambda f: f.call(f.token(tool="create_return", **claims), "create_return", headers=session, era=era)


SESSIONS = [
    *(right("a session of another's", f"the right token in {era}", _in_session(era)) for era in (MODERN, LEGACY)),
    *(
        Attempt("a session of another's", f"{name} in {era}", _in_session(era, **claims), replace(answer, about=era))
        for era in (MODERN, LEGACY)
        for name, claims, answer in (
            ("a token that reads", {"scope": "orders:read returns:read"}, needs("returns:write")),
            ("another order's token", {"details": {"resource": "A-2"}}, told("token_for_other_resource")),
            ("an expired token", {"iat": 1, "nbf": 1, "exp": 2}, proven("expired")),
        )
    ),
]

ATTEMPTS: list[Attempt] = [*USE, *OUTSIDE, *USED, *TASK, *ATTEMPT, *SMUGGLED, *SESSIONS]
