"""The host's settings: read once, frozen, and the only place that reads the environment.

No secret has a default, and an unknown variable with our prefix is an error: a misspelt setting must not be one that
silently keeps its default. Variables of the tool server (KESSAI_TOOLS_*) are not ours and are not looked at.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "KESSAI_"
FOREIGN_PREFIX = "KESSAI_TOOLS_"
_DATA = Path(__file__).parent / "data"


class SettingsError(Exception):
    """A setting is missing, unknown or wrong; the message names the variable and the mend, never a value."""


class Settings(BaseSettings):
    """All settings of the host; times are seconds."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", env_ignore_empty=True, hide_input_in_errors=True
    )

    home: Path | None = None
    dsn: SecretStr | None = None
    migrate_dsn: SecretStr | None = None
    role_passwords: Path | None = None
    server_url: str | None = None
    audience: str | None = None
    issuer: str | None = None
    signing_key_file: Path | None = None
    authz_file: Path = _DATA / "authz-v7.json"
    principal: str = "returns-desk@acme-jp"
    planner: Literal["conformance"] = "conformance"
    concurrency: Annotated[int, Field(ge=1, le=256)] = 1
    lease_seconds: Annotated[float, Field(ge=1, le=300)] = 15.0
    order_snapshot: str = "2026-07-30T00:00:00+09:00"
    policy_version: str = "policy-v12"
    postgres_bin: Path | None = None
    postgres_os_user: str | None = None
    tool_server_port: Annotated[int, Field(ge=1, le=65535)] | None = None


def load() -> Settings:
    """Read the environment; raises SettingsError."""
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    ours = [name for name in os.environ if name.upper().startswith(PREFIX)]
    unknown = sorted(n for n in ours if not n.upper().startswith(FOREIGN_PREFIX) and n.upper() not in known)
    if unknown:
        raise SettingsError(f"{', '.join(unknown)}: no setting has this name; see `kessai doctor`")
    try:
        return Settings()
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
        said = (f"{PREFIX}{'.'.join(map(str, p['loc'])).upper()}: {p['msg']}" for p in problems)
        raise SettingsError("; ".join(said)) from None
