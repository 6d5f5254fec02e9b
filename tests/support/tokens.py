"""Mints task tokens with keys of the tests' own; every claim and header can be made wrong on purpose.

issuer = Issuer.at(tmp_path)                    # a key pair, its JWK set and an issuers' file
issuer.token()                                  # a good `call` token for get_order of one order
issuer.token(exp=0)                             # a claim changed; DROP removes it
issuer.token(details={"resource": "R-2"})       # a member of the authorization details changed
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shared_contracts.digest import digest


class _Drop:
    """A member that is left out. Its name is the same in every process, since tests are named by it."""

    def __repr__(self) -> str:
        return "absent"


DROP: Any = _Drop()
ISSUER = "https://host.example"
RESOURCE = "http://127.0.0.1:8801/mcp"
SCOPES = "orders:read policies:read returns:read returns:write notices:read notices:write"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy with members replaced; DROP removes one."""
    return {name: value for name, value in {**base, **changes}.items() if value is not DROP}


@dataclass(frozen=True)
class Issuer:
    """A key pair in memory, and where its public half is published."""

    private: Ed25519PrivateKey
    kid: str
    name: str
    directory: Path
    resource: str = RESOURCE

    @classmethod
    def at(cls, directory: Path, resource: str = RESOURCE, kid: str = "key-1", name: str = ISSUER) -> Issuer:
        directory.mkdir(exist_ok=True)
        issuer = cls(Ed25519PrivateKey.generate(), kid, name, directory, resource)
        issuer.publish(issuer.jwk())
        return issuer

    @classmethod
    def load(cls, directory: Path, resource: str) -> Issuer:
        """The public side alone, for a process that only verifies."""
        return cls(Ed25519PrivateKey.generate(), "none", ISSUER, directory, resource)

    @property
    def issuers_file(self) -> Path:
        return self.directory / "issuers.json"

    @property
    def jwks_file(self) -> Path:
        return self.directory / "jwks.json"

    def jwk(self, **changes: Any) -> dict[str, Any]:
        x = b64(self.private.public_key().public_bytes_raw())
        base = {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.kid, "alg": "EdDSA", "use": "sig"}
        return changed(base, changes)

    def publish(self, *members: dict[str, Any]) -> None:
        """Replace the published set, as an operator would: a new file in the place of the old one."""
        for path, value in (
            (self.jwks_file, {"keys": list(members)}),
            (self.issuers_file, [{"issuer": self.name, "jwks_file": self.jwks_file.name, "tenants": "every"}]),
        ):
            new = path.with_suffix(".new")
            new.write_text(json.dumps(value), encoding="utf-8")
            new.rename(path)

    def header(self, **changes: Any) -> dict[str, Any]:
        return changed({"alg": "EdDSA", "kid": self.kid, "typ": "at+jwt"}, changes)

    def claims(self, *, details: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        base = {
            "iss": self.name,
            "aud": self.resource,
            "sub": "clerk-1",
            "client_id": "kessai-host",
            "tenant_id": "shop-1",
            "task_id": "task-1",
            "scope": SCOPES,
            "iat": now,
            "nbf": now,
            "exp": now + 60,
            "jti": uuid.uuid4().hex,
            "use": "call",
            "authorization_details": [changed(self.details(), {} if details is None else details)],
        }
        return changed(base, changes)

    def details(self) -> dict[str, Any]:
        return {
            "type": "kessai_call",
            "tool": "get_order",
            "resource": "R-1001",
            "customer": "C-1",
            "arguments_sha256": digest({"order_id": "R-1001"}),
            "idempotency_key": "shop-1:task-1:step",
            "attempt": 1,
        }

    def sign(self, header: dict[str, Any] | bytes, claims: dict[str, Any] | bytes) -> str:
        """A compact JWS over exactly these bytes."""
        parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, claims)]
        signed = ".".join(b64(part) for part in parts)
        return f"{signed}.{b64(self.private.sign(signed.encode()))}"

    def token(self, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        return self.sign(self.header(**({} if header is None else header)), self.claims(**claims))

    def probe(self, **claims: Any) -> str:
        base = {"use": "probe", "scope": "", "task_id": "readiness", "authorization_details": []}
        now = int(time.time())
        return self.token(**{**base, "iat": now, "nbf": now, "exp": now + 30, **claims})

    def external(self, *, details: dict[str, Any] | None = None, **claims: Any) -> str:
        """Reads by default: a customer, and nothing that narrows it to one call."""
        bare = {"tool": DROP, "resource": DROP, "arguments_sha256": DROP, "idempotency_key": DROP, "attempt": DROP}
        base = {"use": "external", "scope": "orders:read returns:read"}
        return self.token(**{**base, "details": {**bare, **({} if details is None else details)}, **claims})
