"""Who calls: any text in, a verified Caller or a reason out; it never raises.

Invariant: every claim is there, of its exact type, and right, or the token is refused; the server's own caps hold
whatever the token says. What a call needs in its details (architecture: one token, one call) is needed here.
What can change between two uses of one token (the keys, the time) is asked at each of them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from pydantic import ValidationError

from shared_contracts.contract import FROM_TOKEN
from shared_contracts.strict_json import NotJsonError, strict_json
from shared_contracts.task_token import (
    LEEWAY_SECONDS,
    LIFETIME_SECONDS_MAX,
    TOKEN_TYPE,
    CallDetails,
    TaskClaims,
    Use,
)
from shared_contracts.tools import TOOLS
from tool_server.call import Caller
from tool_server.jwk import TrustedKey
from tool_server.jws import Reason, read_signed
from tool_server.keys import Keyring, Trust, TrustedIssuer
from tool_server.seen import Seen, digest_of

READINESS_TASK = "readiness"
_SCOPES = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*")  # RFC 6749 §3.3
_WRITES = ":write"


class Verifier:
    """Verifies tokens for one resource against the keys that are trusted at this moment.

    `clock` gives seconds since the epoch: signing and checking use the processes' clocks, with a small leeway.
    """

    def __init__(self, keyring: Keyring, resource: str, clock: Callable[[], float] = time.time) -> None:
        self._keyring, self._resource, self._clock = keyring, resource, clock
        self._seen = Seen(keyring.trust())

    def verify(self, token: str) -> Caller | Reason:
        """Give the caller, or why there is none."""
        trust, now = self._keyring.trust(), self._clock()
        if trust.problem is not None:
            return Reason.KEYS_UNUSABLE
        self._seen.under(trust, now)
        digest = digest_of(token)
        seen = self._seen.find(digest)
        found = self._first(token, trust, now) if seen is None else _again(seen, trust.keys[seen.kid], now)
        if isinstance(found, Caller):
            self._seen.keep(digest, found)
        elif seen is not None:
            self._seen.drop(digest)
        return found

    def _first(self, token: str, trust: Trust, now: float) -> Caller | Reason:
        signed = read_signed(token, trust.keys)
        if isinstance(signed, Reason):
            return signed
        if _ended(signed.key, now):
            return Reason.UNKNOWN_KEY
        if signed.typ != TOKEN_TYPE:
            return Reason.TYPE
        try:
            strict_json(signed.payload)  # a claim that is given twice would mean one thing here and another elsewhere
            claims = TaskClaims.model_validate_json(signed.payload)
        except (NotJsonError, ValidationError):
            return Reason.CLAIMS
        fault = self._fault(claims, trust.issuers[signed.key.issuer], now)
        if fault is not None:
            return fault
        return Caller(claims=claims, kid=signed.key.kid, scopes=frozenset(claims.scope.split()))

    def _fault(self, claims: TaskClaims, issuer: TrustedIssuer, now: float) -> Reason | None:
        if claims.iss != issuer.issuer:
            return Reason.ISSUER
        if not issuer.speaks_for(claims.tenant_id):
            return Reason.TENANT
        if claims.aud != self._resource:
            return Reason.AUDIENCE
        fault = _time_fault(claims, now)
        return _use_fault(claims) if fault is None else fault


def _again(caller: Caller, key: TrustedKey, now: float) -> Caller | Reason:
    """Judge a token that was right before under the same keys: time is all that has changed since."""
    if _ended(key, now):
        return Reason.UNKNOWN_KEY
    fault = _time_fault(caller.claims, now)
    return caller if fault is None else fault


def _ended(key: TrustedKey, now: float) -> bool:
    """Tell whether a key's own end has come, whatever its tokens say of theirs; no leeway, its owner chose it."""
    return key.ends is not None and key.ends <= now


def _time_fault(claims: TaskClaims, now: float) -> Reason | None:
    if not 0 < claims.exp - claims.iat <= LIFETIME_SECONDS_MAX[claims.use]:
        return Reason.LIFETIME
    if max(claims.iat, claims.nbf) > now + LEEWAY_SECONDS:
        return Reason.NOT_YET
    if claims.exp <= now - LEEWAY_SECONDS:
        return Reason.EXPIRED
    return None


def _use_fault(claims: TaskClaims) -> Reason | None:
    """Tell what a token of this use lacks, or has too much."""
    details = claims.authorization_details
    if claims.use is Use.PROBE:
        if claims.scope != "":
            return Reason.SCOPE
        return None if details == () and claims.task_id == READINESS_TASK else Reason.DETAILS
    if _SCOPES.fullmatch(claims.scope) is None:
        return Reason.SCOPE
    if len(details) != 1:
        return Reason.DETAILS
    enough = _enough_for_call if claims.use is Use.CALL else _enough_for_external
    return None if enough(details[0], claims.scope.split()) else Reason.DETAILS


def _enough_for_call(details: CallDetails, _scopes: list[str]) -> bool:
    needed = (details.tool, details.resource, details.arguments_sha256, details.attempt)
    if any(value is None for value in needed) or (details.approval is None) != (details.approved_version is None):
        return False
    tool = TOOLS.get(details.tool) if details.tool is not None else None  # an unknown one is refused when called
    keyed = tool is not None and tool.idempotency_key == FROM_TOKEN
    approvable = tool is not None and tool.approval_required_when != ""
    return (details.idempotency_key is not None or not keyed) and (details.approval is None or approvable)


def _enough_for_external(details: CallDetails, scopes: list[str]) -> bool:
    """Reads by default; a write only by name, with one tool, one resource and one key, and with no other scope.

    Never an approval: what a person approved is a case of the host's, and an outside caller has none.
    """
    if any(value is not None for value in (details.arguments_sha256, details.approval, details.approved_version)):
        return False
    if not any(scope.endswith(_WRITES) for scope in scopes):
        return True
    tool = TOOLS.get(details.tool) if details.tool is not None else None
    named = tool is not None and tool.writes and scopes == [tool.scope.value]
    return named and details.resource is not None and details.idempotency_key is not None
