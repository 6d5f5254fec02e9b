"""What a refused caller is told of how to get in: RFC 6750 challenges and RFC 9728 metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from shared_contracts.contract import READING

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_READS = " ".join(sorted(scope.value for scope in READING))


class Challenges:
    """The `WWW-Authenticate` values of one resource."""

    def __init__(self, resource: str) -> None:
        parts = urlsplit(resource)
        self.metadata_path = f"{WELL_KNOWN}{parts.path}"
        self._metadata = f'resource_metadata="{parts.scheme}://{parts.netloc}{self.metadata_path}"'

    def missing(self) -> str:
        """No credentials came: no error is named (RFC 6750 §3.1)."""
        return f'Bearer scope="{_READS}", {self._metadata}'

    def invalid(self, description: str) -> str:
        """Credentials came that are not accepted."""
        return f'Bearer error="invalid_token", error_description="{description}", scope="{_READS}", {self._metadata}'

    def insufficient(self, description: str, scope: str | None) -> str:
        """The token is genuine and not enough; `scope` is what the call needs, where a scope would do."""
        needed = "" if scope is None else f'scope="{scope}", '
        return f'Bearer error="insufficient_scope", error_description="{description}", {needed}{self._metadata}'


def metadata(resource: str, issuers: Iterable[str]) -> dict[str, Any]:
    """Give the protected-resource metadata; issuers stand there as they are compared, character by character."""
    return {
        "resource": resource,
        "authorization_servers": list(issuers),
        "scopes_supported": _READS.split(),  # what to begin with; a challenge names what more a tool needs
        "bearer_methods_supported": ["header"],
        "resource_name": "Kessai tool server",
    }
