"""An approval is worth what its bytes, its key and its moment are worth; anything else about it makes it void."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shared_contracts.approval import (
    TYPE,
    Action,
    ApprovalEvent,
    Approver,
    Request,
    Void,
    VoidError,
    action_digest,
    held_against,
    opened,
    sign,
)
from shared_contracts.base import Money
from shared_contracts.digest import canonical_json

KEY, OTHER_KEY = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
ASKED = datetime(2026, 7, 30, 9, 0, tzinfo=UTC)
YEN = Money(amount=60_000, currency="JPY")
ACTION: dict[str, Any] = {
    "tenant_id": "acme-jp", "resource": "A-1", "tool": "create_return", "contract_version": "1",
    "arguments": {"order_id": "A-1", "lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind"},
    "amount": YEN, "destination_ref": "address://acme-jp/C-1@1", "order_version": 1, "policy_version": "policy-v12",
}  # fmt: skip
DIGEST = action_digest(Action(**ACTION))
REQUEST = Request(
    workflow_id="w-1", version=9, tenant_id="acme-jp", subject="desk@acme-jp", tool="create_return", resource="A-1",
    action_digest=DIGEST, amount=YEN,
)  # fmt: skip
TANAKA = Approver(
    name="tanaka", tenant_id="acme-jp", limit=Money(amount=500_000, currency="JPY"), substitutes=("suzuki",),
    substitutes_after_seconds=3600,
)  # fmt: skip
SUZUKI = Approver(
    name="suzuki", tenant_id="acme-jp", limit=Money(amount=2_000_000, currency="JPY"), substitutes=(),
    substitutes_after_seconds=0,
)  # fmt: skip
APPROVERS = (TANAKA, SUZUKI)
NOW = ASKED + timedelta(minutes=10)


def event(**differs: Any) -> ApprovalEvent:
    plain = {
        "event_id": "e-1", "workflow_id": "w-1", "version": 9, "tenant_id": "acme-jp", "subject": "desk@acme-jp",
        "tool": "create_return", "resource": "A-1", "action_digest": DIGEST, "decision": "approve", "reason": "",
        "approver": "tanaka", "requested_at": ASKED, "decided_at": ASKED + timedelta(minutes=5),
        "expires_at": ASKED + timedelta(hours=24),
    }  # fmt: skip
    return ApprovalEvent(**(plain | differs))


def key_of(kid: str) -> Any:
    return {"k-tanaka": ("tanaka", KEY.public_key())}.get(kid)


def void(text: str) -> Void:
    with pytest.raises(VoidError) as caught:
        opened(text, key_of)
    return caught.value.why


def test_what_was_signed_is_what_is_read():
    assert opened(sign(event(), KEY, "k-tanaka"), key_of) == event()
    assert held_against(event(), REQUEST, APPROVERS, NOW) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (sign(event(), KEY, "k-nobody"), Void.UNKNOWN_KEY),
        (sign(event(), OTHER_KEY, "k-tanaka"), Void.BAD_SIGNATURE),
        (sign(event(approver="suzuki"), KEY, "k-tanaka"), Void.OTHER_KEY),
        ("", Void.MALFORMED),
        ("a.b", Void.MALFORMED),
        ("承.認.可", Void.MALFORMED),
        ("a" * 9_000, Void.MALFORMED),
    ],
    ids=["unknown key", "other signature", "another's key", "empty", "two parts", "no ASCII", "far too long"],
)
def test_a_forged_event_is_void(text, why):
    assert void(text) is why


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def signed(header: bytes, payload: bytes) -> str:
    text = f"{encoded(header)}.{encoded(payload)}"
    return f"{text}.{encoded(KEY.sign(text.encode()))}"


GOOD_HEADER = canonical_json({"alg": "EdDSA", "kid": "k-tanaka", "typ": TYPE})
GOOD = json.loads(base64.urlsafe_b64decode(sign(event(), KEY, "k-tanaka").split(".")[1] + "=="))


@pytest.mark.parametrize(
    ("header", "payload"),
    [
        (json.dumps({"typ": TYPE, "kid": "k-tanaka", "alg": "EdDSA"}).encode(), canonical_json(GOOD)),
        (canonical_json({"alg": "none", "kid": "k-tanaka", "typ": TYPE}), canonical_json(GOOD)),
        (canonical_json({"alg": "EdDSA", "kid": "k-tanaka", "typ": "at+jwt"}), canonical_json(GOOD)),
        (canonical_json({"alg": "EdDSA", "kid": "k-tanaka", "typ": TYPE, "jwk": {}}), canonical_json(GOOD)),
        (GOOD_HEADER, json.dumps(GOOD).encode()),
        (GOOD_HEADER, canonical_json(GOOD).replace(b'"decision":"approve"', b'"decision":"deny","decision":"approve"')),
        (GOOD_HEADER, canonical_json({**GOOD, "more": 1})),
        (GOOD_HEADER, canonical_json({k: v for k, v in GOOD.items() if k != "expires_at"})),
        (GOOD_HEADER, canonical_json({**GOOD, "decision": "Approve"})),
        (GOOD_HEADER, canonical_json({**GOOD, "version": "9"})),
        (GOOD_HEADER, b"[]"),
        (GOOD_HEADER, b"[" * 100_000),
        (b"\xff", canonical_json(GOOD)),
        (b'{"alg":"EdDSA","kid":"\\ud800","typ":"kessai-approval+jws"}', canonical_json(GOOD)),
        (b'{"alg":"EdDSA","kid":"k\\u0000","typ":"kessai-approval+jws"}', canonical_json(GOOD)),
    ],
    ids=[
        "header order", "no algorithm", "a task token's type", "a key of its own", "white space", "two decisions",
        "a member more", "a member less", "other spelling", "a number in a string", "a list", "deep", "no text",
        "half a character for a key", "a NUL in a key",
    ],
)  # fmt: skip
def test_an_event_that_is_spelt_otherwise_is_none_though_its_key_signed_it(header, payload):
    assert void(signed(header, payload)[:9_000]) is Void.MALFORMED


def test_a_base64_that_decodes_to_the_same_bytes_is_not_the_same_event():
    text = sign(event(), KEY, "k-tanaka")
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = text[:-1] + last[last.index(text[-1]) ^ 1]
    assert base64.urlsafe_b64decode(other.split(".")[2] + "==") == base64.urlsafe_b64decode(text.split(".")[2] + "==")
    assert void(other) is Void.MALFORMED
    assert void(text + "=") is Void.MALFORMED


@pytest.mark.parametrize(
    ("differs", "why"),
    [
        ({"tenant_id": "hoshi-jp"}, Void.OTHER_TENANT),
        ({"workflow_id": "w-2"}, Void.OTHER_WORKFLOW),
        ({"version": 8}, Void.OTHER_VERSION),
        ({"subject": "other@acme-jp"}, Void.OTHER_REQUESTER),
        ({"tool": "cancel_return"}, Void.OTHER_TOOL),
        ({"resource": "A-2"}, Void.OTHER_RESOURCE),
        ({"action_digest": "0" * 64}, Void.OTHER_ACTION),
        ({"decision": "deny"}, Void.DENIED),
        ({"decided_at": NOW + timedelta(seconds=6)}, Void.FROM_THE_FUTURE),
        ({"decided_at": ASKED - timedelta(seconds=1)}, Void.FROM_THE_FUTURE),
        ({"expires_at": NOW}, Void.EXPIRED),
        ({"expires_at": ASKED + timedelta(hours=24, seconds=1)}, Void.EXPIRED),
        ({"approver": "nobody"}, Void.NO_APPROVER),
    ],
)
def test_an_event_about_anything_else_permits_nothing(differs, why):
    assert held_against(event(**differs), REQUEST, APPROVERS, NOW) is why


@pytest.mark.parametrize("name", list(ACTION))
def test_every_value_of_an_action_is_in_its_digest(name):
    other: Any = {"amount": Money(amount=60_001, currency="JPY"), "order_version": 2, "arguments": {"order_id": "A-1"}}
    changed = {**ACTION, name: other.get(name, f"{ACTION[name]}2")}
    assert action_digest(Action(**changed)) != DIGEST


def test_the_order_of_keys_is_no_other_action():
    turned = dict(reversed(ACTION["arguments"].items()))
    assert action_digest(Action(**{**ACTION, "arguments": turned})) == DIGEST


@pytest.mark.parametrize(
    ("name", "amount", "minutes", "why"),
    [
        ("tanaka", 500_000, 5, None),
        ("tanaka", 500_001, 5, Void.OVER_LIMIT),
        ("suzuki", 500_001, 5, None),  # beyond what the first one may: nobody is stood in for
        ("suzuki", 500_000, 5, Void.OUT_OF_TURN),
        ("suzuki", 500_000, 60, None),
        ("suzuki", 2_000_001, 60, Void.OVER_LIMIT),
    ],
)
def test_a_substitute_decides_only_in_turn_and_nobody_beyond_the_limit(name, amount, minutes, why):
    asked = REQUEST.model_copy(update={"amount": Money(amount=amount, currency="JPY")})
    decided = event(approver=name, decided_at=ASKED + timedelta(minutes=minutes))
    assert held_against(decided, asked, APPROVERS, ASKED + timedelta(hours=2)) is why


def test_a_limit_in_another_currency_is_no_limit():
    dollars = REQUEST.model_copy(update={"amount": Money(amount=1, currency="USD")})
    assert held_against(event(), dollars, APPROVERS, NOW) is Void.OVER_LIMIT


@pytest.mark.parametrize("subject", ["tanaka", "Tanaka", "TANAKA"])
def test_nobody_approves_what_they_asked_for(subject):
    asked = REQUEST.model_copy(update={"subject": subject})
    assert held_against(event(subject=subject), asked, APPROVERS, NOW) is Void.OWN_REQUEST
