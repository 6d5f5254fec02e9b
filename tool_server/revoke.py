"""Revoking, as the owner: a key that somebody knows, or a token's id, of which nobody keeps a list.

Invariant: what is told as done was done. A key that no issuer publishes and that never called is taken for a mistyped
one and not written down, since the key that was meant would go on being trusted.
"""

from __future__ import annotations

from pathlib import Path

from tool_server.errors import ToolServerError, TrustError
from tool_server.keys import Keyring
from tool_server.store.switches import has_called, revoke


class UnknownKeyError(ToolServerError):
    """Nobody knows a key of this id."""

    exit_code = 2


async def revoke_key(dsn: str, kid: str, issuers_file: Path | None, actor: str) -> str:
    """Refuse a key's tokens from now on, and say so; raises UnknownKeyError."""
    known = published(issuers_file)
    if (isinstance(known, str) or kid not in known) and not await has_called(dsn, "kid", kid):
        said = known if isinstance(known, str) else f"known are {', '.join(sorted(known))}"
        raise UnknownKeyError(f"no key {kid!r} is published, none of that id ever called, nothing was revoked; {said}")
    fresh = await revoke(dsn, "kid", kid, actor)
    return f"revoked kid {kid}: every token that it signed" if fresh else f"kid {kid} was revoked before"


async def revoke_token(dsn: str, jti: str, actor: str) -> str:
    """Refuse one token from now on, and say what is known of it: ids are nowhere registered before their first call."""
    fresh = await revoke(dsn, "jti", jti, actor)
    done = f"revoked jti {jti}" if fresh else f"jti {jti} was revoked before"
    if await has_called(dsn, "jti", jti):
        return f"{done}: the call log has a call of it"
    return (
        f"{done}: no call of it is in the log; whether a token has this id cannot be told here, so compare its letters"
    )


def published(issuers_file: Path | None) -> frozenset[str] | str:
    """Give the ids of the keys that the issuers publish, or why they cannot be told."""
    if issuers_file is None:
        return "KESSAI_TOOLS_ISSUERS_FILE, set as for `serve`, lets me name the published ones"
    try:
        return frozenset(Keyring(issuers_file).trust().keys)
    except TrustError as error:
        return f"the published ones cannot be read: {error}"
