"""Who acts, as every history keeps it.

Invariant: a typed name never stands alone; beside it stand who ran the command, and the digest of the authorization
set that knew the name, since the set is whichever file the command was told to read.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class By:
    """`authz` is the SHA-256 (`sha256:…`) of the set's file."""

    name: str
    os_user: str
    authz: str | None  # none was asked where a restored home is stopped

    def details(self) -> dict[str, str]:
        """Give what is kept beside the name."""
        return {"os_user": self.os_user} | ({} if self.authz is None else {"authz": self.authz})
