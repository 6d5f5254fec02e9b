"""What `kessai keys list` shows."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import AwareDatetime

from shared_contracts.base import Contract

KeyState: TypeAlias = Literal["signing", "next", "old", "trusted", "revoked"]


class KeyView(Contract):
    """A key that verifies tokens. `signing`: ours, in use. `next`: ours, published and not in use yet. `old`: ours,
    until its last token has run out. `trusted`: another issuer's. `revoked`: ours, refused already; the command was
    cut short, and the same again finishes it.
    """

    kid: str
    issuer: str
    algorithm: str
    state: KeyState
    ends_at: AwareDatetime | None


class KeyList(Contract):
    """`kessai keys list`: what the files publish. What was revoked at the tool server is in its own database."""

    keys: tuple[KeyView, ...]
