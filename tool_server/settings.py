"""The tool server's settings, read once; the only module of the package that reads the environment.

Invariant: no secret and no permission has a default, and an unknown variable with our prefix is an error, so
that a misspelt setting is never a silently unused one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from shared_contracts.told import complaints, missing
from tool_server.errors import SettingsError

PREFIX = "KESSAI_TOOLS_"
AUDITORS_PREFIX = "KESSAI_AUDIT_"
S = TypeVar("S", bound=BaseSettings)

_CONFIG = SettingsConfigDict(
    env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True, env_ignore_empty=True
)


def _comma_list(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _canonical_resource(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or parts.netloc == "" or "@" in parts.netloc:
        raise ValueError("must be an http or https address such as http://127.0.0.1:8801/mcp")
    if parts.path.rstrip("/") == "" or parts.path.endswith("/"):
        raise ValueError("must end in a path without a trailing slash, such as /mcp")
    if parts.query or parts.fragment or value != value.strip():
        raise ValueError("must have no query and no fragment: it is compared character by character")
    return value


CommaList = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_comma_list)]
Resource = Annotated[str, AfterValidator(_canonical_resource)]
_ISSUERS = "the file that says whose tokens are taken, made by `kessai secrets`"


def _dsn(what: str, role: str, default: Any = ...) -> Any:
    example = f"host=db.example dbname=tools user={role} passfile=secrets/{role}.pgpass"
    return Field(default, description=what, examples=[example])


PerSecond = Annotated[float, Field(gt=0, le=1_000_000)]


class Settings(BaseSettings):
    """What `kessai-tools serve` needs.

    `resource` is the canonical URI of this server: every token's exact audience. Its host is always served;
    `allowed_hosts` adds the other names that it is reached by, `allowed_origins` the browsers' origins.
    Rates are calls per second and per replica; that of failures is per second and address, of requests that bring no
    right token. `connections` is how many are held at once.
    """

    model_config = _CONFIG

    resource: Resource = Field(
        description="the one address that tokens for this server are issued for", examples=["http://127.0.0.1:8801/mcp"]
    )
    issuers_file: Path = Field(description=_ISSUERS, examples=["secrets/issuers.json"])
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8801
    allowed_hosts: CommaList = ()
    allowed_origins: CommaList = ()
    rate_principal: PerSecond = 20.0
    rate_tenant: PerSecond = 100.0
    rate_failures: PerSecond = 10.0
    connections: Annotated[int, Field(ge=16, le=65_536)] = 1000

    orders_dsn: SecretStr = _dsn("the connection of the tools that read orders", "tools_orders")
    policies_dsn: SecretStr = _dsn("the connection of the tools that judge by the rules", "tools_policies")
    returns_dsn: SecretStr = _dsn("the connection of the tools that make returns", "tools_returns")
    notices_dsn: SecretStr = _dsn("the connection of the tools that send notices", "tools_notices")
    document_dsn: SecretStr = _dsn("the connection of the tools that read documents", "tools_document")

    # who seals the record; the three go together, and without them nothing is sealed
    sealer_dsn: SecretStr | None = _dsn("the connection of the role that seals the log", "tools_sealer", None)
    seal_key_file: Path | None = None
    seal_keys_file: Path | None = None

    maildir: Path | None = None
    smtp_host: str | None = None
    smtp_port: Annotated[int, Field(ge=1, le=65535)] = 587
    smtp_user: str | None = None
    smtp_password_file: Path | None = None
    smtp_tls: Literal["starttls", "implicit", "none"] = "starttls"
    mail_from: str | None = None
    mail_domain: str | None = None

    def dsn_of(self, family: str) -> SecretStr:
        """Give a family's own connection string: each family is a credential of its own."""
        found: SecretStr = getattr(self, f"{family}_dsn")
        return found


class OwnerSettings(BaseSettings):
    """What the owner's commands need: `migrate`, `load`, `disable`, `enable`, `revoke`, `cut`."""

    model_config = _CONFIG

    migrate_dsn: SecretStr = _dsn("the connection of the owner of the database", "tools_owner")
    role_passwords: Path | None = None
    issuers_file: Path | None = None
    record_days: Annotated[int, Field(ge=1, le=36_500)] | None = None


def _known() -> frozenset[str]:
    return frozenset(f"{PREFIX}{name}".upper() for model in (Settings, OwnerSettings) for name in model.model_fields)


def _unknown() -> list[str]:
    known = _known()
    return sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known)


def _complaints(model: type[BaseSettings], error: ValidationError) -> list[str]:
    problems = error.errors(include_input=False, include_url=False)
    where = "Several machines" if model is Settings else "The tool server's operator"
    return [
        missing(_variable(problem["loc"]), model.model_fields[str(problem["loc"][0])], where)
        if problem["type"] == "missing"
        else "".join(complaints([{**problem, "loc": (_variable(problem["loc"]),)}], PREFIX))
        for problem in problems
    ]


def _variable(location: tuple[int | str, ...]) -> str:
    return f"{PREFIX}{'.'.join(map(str, location))}".upper()


def load(model: type[S]) -> S:
    """Read the settings from the environment; raises SettingsError, which names variables and never values.

    Who does the work has no part in auditing it: the auditors' connections, which are another program's, are refused.
    """
    wrong = [f"{name}: no setting has this name" for name in _unknown()]
    auditors = sorted(name for name in os.environ if name.upper().startswith(AUDITORS_PREFIX))
    wrong += [f"{name}: an auditor's connection is for kessai reconcile alone; unset it here" for name in auditors]
    try:
        settings = model()
    except ValidationError as error:
        wrong += _complaints(model, error)
        raise SettingsError("\n".join(wrong)) from None
    if wrong:
        raise SettingsError("\n".join(wrong))
    return settings
