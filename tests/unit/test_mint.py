"""A task token is whole, short-lived, and worth one call."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from host.engine.parts import Request, new_id, new_jti
from host.tool_client.mint import Minter, SigningKey
from shared_contracts.digest import digest
from shared_contracts.task_token import LIFETIME_SECONDS_MAX, Purpose, TaskClaims, Use
from shared_contracts.tools import TOOLS

NOW = 1_785_337_200
ISSUER, AUDIENCE = "https://host.example", "http://tools.example:8801/mcp"
PRIVATE = Ed25519PrivateKey.generate()
KEY = SigningKey("key-1", PRIVATE)
READ = Request(
    jti=new_jti(), tenant_id="tenant-a", subject="agent-1", workflow_id=new_id(), tool=TOOLS["get_order"],
    customer="C-1", resource="A-1", arguments={"order_id": "A-1"}, idempotency_key=None, attempt=1,
    requested_at=datetime(2026, 7, 29, 15, tzinfo=UTC), timeout_seconds=1.0, correlation={}, approval=None,
    approved_version=None,
)  # fmt: skip
WRITE = replace(READ, tool=TOOLS["create_return"], idempotency_key="wf-1:create_return")


def _minter() -> Minter:
    return Minter(KEY, ISSUER, AUDIENCE, clock=lambda: NOW + 0.9)


def meant_for(request: Request, purpose: Purpose) -> Request:
    return replace(request, correlation={"dev.kessai/purpose": purpose.value})


def _payload(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))


def test_a_call_token_carries_exactly_the_claims_of_its_call() -> None:
    claims = TaskClaims.model_validate_json(json.dumps(_payload(_minter().call(WRITE))))
    (details,) = claims.authorization_details
    assert (claims.iss, claims.aud, claims.sub, claims.client_id) == (ISSUER, AUDIENCE, "agent-1", "kessai-host")
    assert (claims.tenant_id, claims.task_id, claims.jti) == ("tenant-a", str(WRITE.workflow_id), WRITE.jti)
    assert (claims.use, claims.scope) == (Use.CALL, "returns:write")
    assert (details.tool, details.resource, details.customer) == ("create_return", "A-1", "C-1")
    assert details.arguments_sha256 == digest({"order_id": "A-1"})
    assert details.idempotency_key == "wf-1:create_return"
    assert (details.attempt, details.requested_at, details.purpose) == (1, READ.requested_at, None)


def test_what_does_not_apply_is_left_out() -> None:
    (details,) = _payload(_minter().call(READ))["authorization_details"]
    assert "idempotency_key" not in details
    assert "purpose" not in details


def test_a_read_of_the_engines_own_says_what_it_is_for() -> None:
    (details,) = _payload(_minter().call(meant_for(READ, Purpose.VERIFICATION)))["authorization_details"]
    assert details["purpose"] == "verification"


def test_the_header_names_type_algorithm_and_key() -> None:
    assert jwt.get_unverified_header(_minter().call(READ)) == {"typ": "at+jwt", "alg": "EdDSA", "kid": "key-1"}


@pytest.mark.parametrize("use", [Use.CALL, Use.PROBE])
def test_a_token_lives_as_long_as_its_use_allows(use: Use) -> None:
    token = _minter().call(READ) if use is Use.CALL else _minter().probe()
    claims = _payload(token)
    assert (claims["use"], claims["iat"], claims["nbf"]) == (use.value, NOW, NOW)
    assert claims["exp"] - claims["iat"] == LIFETIME_SECONDS_MAX[use]


def test_a_probe_token_is_for_readiness_and_calls_nothing() -> None:
    claims = _payload(_minter().probe())
    assert (claims["task_id"], claims["scope"], claims["authorization_details"]) == ("readiness", "", [])


def test_the_signature_is_of_the_hosts_own_key() -> None:
    token = _minter().call(READ)
    options = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}
    public = PRIVATE.public_key()
    assert jwt.decode(token, public, algorithms=["EdDSA"], audience=AUDIENCE, issuer=ISSUER, options=options)
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(token, Ed25519PrivateKey.generate().public_key(), algorithms=["EdDSA"], options=options)


def test_a_token_with_every_claim_stays_small() -> None:
    assert len(_minter().call(meant_for(WRITE, Purpose.RECONCILIATION))) < 1200


@pytest.mark.parametrize("asked", [replace(WRITE, idempotency_key=None), replace(READ, idempotency_key="wf-1:x")])
def test_a_key_is_given_exactly_where_the_contract_takes_it_from_the_token(asked: Request) -> None:
    with pytest.raises(ValueError, match="key is given exactly where"):
        _minter().call(asked)


@pytest.mark.parametrize(
    "asked",
    [
        replace(READ, tenant_id=""),
        replace(READ, jti=""),
        replace(READ, subject=""),
        replace(READ, customer=""),
        replace(READ, attempt=0),
        replace(READ, requested_at=datetime(2026, 7, 29, 15)),  # noqa: DTZ001 - a time without a zone is the point
    ],
)
def test_an_empty_or_malformed_claim_is_never_signed(asked: Request) -> None:
    with pytest.raises(ValidationError):
        _minter().call(asked)


def test_the_hosts_key_file_format_is_read() -> None:
    private = base64.urlsafe_b64encode(PRIVATE.private_bytes_raw()).rstrip(b"=").decode()
    key = SigningKey.from_jwk({"kty": "OKP", "crv": "Ed25519", "kid": "key-1", "d": private})
    assert (key.kid, key.private.private_bytes_raw()) == ("key-1", PRIVATE.private_bytes_raw())


def test_no_two_tokens_share_a_jti() -> None:
    assert len({new_jti() for _ in range(10_000)}) == 10_000
