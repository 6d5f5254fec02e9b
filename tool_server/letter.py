"""What a customer is told, in Japanese or English, as one finished mail.

Invariant: no text of ours or of the shop's data can become a header: values are set through
`email.message.EmailMessage`, which refuses line breaks, after control characters were taken out of names.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whom a notice goes to; `language` is `ja` or `en`."""

    email: str
    name: str
    language: str


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the return, as the customer knows it."""

    name: str
    quantity: int


@dataclass(frozen=True, slots=True)
class Letter:
    """One notice. `corrects` is the Message-ID of the notice that it corrects."""

    message_id: str
    sender: str
    recipient: Recipient
    order_id: str
    return_id: str
    cancelled: bool
    items: tuple[Item, ...]
    corrects: str | None
    written_at: datetime


_JA = {
    "subject": "返品受付のご案内 {return_id}",
    "subject_corrected": "【訂正】返品受付のご案内 {return_id}",
    "greeting": "{name} 様",
    "corrected": "先にお送りしたご案内を、次のとおり訂正いたします。",
    "number": "返品番号: {return_id}",
    "order": "ご注文番号: {order_id}",
    "item": "・{name} {quantity}点",
    "todo": "商品を梱包し、返品番号を書いた紙を同梱のうえ、ご返送ください。\n"
    "到着と商品の確認の後、返金の手続きをいたします。",
    "void": "この返品番号は取り消されました。商品は返送しないでください。",
    "reply": "このメールは自動で送信されています。",
}
_EN = {
    "subject": "Your return {return_id}",
    "subject_corrected": "Correction: your return {return_id}",
    "greeting": "Dear {name},",
    "corrected": "This corrects the notice that we sent you before.",
    "number": "Return number: {return_id}",
    "order": "Order: {order_id}",
    "item": "- {name} x {quantity}",
    "todo": "Please pack the goods, enclose a note with the return number and send them back.\n"
    "We refund you after they have arrived and were checked.",
    "void": "This return number has been cancelled. Please do not send the goods.",
    "reply": "This message was sent automatically.",
}
_WORDS = {"ja": _JA, "en": _EN}


def message_id(tenant: str, key: str, domain: str) -> str:
    """Derive the Message-ID from the key of the intention: sent again, it is the same message."""
    name = hashlib.sha256(f"{tenant}\n{key}".encode()).hexdigest()[:32]
    return f"<{name}@{domain}>"


def compose(letter: Letter) -> bytes:
    """Write the mail as it leaves, with CRLF line ends."""
    words = _WORDS[letter.recipient.language]
    values = {
        "return_id": letter.return_id,
        "order_id": letter.order_id,
        "name": printable(letter.recipient.name),
    }
    mail = EmailMessage(policy=policy.SMTP)
    mail["From"] = letter.sender
    mail["To"] = Address(values["name"], addr_spec=letter.recipient.email)
    mail["Subject"] = words["subject" if letter.corrects is None else "subject_corrected"].format(**values)
    mail["Date"] = format_datetime(letter.written_at)
    mail["Message-ID"] = letter.message_id
    if letter.corrects is not None:
        mail["In-Reply-To"] = letter.corrects
        mail["References"] = letter.corrects
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content("\n".join(_body(letter, words, values)) + "\n", cte="base64")
    mail["Content-Language"] = letter.recipient.language
    return mail.as_bytes()


def printable(text: str) -> str:
    """Give the text on one line, without control and format characters, which could reorder or break it.

    `=?` begins an encoded word, which a reader would decode again into whatever it hides; it is taken apart.
    """
    kept = "".join(" " if unicodedata.category(character).startswith("C") else character for character in text)
    return " ".join(kept.replace("=?", "= ?").split())


def _body(letter: Letter, words: dict[str, str], values: dict[str, str]) -> list[str]:
    return [
        words["greeting"].format(**values),
        "",
        *([words["corrected"], ""] if letter.corrects is not None else []),
        words["number"].format(**values),
        words["order"].format(**values),
        *(words["item"].format(name=printable(item.name), quantity=item.quantity) for item in letter.items),
        "",
        words["void" if letter.cancelled else "todo"],
        "",
        words["reply"],
    ]
