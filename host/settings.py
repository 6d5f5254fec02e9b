"""The host's settings: read once, frozen, and the only place that reads the environment.

No secret has a default, and an unknown variable with our prefix is an error: a misspelt setting must not be one that
silently keeps its default. Variables of the tool server (KESSAI_TOOLS_*) are not ours: where we start one, they are
handed on to it and it judges them; only a path is made absolute, since what we start works in another directory.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from host.stack.home import default_root
from host.stack.links import Links, Sealing
from shared_contracts.named_file import unnameable
from shared_contracts.told import complaints, missing

PREFIX = "KESSAI_"
FOREIGN_PREFIX = "KESSAI_TOOLS_"
_DATA = Path(__file__).parent / "data"
HOME_BYTES = 512  # of a path below the home
_THEIR_PATHS = ("_MAILDIR", "_FILE")


def _nameable(more_bytes: int) -> AfterValidator:
    def check(path: Path) -> Path:
        why = unnameable(path, more_bytes)
        if why is not None:
            raise ValueError(why)
        return path

    return AfterValidator(check)


Named = Annotated[Path, _nameable(0)]
HomePath = Annotated[Path, _nameable(HOME_BYTES)]


class SettingsError(Exception):
    """A setting is missing, unknown or wrong; the message names the variable and the mend, never a value."""


class Settings(BaseSettings):
    """All settings of the host; times are seconds."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", env_ignore_empty=True, hide_input_in_errors=True
    )

    home: HomePath | None = None
    dsn: SecretStr | None = Field(
        None,
        description="the connection of the worker's role to the database `host`",
        examples=["host=db.example dbname=host user=host_rt passfile=secrets/host_rt.pgpass"],
    )
    migrate_dsn: SecretStr | None = Field(
        None,
        description="the connection of the owner of the database `host`, which KESSAI_DSN is not",
        examples=["host=db.example dbname=host user=host_owner passfile=secrets/host_owner.pgpass"],
    )
    role_passwords: Named | None = None
    server_url: str | None = Field(
        None, description="the tool server's address", examples=["https://tools.example/mcp"]
    )
    audience: str | None = None
    issuer: str | None = Field(
        None,
        description="the name under which tokens are signed, the one in the tool server's issuers.json",
        examples=["https://host.example"],
    )
    signing_key_file: Named | None = Field(
        None,
        description="the private key that signs tokens, made by `kessai secrets`",
        examples=["secrets/signing.jwk"],
    )
    sealer_dsn: SecretStr | None = Field(
        None,
        description="the connection of the role that seals the record in the database `host`",
        examples=["host=db.example dbname=host user=host_sealer passfile=secrets/host_sealer.pgpass"],
    )
    seal_key_file: Named | None = Field(
        None,
        description="the private key that seals the record, made by `kessai secrets`",
        examples=["secrets/seal-host.jwk"],
    )
    seal_keys_file: Named | None = Field(
        None,
        description="the public keys of both sides' seals, made by `kessai secrets`",
        examples=["secrets/seal-keys.json"],
    )
    record_days: Annotated[int, Field(ge=1, le=36_500)] | None = Field(
        None, description="how many days of the record are kept by `kessai audit cut`", examples=["730"]
    )
    authz_file: Named = _DATA / "authz-v7.json"
    principal: str = "returns-desk@acme-jp"
    planner: Literal["conformance"] = "conformance"
    concurrency: Annotated[int, Field(ge=1, le=256)] = 1
    lease_seconds: Annotated[float, Field(ge=1, le=300)] = 15.0
    pulse_file: Named | None = None
    rate_principal: Annotated[float, Field(gt=0, le=1_000_000)] = 18.0
    rate_tenant: Annotated[float, Field(gt=0, le=1_000_000)] = 90.0
    order_snapshot: str = "2026-07-30T00:00:00+09:00"
    policy_version: str = "policy-v12"
    daily_cost_micros: Annotated[int, Field(ge=0)] | None = None
    call_limit_stops: Literal["system", "case"] = "system"
    postgres_bin: Named | None = None
    postgres_os_user: str | None = None
    approvers: Named | None = None
    approver_passphrase_file: Named | None = None
    tool_server_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    audit_host_dsn: SecretStr | None = Field(
        None,
        description="the connection of the auditor's role to the database `host`, for what compares both sides alone",
        examples=["host=db.example dbname=host user=host_auditor passfile=secrets/host_auditor.pgpass"],
    )
    audit_tools_dsn: SecretStr | None = Field(
        None,
        description="the connection of the auditor's role to the database `tools`, for what compares both sides alone",
        examples=["host=db.example dbname=tools user=tools_auditor passfile=secrets/tools_auditor.pgpass"],
    )


def load() -> Settings:
    """Read the environment; raises SettingsError."""
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    ours = [name for name in os.environ if name.upper().startswith(PREFIX)]
    unknown = sorted(n for n in ours if not n.upper().startswith(FOREIGN_PREFIX) and n.upper() not in known)
    if unknown:
        raise SettingsError("\n".join(_unknown(name, known) for name in unknown))
    try:
        return Settings()
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
        named = ({**p, "loc": (f"{PREFIX}{'.'.join(map(str, p['loc']))}".upper(),)} for p in problems)
        raise SettingsError("\n".join(complaints(named, PREFIX))) from None


def _unknown(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name.upper(), sorted(known), n=1, cutoff=0.75)
    return f"{name}: no setting has this name" + (f"; is {near[0]} meant?" if near else "; unset it")


def links(settings: Settings) -> Links | None:
    """Give database and tool server by address; None where neither is set, and this machine's own stack is used."""
    dsn, url, issuer, key = settings.dsn, settings.server_url, settings.issuer, settings.signing_key_file
    if dsn is not None and url is not None and issuer is not None and key is not None:
        audience = url if settings.audience is None else settings.audience
        return Links(dsn.get_secret_value(), url, audience, issuer, key, sealing(settings))
    needed = {"DSN": dsn, "SERVER_URL": url, "ISSUER": issuer, "SIGNING_KEY_FILE": key}
    lacking = [name for name, value in needed.items() if value is None]
    if len(lacking) == len(needed):
        not_owners_alone(settings)
        return None
    others = ", ".join(f"{PREFIX}{name}" for name in needed if name not in lacking)
    raise SettingsError("\n".join([*map(lacks, lacking), f"Or unset {others} to use this machine's own stack."]))


def not_owners_alone(settings: Settings) -> None:
    """Refuse an owner's connection alone: it is of a database elsewhere, and the act would be done here."""
    if settings.migrate_dsn is not None and settings.dsn is None:
        raise SettingsError(f"{lacks('DSN')}\nOr unset {PREFIX}MIGRATE_DSN to use this machine's own stack.")


def sealing(settings: Settings) -> Sealing | None:
    """Give what seals the record; None where nothing of it is set. Raises SettingsError where something is missing."""
    dsn, key, keys = settings.sealer_dsn, settings.seal_key_file, settings.seal_keys_file
    if dsn is not None and key is not None and keys is not None:
        return Sealing(dsn.get_secret_value(), key, keys)
    needed = {"SEALER_DSN": dsn, "SEAL_KEY_FILE": key, "SEAL_KEYS_FILE": keys}
    lacking = [name for name, value in needed.items() if value is None]
    if len(lacking) == len(needed):
        return None
    raise SettingsError("\n".join(map(lacks, lacking)))


def elsewhere(settings: Settings) -> str | None:
    """Name the variables that send commands to another database and tool server; None where this machine's are used."""
    links = ("dsn", "server_url", "issuer", "signing_key_file")
    chosen = [f"{PREFIX}{name}".upper() for name in links if getattr(settings, name) is not None]
    return ", ".join(chosen) if chosen else None


def connections(settings: Settings) -> dict[str, str]:
    """Give the connection strings that are set, by the names of their variables."""
    names = ("dsn", "migrate_dsn", "sealer_dsn", "audit_host_dsn", "audit_tools_dsn")
    found: dict[str, SecretStr | None] = {f"{PREFIX}{name}".upper(): getattr(settings, name) for name in names}
    return {name: dsn.get_secret_value() for name, dsn in found.items() if dsn is not None}


def of_auditors(settings: Settings) -> list[str]:
    """Name the auditors' connections that are set. They are for what compares both sides, and for no other program."""
    names = ("audit_host_dsn", "audit_tools_dsn")
    return [f"{PREFIX}{name}".upper() for name in names if getattr(settings, name) is not None]


def lacks(name: str, *where: str) -> str:
    """Say of a setting that is not set, and is needed, what it is."""
    return missing(f"{PREFIX}{name}", Settings.model_fields[name.lower()], *where)


def home_root(settings: Settings) -> Path:
    """Name the directory of this machine's stack, which need not exist yet."""
    return settings.home if settings.home is not None else default_root(os.environ.get("XDG_DATA_HOME"))


def approvers_directory(settings: Settings) -> Path:
    """Name the directory of approvers' own keys, which need not exist yet; it never lies in a home."""
    home, config = home_root(settings), os.environ.get("XDG_CONFIG_HOME")
    base = Path(config) if config is not None and Path(config).is_absolute() else Path.home() / ".config"
    chosen = settings.approvers if settings.approvers is not None else base / "kessai" / "approvers"
    if Path(os.path.realpath(chosen)).is_relative_to(os.path.realpath(home)):
        raise SettingsError(f"KESSAI_APPROVERS: {chosen} lies in the home {home}; approvers' keys lie apart from it")
    return chosen.absolute()


def for_tool_server() -> dict[str, str]:
    """Give the tool server's own variables that are set. Connections and passwords come from the home alone."""
    ours = {name.upper(): value for name, value in os.environ.items() if name.upper().startswith(FOREIGN_PREFIX)}
    theirs = {name: value for name, value in ours.items() if not name.endswith(("_DSN", "_ROLE_PASSWORDS"))}
    paths = {name: str(Path(value).absolute()) for name, value in theirs.items() if name.endswith(_THEIR_PATHS)}
    return {name: paths.get(name, value) for name, value in theirs.items() if value != ""}


def for_worker(settings: Settings) -> dict[str, str]:
    """Give what was set for a worker that the stack starts, by its variables' names; paths become absolute."""
    names = {
        "authz_file", "planner", "daily_cost_micros", "call_limit_stops", "concurrency", "lease_seconds",
        "order_snapshot", "policy_version", "rate_principal", "rate_tenant",
    }  # fmt: skip
    chosen = {name: getattr(settings, name) for name in sorted(names & settings.model_fields_set)}
    return {
        f"{PREFIX}{name}".upper(): str(value.resolve() if isinstance(value, Path) else value)
        for name, value in chosen.items()
    }


def libpq_variables() -> Mapping[str, str]:
    """Give the variables of libpq, which would win over a connection string's own words."""
    return {name: value for name, value in os.environ.items() if name.startswith("PG")}
