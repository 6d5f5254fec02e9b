"""A sealer from what a process is linked to. It is apart from the wiring, so that a quick command can seal as well."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from host.database import NotReadyError
from host.engine.seal import Sealer
from host.stack.files import read_secret
from host.stack.links import Sealing
from shared_contracts.named_file import Unread, read_file
from shared_contracts.seal import SealKeys, UnsealedError, keys_of, signer_of, trusted_keys

KEY_BYTES_MAX = 1024 * 1024
Exchange = Callable[[str], Awaitable[str | None]]


async def nobody(_head: str) -> None:
    """Exchange heads with no tool server: there is none here."""


def sealer_of(sealing: Sealing, exchange: Exchange) -> Sealer:
    """Read the keys; raises NotReadyError, and StackError where the private one lies open."""
    try:
        signer = signer_of("host", read_secret(sealing.key_file).encode())
        tools = keys_of(read_keys(sealing.keys_file), "tools")
    except UnsealedError as error:
        what = f"what seals the record is not what it should be: {error}"
        raise NotReadyError(f"{what}\nName the files that `kessai secrets` made, or start the stack again.") from error
    return Sealer(sealing.dsn, signer, tools, exchange)


def read_keys(file: Path) -> SealKeys:
    """Read a file of public keys; raises UnsealedError."""
    content = read_file(file, KEY_BYTES_MAX, decides=True)
    if isinstance(content, Unread):
        raise UnsealedError(f"{file} cannot be read: {content.why}")
    return trusted_keys(content)


def merged(several: list[SealKeys]) -> SealKeys:
    """Put the keys of several files together."""
    return SealKeys(
        host=tuple(dict.fromkeys(key for keys in several for key in keys.host)),
        tools=tuple(dict.fromkeys(key for keys in several for key in keys.tools)),
    )
