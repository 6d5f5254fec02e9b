"""An operator's acts on approvers: trust a person's public key, list whom the tool server trusts, revoke.

Invariant: a file is trusted as a whole or refused with its reason, before the database is touched; a person has one
active key, a key has one person, and a revoked key never comes back.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection
from pydantic import ValidationError

from shared_contracts.approval import Approver, PublicKey, TrustedApprover, jwk_of, public_key
from shared_contracts.base import dump
from shared_contracts.digest import canonical_json
from shared_contracts.told import place
from tool_server.errors import ToolServerError, TrustError
from tool_server.json_file import read_json
from tool_server.jwk import trusted_key
from tool_server.store import trust as store
from tool_server.store.trust import KnownApprover

_FILE_BYTES_MAX = 64 * 1024  # an honest file has a few hundred
_SHOWN_MAX = 5


class ApproverError(ToolServerError):
    """The file, or the name, is not one that this can be done with; nothing was changed."""

    exit_code = 2


class Change(StrEnum):
    """What an act did."""

    TRUSTED = "trusted"
    CHANGED = "changed"
    REVOKED = "revoked"
    NOTHING = "nothing"


def read_approver(path: Path) -> TrustedApprover:
    """Read and check a file that `trust` may take; raises ApproverError."""
    value = read_json(path, _FILE_BYTES_MAX, ApproverError)
    key = value.get("key") if isinstance(value, dict) else None
    if isinstance(key, dict) and "d" in key:
        raise ApproverError(f"{path} holds the private half of a key; hand over the public half alone")
    try:
        trusted = TrustedApprover.model_validate_json(canonical_json(value))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)[:_SHOWN_MAX]
        lines = [f"{path}: {place(one['loc'])}: {one['msg']}" for one in found]
        raise ApproverError("\n".join(lines)) from None
    except ValueError as error:  # no canonical form: a fraction, a NUL
        raise ApproverError(f"{path}: {error}") from None
    _check_key(path, trusted.key)
    _check_substitutes(path, trusted.approver)
    return trusted


async def trust(dsn: str, trusted: TrustedApprover, actor: str) -> Change:
    """Trust a checked file from the next call on; other terms of a known key are a new row; raises ApproverError."""
    async with await AsyncConnection.connect(dsn, autocommit=False) as connection:
        await store.lock(connection)
        known = await store.speaking(connection, trusted.key.kid, trusted.approver)
        _refuse_other(trusted, known)
        active = next((one for one in known if one.ended_how is None), None)
        if active is not None and active.approver == trusted.approver:
            return Change.NOTHING
        if active is not None:
            await store.end(connection, trusted.key.kid, actor, "replaced")
        await store.add(connection, trusted, actor)
    return Change.TRUSTED if active is None else Change.CHANGED


async def revoke(dsn: str, name_or_kid: str, actor: str) -> tuple[Change, KnownApprover]:
    """Trust a person's key no more from the next call on, for good; raises ApproverError."""
    async with await AsyncConnection.connect(dsn, autocommit=False) as connection:
        await store.lock(connection)
        named = _named(await store.listed(connection), name_or_kid)
        if named.ended_how is not None:
            return Change.NOTHING, named
        await store.end(connection, named.kid, actor, "revoked")
    return Change.REVOKED, named


async def listed(dsn: str) -> list[KnownApprover]:
    """Give the active and the revoked keys."""
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        return await store.listed(connection)


def told(known: KnownApprover) -> dict[str, Any]:
    """Give a row of the list for programs."""
    return {
        "kid": known.kid, **dump(known.approver), "trusted_by": known.trusted_by,
        "trusted_at": known.trusted_at.isoformat(timespec="seconds"), "revoked_by": known.ended_by,
        "revoked_at": None if known.ended_at is None else known.ended_at.isoformat(timespec="seconds"),
    }  # fmt: skip


def _check_key(path: Path, key: PublicKey) -> None:
    honest = jwk_of(public_key(key.x))
    if honest.x != key.x:
        raise ApproverError(f"{path}: key.x is not spelt as its 32 bytes are; export the key again")
    if honest.kid != key.kid:
        raise ApproverError(f"{path}: key.kid is not the thumbprint of the key (RFC 7638); the file was changed")
    try:
        trusted_key("approver", {**dump(key), "alg": "EdDSA"})
    except TrustError as error:
        raise ApproverError(f"{path}: {error}") from None


def _check_substitutes(path: Path, approver: Approver) -> None:
    if approver.name in approver.substitutes:
        raise ApproverError(f"{path}: approver.substitutes names {approver.name} as the own substitute; remove it")
    if len(set(approver.substitutes)) != len(approver.substitutes):
        raise ApproverError(f"{path}: approver.substitutes names somebody twice; name each once")


def _refuse_other(trusted: TrustedApprover, known: list[KnownApprover]) -> None:
    """Refuse a key that was revoked or is another's, and a second key for one person."""
    person, kid = trusted.approver, trusted.key.kid
    for one in known:
        same_person = (one.approver.tenant_id, one.approver.name) == (person.tenant_id, person.name)
        if one.kid == kid and one.ended_how == "revoked":
            raise ApproverError(f"the key {kid} was revoked at {_at(one)} by {one.ended_by} for good; make a new key")
        if one.kid == kid and not same_person:
            raise ApproverError(f"the key {kid} is the one of {_person(one)}; a key stands for one person")
        if one.kid != kid:
            raise ApproverError(
                f"{_person(one)} is trusted with the key {one.kid}; "
                f"run `kessai-tools approver revoke {one.kid}` first: a person has one key at a time"
            )


def _named(known: list[KnownApprover], name_or_kid: str) -> KnownApprover:
    by_kid = [one for one in known if one.kid == name_or_kid]
    by_name = [one for one in known if one.approver.name == name_or_kid]
    active = [one for one in by_name if one.ended_how is None]
    if len(active) > 1:
        kids = ", ".join(f"{one.kid} ({one.approver.tenant_id})" for one in active)
        raise ApproverError(f"{name_or_kid} is trusted by several tenants; name one by its key: {kids}")
    found = [*by_kid, *active, *reversed(by_name)]
    if not found:
        raise ApproverError(f"there is no approver {name_or_kid!r}; `kessai-tools approver list` names them")
    return found[0]


def _person(known: KnownApprover) -> str:
    return f"{known.approver.name} of {known.approver.tenant_id}"


def _at(known: KnownApprover) -> str:
    return "an unknown time" if known.ended_at is None else known.ended_at.isoformat(timespec="seconds")
