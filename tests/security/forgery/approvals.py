"""Approvals that nobody gave for this: forged, transplanted, expired, spelt in another way, or in another place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from shared_contracts.approval import LIFETIME, Void, action_digest, sign
from shared_contracts.base import Money
from tests.security.forgery.attempt import Attempt, told
from tests.security.forgery.attempt import right as right_one
from tests.security.forgery.forge import VERSION, Forge
from tests.security.forgery.stand import Stand
from tests.support.tokens import b64, unb64
from tests.support.tool_approvals import Person

Text = Callable[[Forge], Any]


def signed(forge: Forge, person: Person | None = None, **differs: Any) -> str:
    who = forge.keys.tanaka if person is None else person
    return sign(forge.event(who, **differs), who.key, who.kid)


def right(kind: str) -> Attempt:
    return right_one(kind, "a person's yes to this very return", lambda f: f.approved(signed(f)))


def void(kind: str, why: Void, name: str, text: Text, **details: Any) -> Attempt:
    return Attempt(kind, name, lambda f: f.approved(text(f), **details), told("approval_refused", why.value))


def parts(forge: Forge) -> list[str]:
    return signed(forge).split(".")


def _resigned(forge: Forge, header: bytes, payload: bytes) -> str:
    """Signed by the right key over exactly these bytes."""
    signed = f"{b64(header)}.{b64(payload)}"
    return f"{signed}.{b64(forge.keys.tanaka.key.sign(signed.encode()))}"


def over(made: Callable[[Forge, bytes, bytes], tuple[bytes, bytes]]) -> Text:
    def text(forge: Forge) -> str:
        header, payload, _ = parts(forge)
        return _resigned(forge, *made(forge, unb64(header), unb64(payload)))

    return text


def _by(signer: Callable[[Forge], Any], kid: Callable[[Forge], str]) -> Text:
    return lambda f: sign(f.event(), signer(f), kid(f))


FORGED = [
    right("an approval that is forged"),
    *(
        void("an approval that is forged", why, name, text)
        for name, why, text in (
            ("by a stranger", Void.BAD_SIGNATURE, _by(lambda f: f.keys.stranger.private, lambda f: f.keys.tanaka.kid)),
            ("by the host", Void.UNKNOWN_KEY, _by(lambda f: f.keys.host.private, lambda f: f.keys.host.kid)),
            ("by the host, in the approver's name", Void.BAD_SIGNATURE,
             _by(lambda f: f.keys.host.private, lambda f: f.keys.tanaka.kid)),
            ("by a partner", Void.BAD_SIGNATURE, _by(lambda f: f.keys.partner.private, lambda f: f.keys.tanaka.kid)),
            ("by another approver, in this one's name", Void.OTHER_KEY,
             _by(lambda f: f.keys.suzuki.key, lambda f: f.keys.suzuki.kid)),
            ("by another approver, under this one's key", Void.BAD_SIGNATURE,
             _by(lambda f: f.keys.suzuki.key, lambda f: f.keys.tanaka.kid)),
            ("under another approver's key", Void.BAD_SIGNATURE,
             _by(lambda f: f.keys.tanaka.key, lambda f: f.keys.suzuki.kid)),
            ("by a revoked approver", Void.UNKNOWN_KEY, lambda f: signed(f, f.keys.gone)),
            ("by a person nobody trusts", Void.UNKNOWN_KEY, lambda f: signed(f, Person.named("sato"))),
            ("zeros for a signature", Void.BAD_SIGNATURE, lambda f: ".".join([*parts(f)[:2], b64(bytes(64))])),
            ("half a signature", Void.BAD_SIGNATURE, lambda f: ".".join([*parts(f)[:2], parts(f)[2][:40]])),
            ("no signature", Void.BAD_SIGNATURE, lambda f: ".".join([*parts(f)[:2], ""])),
            ("the signature of another event", Void.BAD_SIGNATURE,
             lambda f: ".".join([*parts(f)[:2], signed(f, event_id="other").split(".")[2]])),
            ("the payload of another event", Void.BAD_SIGNATURE,
             lambda f: ".".join([parts(f)[0], signed(f, decision="deny").split(".")[1], parts(f)[2]])),
            ("a task token", Void.MALFORMED, lambda f: f.token()),
            ("a word", Void.MALFORMED, lambda _f: "approved"),
            ("a NUL", Void.MALFORMED, lambda _f: "\x00"),
            ("a percent sign", Void.MALFORMED, lambda _f: "%00"),
            ("nulls", Void.MALFORMED, lambda _f: "bnVsbA.bnVsbA.bnVsbA"),
            ("lists", Void.MALFORMED, lambda _f: "W10.W10.W10"),
            ("no key's name", Void.MALFORMED, lambda _f: "eyJraWQiOltdfQ.e30.AAAA"),
            ("a NUL for a key's name", Void.MALFORMED, lambda _f: "eyJraWQiOiJcdTAwMDAifQ.e30.AAAA"),
            ("no algorithm", Void.MALFORMED, lambda _f: "eyJhbGciOiJub25lIn0.e30."),
            ("two dots", Void.MALFORMED, lambda _f: ".."),
            ("many dots", Void.MALFORMED, lambda _f: ".".join("." * 9)),
            ("in Japanese", Void.MALFORMED, lambda _f: "承認"),
            ("header and payload exchanged", Void.MALFORMED, lambda f: ".".join(parts(f)[at] for at in (1, 0, 2))),
        )
    ),
]  # fmt: skip

_OTHER: list[tuple[str, Void, dict[str, Any]]] = [
    ("another task", Void.OTHER_WORKFLOW, {"workflow_id": "task-2"}),
    ("a task of other letters", Void.OTHER_WORKFLOW, {"workflow_id": "TASK-1"}),
    ("a longer task", Void.OTHER_WORKFLOW, {"workflow_id": "task-12"}),
    ("the version before", Void.OTHER_VERSION, {"version": VERSION - 1}),
    ("the version after", Void.OTHER_VERSION, {"version": VERSION + 1}),
    ("the first version", Void.OTHER_VERSION, {"version": 1}),
    ("another requester", Void.OTHER_REQUESTER, {"subject": "clerk-2"}),
    ("a requester of other letters", Void.OTHER_REQUESTER, {"subject": "CLERK-1"}),
    ("another tenant", Void.OTHER_TENANT, {"tenant_id": "other"}),
    ("another tool", Void.OTHER_TOOL, {"tool": "cancel_return"}),
    ("a tool of the same scope", Void.OTHER_TOOL, {"tool": "create_return2"}),
    ("another order", Void.OTHER_RESOURCE, {"resource": "A-1"}),
    ("no action at all", Void.OTHER_ACTION, {"action_digest": "0" * 64}),
    ("a no", Void.DENIED, {"decision": "deny"}),
]
_ACTIONS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "another amount": lambda a: {"amount": Money(amount=a.amount.amount - 1, currency=a.amount.currency)},
    "another currency": lambda a: {"amount": Money(amount=a.amount.amount, currency="USD")},
    "another destination": lambda _a: {"destination_ref": "address://elsewhere"},
    "another quantity": lambda a: {"arguments": {**a.arguments, "lines": [{"line_id": "L1", "quantity": 2}]}},
    "another reason": lambda a: {"arguments": {**a.arguments, "reason": "other"}},
    "another version of the order": lambda a: {"order_version": a.order_version + 1},
    "other rules": lambda _a: {"policy_version": "policy-v11"},
    "another contract": lambda _a: {"contract_version": "2"},
    "another tenant's": lambda _a: {"tenant_id": "other"},
    "another tool's": lambda _a: {"tool": "cancel_return"},
}


def _for_action(change: Callable[[Any], dict[str, Any]]) -> Text:
    def text(forge: Forge) -> str:
        action = forge.keys.action.model_copy(update=change(forge.keys.action))
        return signed(forge, action_digest=action_digest(action))

    return text


def _carried(why: Void, name: str, **token: Any) -> Attempt:
    return void("an approval of another's", why, name, signed, **token)


def _own(forge: Forge, subject: str = "tanaka") -> str:
    return signed(forge, subject=subject)


TRANSPLANTED = [
    right("an approval of another's"),
    *(
        void("an approval of another's", why, f"for {name}", lambda f, differs=differs: signed(f, **differs))
        for name, why, differs in _OTHER
    ),
    *(
        void("an approval of another's", Void.OTHER_ACTION, f"for {name}", _for_action(change))
        for name, change in _ACTIONS.items()
    ),
    _carried(Void.OTHER_WORKFLOW, "carried by another task", task_id="task-2"),
    _carried(Void.OTHER_WORKFLOW, "carried by readiness", task_id="readiness"),
    _carried(Void.OTHER_REQUESTER, "carried by another clerk", sub="clerk-2"),
    _carried(Void.OTHER_VERSION, "carried for another version", approved_version=VERSION + 1),
    void("an approval of another's", Void.OWN_REQUEST, "the requester's own", _own, sub="tanaka"),
    void("an approval of another's", Void.OWN_REQUEST, "the requester's own, in capitals", lambda f: _own(f, "TANAKA"),
          sub="TANAKA"),
]  # fmt: skip


def _used(stand: Stand, forge: Forge, **details: Any) -> None:
    stand.passes(forge.approved(signed(forge), jti=f"{forge.mark}-first", **details))


def _already(**details: Any) -> Callable[[Stand, Forge], Any]:
    @contextmanager
    def within(stand: Stand, forge: Forge) -> Iterator[None]:
        _used(stand, forge, **details)
        yield

    return within


USED = [
    right("an approval that was used"),
    *(
        Attempt(
            "an approval that was used", name,
            lambda f, key=key, more=more: f.approved(signed(f), idempotency_key=f"{f.mark}:{key}", **more),
            told("approval_refused", Void.USED.value), within=_already(),
        )
        for name, key, more in (
            ("for another key", "other", {}),
            ("for another key and attempt", "other", {"attempt": 2}),
            ("for a key of other letters", "K", {}),
        )
    ),
]  # fmt: skip


def _times(asked: float, decided: float, ends: float) -> Text:
    """Seconds from this moment."""

    def text(forge: Forge) -> str:
        now = forge.instant
        at = {"requested_at": asked, "decided_at": decided, "expires_at": ends}
        return signed(forge, **{name: now + timedelta(seconds=seconds) for name, seconds in at.items()})

    return text


_DAY = LIFETIME.total_seconds()
EXPIRED = [
    right("an approval out of its time"),
    right_one(
        "an approval out of its time", "in its last minute",
        lambda f: f.approved(_times(60 - _DAY, 90 - _DAY, 60)(f)),
    ),
    right_one("an approval out of its time", "whose clock is a little ahead", lambda f: f.approved(_times(-60, 3,
    600)(f))),
    *(
        void("an approval out of its time", why, name, _times(asked, decided, ends))
        for name, why, asked, decided, ends in (
            ("ended now", Void.EXPIRED, -3_600, -3_500, 0),
            ("ended a second ago", Void.EXPIRED, -3_600, -3_500, -1),
            ("ended long ago", Void.EXPIRED, -9 * _DAY, -9 * _DAY, -8 * _DAY),
            ("ended before it was given", Void.EXPIRED, -3_600, -60, -120),
            ("good for a second too long", Void.EXPIRED, -60, -30, _DAY - 59),
            ("good for ever", Void.EXPIRED, -60, -30, 3_000 * _DAY),
            ("given in a while", Void.FROM_THE_FUTURE, -60, 60, 600),
            ("given tomorrow", Void.FROM_THE_FUTURE, -60, _DAY, _DAY - 60),
            ("given before it was asked for", Void.FROM_THE_FUTURE, -60, -61, 600),
        )
    ),
]  # fmt: skip

ATTEMPTS: list[Attempt] = [*FORGED, *TRANSPLANTED, *USED, *EXPIRED]
