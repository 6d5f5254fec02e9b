"""The base of every model on the wire: closed, frozen, strict, and storable.

Invariant: nothing is coerced. A number in a string, an integer spelt 2.0, an unknown member or text that
PostgreSQL cannot store is refused before anything reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from shared_contracts.digest import storable_text

M = TypeVar("M", bound=BaseModel)


class Contract(BaseModel):
    """A closed wire model."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


_stored = AfterValidator(storable_text)
Label = Annotated[str, Field(min_length=1, max_length=80), _stored]
Line = Annotated[str, Field(min_length=1, max_length=200), _stored]
Prose = Annotated[str, Field(max_length=4000), _stored]

Identifier = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9#][A-Za-z0-9#._-]*$")]
Reference = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[a-z]+://[A-Za-z0-9#._/@:-]+$")]
Quantity = Annotated[int, Field(ge=1, le=10_000)]


_TIME = re.compile(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$")
YEARS = (2000, 2199)  # outside of them a date stands for none, and a time zone may push it out of the calendar


def _time_text(value: Any) -> Any:
    """Read a time; refuse what a lenient reader would take for one: a bare number, a date without its offset."""
    if not isinstance(value, str):
        return value
    if _TIME.match(value) is None:
        raise ValueError("write a time as RFC 3339 has it, such as 2026-07-30T10:00:00+09:00")
    return datetime.fromisoformat(value)


def within_years(moment: datetime) -> datetime:
    """Give the time if it lies in the years that mean something."""
    if not YEARS[0] <= moment.year <= YEARS[1]:
        raise ValueError(f"the year must lie between {YEARS[0]} and {YEARS[1]}")
    return moment


Moment = Annotated[AwareDatetime, BeforeValidator(_time_text), AfterValidator(within_years)]


class Money(Contract):
    """An amount in integer minor units (yen, cents) with its ISO 4217 currency."""

    amount: Annotated[int, Field(ge=0, le=10**15)]
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]


def parse(model: type[M], value: Mapping[str, Any]) -> M:
    """Read a decoded JSON object into its model, in strict JSON mode; raises pydantic.ValidationError."""
    return model.model_validate_json(json.dumps(value))


def dump(model: BaseModel) -> dict[str, Any]:
    """Give the plain JSON object of a model."""
    return model.model_dump(mode="json")


def wire_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Derive the JSON Schema (2020-12) of a model as it stands on the wire."""
    schema = _untitled(model.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _untitled(node: Any) -> Any:
    """Drop pydantic's generated titles: they restate the member's name."""
    match node:
        case dict():
            generated = isinstance(node.get("title"), str)
            return {key: _untitled(item) for key, item in node.items() if not (key == "title" and generated)}
        case list():
            return [_untitled(item) for item in node]
        case _:
            return node
