"""The claims of a task token (RFC 9068, RFC 9396), as both sides read them.

A token is worth one call: it names the tool, the resource, the customer, the digest of the arguments, the
attempt and the key of the business intention. What a model must not fill travels here and in no schema.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal
from unicodedata import is_normalized

from pydantic import AfterValidator, Field

from shared_contracts.approval import EVENT_CHARACTERS_MAX
from shared_contracts.base import Contract, Identifier, Moment

TOKEN_TYPE = "at+jwt"
ALGORITHM = "EdDSA"


class Use(StrEnum):
    """What a token is for."""

    CALL = "call"
    PROBE = "probe"
    EXTERNAL = "external"


# The server caps lifetimes whatever a token says, in seconds. A probe reads lists only; a call is one call.
LIFETIME_SECONDS_MAX: dict[Use, int] = {Use.CALL: 120, Use.PROBE: 30, Use.EXTERNAL: 900}
LEEWAY_SECONDS = 5  # clocks of two machines; sign and check use the process clock, all else the database's


class Purpose(StrEnum):
    """Why the engine itself calls, where no step does; the call log keeps it."""

    VERIFICATION = "verification"
    RECONCILIATION = "reconciliation"


def _one_spelling(text: str) -> str:
    if not text.isprintable() or (not text.isascii() and not is_normalized("NFC", text)):
        raise ValueError("a name is printable and in Unicode's normal form C")
    return text


# Who speaks to whom: compared letter by letter, and read by operators, so that no two look or compare alike.
Party = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_one_spelling)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Key = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[A-Za-z0-9:._-]+$")]


class CallDetails(Contract):
    """RFC 9396 authorization details of one call.

    `customer` bounds every query. `attempt` counts sends of one intention from 1; a look-up names the attempt that
    it closes. `requested_at` is when the customer asked, from the case; the return window uses it. `approval` is a
    signed event (`shared_contracts.approval`), `approved_version` the workflow's version that it is for, says the
    host.
    """

    type: Literal["kessai_call"]
    tool: Identifier | None = None
    resource: Identifier | None = None
    customer: Identifier
    arguments_sha256: Sha256 | None = None
    idempotency_key: Key | None = None
    attempt: Annotated[int, Field(ge=1, le=1000)] | None = None
    requested_at: Moment | None = None
    purpose: Purpose | None = None
    approval: Annotated[str, Field(min_length=1, max_length=EVENT_CHARACTERS_MAX)] | None = None
    approved_version: Annotated[int, Field(ge=1)] | None = None


class TaskClaims(Contract):
    """All claims of a task token; times are seconds since the epoch. An absent claim is a refused token."""

    iss: Party
    aud: Party
    sub: Party
    client_id: Party
    tenant_id: Identifier
    task_id: Identifier
    scope: Annotated[str, Field(max_length=400)]
    iat: Annotated[int, Field(ge=0, le=2**40)]
    nbf: Annotated[int, Field(ge=0, le=2**40)]
    exp: Annotated[int, Field(ge=0, le=2**40)]
    jti: Identifier
    use: Use
    authorization_details: Annotated[tuple[CallDetails, ...], Field(max_length=1)]
