"""Task tokens: one per call, worth that call alone, signed with the host's Ed25519 key.

Invariant: whatever is minted is a whole `TaskClaims` with the scope of exactly the tool it is for. The caller gives
the `jti` of a call, so that it stands in the record before the token exists; the token itself is stored nowhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.utils import base64url_decode

from host.engine.parts import Request, new_jti
from shared_contracts.contract import FROM_TOKEN
from shared_contracts.digest import digest
from shared_contracts.task_token import (
    ALGORITHM,
    LIFETIME_SECONDS_MAX,
    TOKEN_TYPE,
    CallDetails,
    Purpose,
    TaskClaims,
    Use,
)

CLIENT_ID = "kessai-host"
EXTERNAL_CLIENT = "external-host"
PROBE_TASK = "readiness"
_PURPOSES = {purpose.value: purpose for purpose in Purpose}  # a step's own call has none


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The key and the name under which its public half is published."""

    kid: str
    private: Ed25519PrivateKey

    @classmethod
    def from_jwk(cls, jwk: Mapping[str, Any]) -> SigningKey:
        """Of a private JWK (RFC 8037) that `host.stack.keys` has read and checked."""
        return cls(str(jwk["kid"]), Ed25519PrivateKey.from_private_bytes(base64url_decode(jwk["d"])))


@dataclass(frozen=True, slots=True)
class ExternalGrant:
    """What a token for an outside host is good for. `task_id` and `jti` stand in the record before it is minted."""

    jti: str
    task_id: str
    tenant_id: str
    principal: str
    customer: str
    scopes: frozenset[str]
    tool: str | None
    resource: str | None
    idempotency_key: str | None
    seconds: int


def _same(key: SigningKey) -> SigningKey:
    return key


class Minter:
    """Signs for one issuer and one audience, the tool server's canonical resource URI.

    `key` is a key, or what gives the one that is in force when a token is minted.
    """

    def __init__(
        self,
        key: SigningKey | Callable[[], SigningKey],
        issuer: str,
        audience: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._key: Callable[[], SigningKey] = partial(_same, key) if isinstance(key, SigningKey) else key
        self._issuer = issuer
        self._audience = audience
        self._clock = clock

    def call(self, request: Request) -> str:
        """Mint the token of one call; about 40 µs. A tool that takes its key from the token gets none without."""
        tool = request.tool
        if (tool.idempotency_key == FROM_TOKEN) != (request.idempotency_key is not None):
            raise ValueError(f"{tool.name}: a key is given exactly where the contract takes it from the token")
        details = CallDetails(
            type="kessai_call",
            tool=tool.name,
            resource=request.resource,
            customer=request.customer,
            arguments_sha256=digest(dict(request.arguments)),
            idempotency_key=request.idempotency_key,
            attempt=request.attempt,
            requested_at=request.requested_at,
            purpose=_PURPOSES.get(request.correlation.get("dev.kessai/purpose", "")),
            approval=request.approval,
            approved_version=request.approved_version,
        )
        task, scope = str(request.workflow_id), tool.scope.value
        return self._mint(Use.CALL, request.jti, task, request.tenant_id, request.subject, scope, (details,))

    def probe(self) -> str:
        """Mint a token that can negotiate and list, and call nothing."""
        return self._mint(Use.PROBE, new_jti(), PROBE_TASK, "kessai", "kessai-host", "", ())

    def external(self, grant: ExternalGrant) -> str:
        """Mint a token for an outside host: several calls for one customer, and no longer than the class lives."""
        details = CallDetails(
            type="kessai_call",
            tool=grant.tool,
            resource=grant.resource,
            customer=grant.customer,
            idempotency_key=grant.idempotency_key,
        )
        now = int(self._clock())
        claims = TaskClaims(
            iss=self._issuer, aud=self._audience, sub=grant.principal, client_id=EXTERNAL_CLIENT,
            tenant_id=grant.tenant_id, task_id=grant.task_id, scope=" ".join(sorted(grant.scopes)), iat=now, nbf=now,
            exp=now + min(grant.seconds, LIFETIME_SECONDS_MAX[Use.EXTERNAL]), jti=grant.jti, use=Use.EXTERNAL,
            authorization_details=(details,),
        )  # fmt: skip
        return mint(claims, self._key())

    def _mint(
        self, use: Use, jti: str, task: str, tenant: str, subject: str, scope: str, details: tuple[CallDetails, ...]
    ) -> str:
        now = int(self._clock())
        claims = TaskClaims(
            iss=self._issuer, aud=self._audience, sub=subject, client_id=CLIENT_ID, tenant_id=tenant, task_id=task,
            scope=scope, iat=now, nbf=now, exp=now + LIFETIME_SECONDS_MAX[use], jti=jti, use=use,
            authorization_details=details,
        )  # fmt: skip
        return mint(claims, self._key())


def mint(claims: TaskClaims, key: SigningKey) -> str:
    """Sign claims as an RFC 9068 access token. What does not apply is left out rather than null."""
    return jwt.encode(
        claims.model_dump(mode="json", exclude_none=True),
        key.private,
        algorithm=ALGORITHM,
        headers={"typ": TOKEN_TYPE, "kid": key.kid},
    )
