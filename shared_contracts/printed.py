"""Text as it may stand on a terminal or in a document that a person opens.

Invariant: nothing that came from outside moves a cursor, paints or turns the direction of letters; and an amount is
written in whole units only where it is known how many of the smallest one make up a whole.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared_contracts.base import Money

_BEYOND = re.compile(r"[^\n -~]")
_DIGITS = {  # how many stand behind the point, by ISO 4217
    currency: digits
    for digits, currencies in (
        (0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"),
        (2, "AED AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF IDR ILS INR MXN MYR NOK NZD PHP PLN SAR SEK SGD THB TRY"),
        (2, "TWD USD ZAR"),
        (3, "BHD IQD JOD KWD LYD OMR TND"),
    )
    for currency in currencies.split()
}


def plain(value: object) -> str:
    """Give text without control characters, whoever wrote it."""
    return "".join(letter if letter.isprintable() else "�" for letter in str(value))


def money(of: Money) -> str:
    """Write an amount as people do, `549.94 USD`; of a currency that is not known here, in its smallest unit."""
    digits = _DIGITS.get(of.currency)
    if digits is None:
        return f"{of.amount:,} {of.currency} (in its smallest unit)"
    whole, part = divmod(of.amount, 10**digits)
    return f"{whole:,}{f'.{part:0{digits}}' if digits else ''} {of.currency}"


def json_text(value: Any) -> str:
    """Write one JSON value; letters that are not to be seen stand there as escapes, which mean the same."""
    return escaped(json.dumps(value, ensure_ascii=False, indent=2))


def escaped(text: str) -> str:
    """Give JSON text with those letters as escapes."""
    return text if text.isprintable() else _BEYOND.sub(_seen, text)


def _seen(found: re.Match[str]) -> str:
    letter = found[0]
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]
