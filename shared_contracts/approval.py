"""A person's yes or no: what it is about, how it is signed, and when it is void. One copy for both sides; no I/O.

An approval is one signed event. It names one workflow at one version, one requester, one action by its digest, and
ends by itself. Host and tool server each verify it with keys and rights of their own, so that neither a model, nor a
customer, nor a worker that was taken over can say it. Invariant: only the exact bytes that the approver's key signed
are an event; whatever reads as the same but is spelt otherwise is none.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field, ValidationError

from shared_contracts.base import Contract, Identifier, Label, Line, Moment, Money, Reference, dump
from shared_contracts.digest import NotCanonicalError, canonical_json, digest

TYPE = "kessai-approval+jws"
EVENT_CHARACTERS_MAX = 4000
LIFETIME = timedelta(hours=24)  # from the request, whoever decides and whenever
LEEWAY = timedelta(seconds=5)  # the approver's clock against the database's

Name = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[a-z0-9][a-z0-9._@-]*$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Action(Contract):
    """What would be done, to the last value that may not change behind an approver's back."""

    tenant_id: Identifier
    resource: Identifier
    tool: Identifier
    contract_version: Label
    arguments: dict[str, Any]
    amount: Money
    destination_ref: Reference
    order_version: Annotated[int, Field(ge=1)]
    policy_version: Label


def action_digest(action: Action) -> str:
    """Name an action for its approval; the tool server computes it again from its own tables."""
    return digest(dump(action))


class ApprovalEvent(Contract):
    """What an approver signs. `version` is the workflow's while it waits, `subject` the requester."""

    event_id: Identifier
    workflow_id: Identifier
    version: Annotated[int, Field(ge=1)]
    tenant_id: Identifier
    subject: Line
    tool: Identifier
    resource: Identifier
    action_digest: Digest
    decision: Literal["approve", "deny"]
    reason: Annotated[str, Field(max_length=500)]  # whatever its characters, the event stays short enough
    approver: Name
    requested_at: Moment
    decided_at: Moment
    expires_at: Moment


class Approver(Contract):
    """A person who may say yes, up to an amount; who may stand in, by name, and once the request is how old."""

    name: Name
    tenant_id: Identifier
    limit: Money
    substitutes: tuple[Name, ...]
    substitutes_after_seconds: Annotated[int, Field(ge=0, le=86_400)]


class PublicKey(Contract):
    """An Ed25519 key as RFC 8037 writes it; `kid` is its RFC 7638 thumbprint."""

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    x: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]
    kid: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]


class TrustedApprover(Contract):
    """The public half of an approver: the file that an operator hands to the tool server. No secret is in it."""

    approver: Approver
    key: PublicKey


class Void(StrEnum):
    """Why an approval is worth nothing."""

    MALFORMED = "malformed"
    UNKNOWN_KEY = "unknown_key"
    BAD_SIGNATURE = "bad_signature"
    OTHER_KEY = "other_key"  # good, but not this approver's
    OTHER_TENANT = "other_tenant"
    OTHER_WORKFLOW = "other_workflow"
    OTHER_VERSION = "other_version"
    OTHER_REQUESTER = "other_requester"
    OTHER_TOOL = "other_tool"
    OTHER_RESOURCE = "other_resource"
    OTHER_ACTION = "other_action"
    DENIED = "denied"
    OWN_REQUEST = "own_request"
    NO_APPROVER = "no_approver"
    OVER_LIMIT = "over_limit"
    OUT_OF_TURN = "out_of_turn"
    FROM_THE_FUTURE = "from_the_future"
    EXPIRED = "expired"
    USED = "used"


class VoidError(Exception):
    """The approval is worth nothing; `why` is one of a closed set."""

    def __init__(self, why: Void) -> None:
        """Say why, in one word."""
        super().__init__(why.value)
        self.why = why


class Request(Contract):
    """What an approval has to be about, as the one who verifies knows it by itself."""

    workflow_id: Identifier
    version: Annotated[int, Field(ge=1)]
    tenant_id: Identifier
    subject: Line
    tool: Identifier
    resource: Identifier
    action_digest: Digest
    amount: Money


def jwk_of(key: Ed25519PublicKey) -> PublicKey:
    """Write a public key with its thumbprint, which is the key's id."""
    x = _encoded(key.public_bytes_raw())
    thumbprint = hashlib.sha256(canonical_json({"crv": "Ed25519", "kty": "OKP", "x": x})).digest()
    return PublicKey(kty="OKP", crv="Ed25519", x=x, kid=_encoded(thumbprint))


def public_key(x: str) -> Ed25519PublicKey:
    """Give the key of its 43 characters; raises ValueError."""
    return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(x + "="))


def sign(event: ApprovalEvent, key: Ed25519PrivateKey, kid: str) -> str:
    """Write the event as a compact JWS of canonical JSON."""
    signed = f"{_encoded(_header(kid))}.{_encoded(canonical_json(dump(event)))}"
    return f"{signed}.{_encoded(key.sign(signed.encode()))}"


def opened(text: str, key_of: Callable[[str], tuple[Name, Ed25519PublicKey] | None]) -> ApprovalEvent:
    """Read an event whose signature holds under a key that `key_of` knows as its approver's; raises VoidError."""
    parts = text.split(".")
    if len(text) > EVENT_CHARACTERS_MAX or not text.isascii() or len(parts) != 3:
        raise VoidError(Void.MALFORMED)
    header, payload, signature = (_decoded(part) for part in parts)
    kid = _kid(header)
    known = key_of(kid)
    if known is None:
        raise VoidError(Void.UNKNOWN_KEY)
    owner, key = known
    try:
        key.verify(signature, f"{parts[0]}.{parts[1]}".encode())
    except InvalidSignature as error:
        raise VoidError(Void.BAD_SIGNATURE) from error
    event = _event(payload)
    if event.approver != owner:
        raise VoidError(Void.OTHER_KEY)
    return event


def key_id(text: str) -> str:
    """Name the key that an event says it was signed with; raises VoidError."""
    return _kid(_decoded(text.split(".", 1)[0]))


def held_against(event: ApprovalEvent, request: Request, approvers: Iterable[Approver], now: datetime) -> Void | None:
    """Tell why this event does not permit what is asked, at this moment; None where it does."""
    facts = (
        (event.tenant_id == request.tenant_id, Void.OTHER_TENANT),
        (event.workflow_id == request.workflow_id, Void.OTHER_WORKFLOW),
        (event.version == request.version, Void.OTHER_VERSION),
        (event.subject == request.subject, Void.OTHER_REQUESTER),
        (event.tool == request.tool, Void.OTHER_TOOL),
        (event.resource == request.resource, Void.OTHER_RESOURCE),
        (event.action_digest == request.action_digest, Void.OTHER_ACTION),
        (event.decision == "approve", Void.DENIED),
        (event.decided_at <= now + LEEWAY and event.requested_at <= event.decided_at, Void.FROM_THE_FUTURE),
        (event.expires_at <= event.requested_at + LIFETIME and now < event.expires_at, Void.EXPIRED),
    )
    broken = next((why for holds, why in facts if not holds), None)
    return broken if broken is not None else right_to_decide(event, request.amount, approvers)


def right_to_decide(event: ApprovalEvent, amount: Money, approvers: Iterable[Approver]) -> Void | None:
    """Tell why this person may not decide this; the requester never may, a substitute only in turn."""
    if event.approver == event.subject.casefold():
        return Void.OWN_REQUEST
    ours = {one.name: one for one in approvers if one.tenant_id == event.tenant_id}
    person = ours.get(event.approver)
    if person is None:
        return Void.NO_APPROVER
    if not _within(person, amount):
        return Void.OVER_LIMIT
    waited = (event.decided_at - event.requested_at).total_seconds()
    first = [one for one in ours.values() if event.approver in one.substitutes and _within(one, amount)]
    return Void.OUT_OF_TURN if any(waited < one.substitutes_after_seconds for one in first) else None


def _within(person: Approver, amount: Money) -> bool:
    return person.limit.currency == amount.currency and amount.amount <= person.limit.amount


def _header(kid: str) -> bytes:
    return canonical_json({"alg": "EdDSA", "kid": kid, "typ": TYPE})


def _kid(header: bytes) -> str:
    """Give the key's id of a header that is spelt as ours are, and says nothing else."""
    kid = _json(header).get("kid")
    printable = isinstance(kid, str) and kid.isascii() and kid.isprintable()  # no other text has canonical bytes
    if not isinstance(kid, str) or not printable or header != _header(kid):
        raise VoidError(Void.MALFORMED)
    return kid


def _event(payload: bytes) -> ApprovalEvent:
    try:
        event = ApprovalEvent.model_validate_json(payload)
        canonical = canonical_json(dump(event)) == payload
    except (ValidationError, NotCanonicalError) as error:
        raise VoidError(Void.MALFORMED) from error
    if not canonical:
        raise VoidError(Void.MALFORMED)
    return event


def _json(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise VoidError(Void.MALFORMED) from error
    if not isinstance(value, dict):
        raise VoidError(Void.MALFORMED)
    return value


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _decoded(part: str) -> bytes:
    try:
        value = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise VoidError(Void.MALFORMED) from error
    if _encoded(value) != part:
        raise VoidError(Void.MALFORMED)
    return value
