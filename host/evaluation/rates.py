"""What things cost: the file that whoever evaluates gives, or the packaged one, whose rates are assumptions.

Invariant: a component that nobody has put a price on is found before a case is run; only a model may cost nothing.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from shared_contracts.base import parse
from shared_contracts.evaluation_cases import Refused
from shared_contracts.evaluation_report import CostRates
from shared_contracts.named_file import Unread, read_text
from shared_contracts.told import complaints

PACKAGED = Path(__file__).parents[1] / "data" / "rates.toml"
_PRICED = ("tool_call", "retry", "approver_minute", "minutes_per_decision", "compensation_call")


def read_rates(path: Path | None) -> CostRates | Refused:
    """Read a file, or the packaged one; refused with everything that is wrong with it."""
    file = PACKAGED if path is None else path
    text = read_text(file)
    if isinstance(text, Unread):
        return Refused((f"{file}: cannot be read: {text.why}",))
    try:
        document = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError is one, and so is an integer of too many digits
        return Refused((f"{file}: is no TOML: {error}",))
    except RecursionError:
        return Refused((f"{file}: is nested too deeply",))
    return _rates(file, document, "assumed" if path is None else "given")


def _rates(file: Path, document: dict[str, Any], basis: Literal["assumed", "given"]) -> CostRates | Refused:
    if "basis" in document:
        return Refused((f"{file}: basis is not yours to say; leave it out",))
    try:
        rates = parse(CostRates, {**document, "basis": basis})
    except ValidationError as error:
        return Refused(tuple(f"{file}: {said}" for said in complaints(error.errors(), "the file")))
    except (TypeError, ValueError):  # what is no JSON
        return Refused((f"{file}: it holds a date or a time, which is no price; write numbers",))
    free = [name for name in _PRICED if getattr(rates, name) == 0]
    if free:
        return Refused(tuple(f"{file}: {name} is 0, which is no price: nothing is done for nothing" for name in free))
    return rates
