"""The notice family on the wire: what was told to the customer, and whether it has left."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from shared_contracts.base import Contract, Identifier, Label, Reference

MessageId = Annotated[str, Field(min_length=3, max_length=200, pattern=r"^<[A-Za-z0-9._-]+@[A-Za-z0-9.-]+>$")]


class NoticeStatus(StrEnum):
    """`sent`: accepted by the mail server, or written to the Maildir. Only that is complete."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


class NoticeKind(StrEnum):
    """A correction is a new message that names the one it corrects; nothing sent is ever erased."""

    RETURN = "return"
    CORRECTION = "correction"


class SendReturnNotice(Contract):
    """Arguments of `send_return_notice`; recipient and language are the server's own data."""

    order_id: Identifier
    return_id: Identifier


class SendCorrectionNotice(Contract):
    """Arguments of `send_correction_notice`."""

    order_id: Identifier
    return_id: Identifier
    corrects: MessageId


class FindNotice(Contract):
    """Arguments of `find_notice`; the key that is looked up, and the attempt, travel in the token."""

    order_id: Identifier


class Notice(Contract):
    """One message; `destination_ref` names the recipient without telling the address."""

    message_id: MessageId
    order_id: Identifier
    return_id: Identifier
    kind: NoticeKind
    corrects: MessageId | None
    status: NoticeStatus
    channel: Label
    destination_ref: Reference
    sent_at: AwareDatetime | None
    evidence_ref: Reference


class NoticeFound(Contract):
    """Result of `find_notice`; where nothing was found, attempts up to `closed_through` can no longer act."""

    found: bool
    record: Notice | None
    closed_through: Annotated[int, Field(ge=0)]
    evidence_ref: Reference
