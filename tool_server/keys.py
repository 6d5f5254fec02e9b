"""Whose signatures are trusted: the issuers' file and the JWK sets it names, as they stand on disk now.

Invariant: an issuer speaks for the tenants of its row and for no other. Fail closed: a file that is missing, broken,
writable by everybody, or holds one key that must not be trusted leaves no key at all, until it is mended; the server
says so in its log and in `/readyz`. A removed key is refused from the next token on: the files' stamps are compared at
every verification, so nothing is trusted longer than the file. What could not be read is read again each AGAIN_SECONDS,
since a fault that passes, as of a disk, changes no stamp.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import structlog
from pydantic import Field, TypeAdapter, ValidationError

from shared_contracts.base import Contract, Identifier
from shared_contracts.named_file import Stamp, stamp_of
from shared_contracts.task_token import Party
from shared_contracts.told import complaints
from tool_server.errors import TrustError
from tool_server.json_file import read_json
from tool_server.jwk import TrustedKey, trusted_key

log = structlog.get_logger()

_FILE_BYTES_MAX = 256 * 1024
_KEYS_MAX = 64
AGAIN_SECONDS = 1.0


class TrustedIssuer(Contract):
    """One row of the issuers' file; a relative path is relative to that file. `every`: a host of one's own."""

    issuer: Party
    jwks_file: Annotated[str, Field(min_length=1, max_length=4096)]
    tenants: Annotated[list[Identifier], Field(min_length=1)] | Literal["every"]

    def speaks_for(self, tenant: str) -> bool:
        """Tell whether it may name this tenant."""
        return self.tenants == "every" or tenant in self.tenants


_ISSUERS: TypeAdapter[list[TrustedIssuer]] = TypeAdapter(list[TrustedIssuer])


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys by `kid`, the issuers by name; `problem` is set, and both are empty, when nothing is trusted."""

    keys: Mapping[str, TrustedKey]
    issuers: Mapping[str, TrustedIssuer]
    problem: str | None


class Keyring:
    """Read once at the start, where a fault raises TrustError, then again whenever a file has changed.

    `clock` gives seconds that never go back.
    """

    def __init__(self, issuers_file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = issuers_file, clock
        self._again = math.inf  # when to look once more, where it was not read
        self._stamps: dict[Path, Stamp] = {}
        self._trust = self._read()

    def trust(self) -> Trust:
        """Give what is trusted now; costs one `stat` for each file."""
        if self._clock() >= self._again or any(stamp_of(path) != stamp for path, stamp in self._stamps.items()):
            self._trust = self._read_again()
        return self._trust

    def _read_again(self) -> Trust:
        self._again = math.inf
        try:
            trust = self._read()
        except TrustError as error:
            self._again = self._clock() + AGAIN_SECONDS
            log.critical("keys_unusable", problem=str(error))
            return Trust(MappingProxyType({}), MappingProxyType({}), str(error))
        log.warning("keys_read_again", kids=sorted(trust.keys), issuers=list(trust.issuers))
        return trust

    def _read(self) -> Trust:
        self._stamps = {}
        issuers = self._issuers()
        keys: dict[str, TrustedKey] = {}
        for row in issuers:
            for member in self._members(self._file.parent / row.jwks_file):
                _add(keys, trusted_key(row.issuer, member))
        if not keys:
            raise TrustError(f"{self._file} leads to no key; without one every token is refused")
        return Trust(MappingProxyType(keys), MappingProxyType({row.issuer: row for row in issuers}), None)

    def _issuers(self) -> list[TrustedIssuer]:
        value = self._json(self._file)
        try:
            issuers = _ISSUERS.validate_python(value)
        except ValidationError as error:
            wrong = "; ".join(complaints(error.errors(include_input=False, include_url=False), "the file"))
            shape = '{"issuer": …, "jwks_file": …, "tenants": […]}'
            raise TrustError(f"{self._file} is not a list of {shape}: {wrong}") from None
        if len({row.issuer for row in issuers}) != len(issuers):
            raise TrustError(f"{self._file} names an issuer twice")
        return issuers

    def _members(self, path: Path) -> list[Any]:
        value = self._json(path)
        members = value.get("keys") if isinstance(value, dict) else None
        if not isinstance(members, list) or len(members) > _KEYS_MAX:
            raise TrustError(f'{path} is not a JWK set ({{"keys": […]}}) of at most {_KEYS_MAX} keys')
        return members

    def _json(self, path: Path) -> Any:
        self._stamps[path] = stamp_of(path)  # before reading: a change in between is seen at the next look
        return read_json(path, _FILE_BYTES_MAX, TrustError)


def _add(keys: dict[str, TrustedKey], key: TrustedKey) -> None:
    if key.kid in keys:
        raise TrustError(f"two keys have the kid {key.kid!r}; which one signed could not be told")
    if any(key.raw == other.raw for other in keys.values()):
        raise TrustError(f"key {key.kid!r} stands there under another kid; revoking one would leave the other")
    keys[key.kid] = key
