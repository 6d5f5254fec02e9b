"""An approver's own key: made, and opened for one signature, in a directory apart from the host's and the server's.

    NAME.pem   the private half, PKCS8, encrypted unless that was refused; the person's alone
    NAME.json  the public half with its owner's terms, for whoever is to trust it

Invariant: no key is ever written over, and the private half is in no setting, no database and no other process.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import ValidationError

from host.commands.exits import CommandError, Exit
from host.stack.files import SECRET_MODE, malformed, read_secret, refuse_shared, write_whole
from host.stack.home import PRIVATE
from shared_contracts.approval import Approver, Name, PublicKey, TrustedApprover, jwk_of, public_key
from shared_contracts.base import dump
from shared_contracts.digest import canonical_json
from shared_contracts.named_file import Unread, read_file

PUBLIC_MODE = 0o644
FILE_BYTES_MAX = 64 * 1024
SCRYPT = {"n": 2**15, "r": 8, "p": 3, "maxmem": 64 * 2**20}  # a guess costs 0.2 s; PKCS8's own stretching is weak


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """Where the halves lie."""

    private: Path
    public: Path


def files_of(directory: Path, name: Name) -> KeyFiles:
    """Name an approver's files."""
    return KeyFiles(directory / f"{name}.pem", directory / f"{name}.json")


def make(files: KeyFiles, approver: Approver, passphrase: str | None) -> TrustedApprover:
    """Make a key; None leaves it unencrypted. Raises StackError, or FileExistsError where there is one."""
    directory = files.private.parent
    if not directory.exists():
        directory.mkdir(mode=PRIVATE, parents=True)
        directory.chmod(PRIVATE)  # whatever the umask was
    refuse_shared(directory)
    key = Ed25519PrivateKey.generate()
    public = jwk_of(key.public_key())
    lock = NoEncryption() if passphrase is None else BestAvailableEncryption(_stretched(passphrase, public))
    trusted = TrustedApprover(approver=approver, key=public)
    _write_new(files.private, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock))
    write_whole(files.public, canonical_json(dump(trusted)).decode() + "\n", PUBLIC_MODE)
    return trusted


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, SECRET_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), SECRET_MODE)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:  # whatever it is, it goes on from here; half a key does not stay
        path.unlink()
        raise


def read_public(path: Path) -> TrustedApprover:
    """Read a public half, whose id must be its key's; raises CommandError."""
    content = read_file(path, FILE_BYTES_MAX, decides=True)
    if isinstance(content, Unread):
        raise _no_public_half(path, content.why)
    try:
        trusted = TrustedApprover.model_validate_json(content)
        honest = jwk_of(public_key(trusted.key.x)) == trusted.key
    except (ValidationError, ValueError) as error:
        raise _no_public_half(path, "it is not what `kessai approver add` writes") from error
    if not honest:
        raise _no_public_half(path, "its id is not its key's")
    return trusted


def _no_public_half(path: Path, why: str) -> CommandError:
    return CommandError(Exit.BAD_INPUT, f"{path} cannot be read as a public half: {why}", "Give it as it was written.")


def is_locked(files: KeyFiles) -> bool:
    """Tell whether it takes a passphrase to open."""
    return "ENCRYPTED" in read_secret(files.private).partition("\n")[0]


def opened(files: KeyFiles, passphrase: str | None) -> tuple[Ed25519PrivateKey, str]:
    """Open a person's key, with its id; raises CommandError for a wrong passphrase, StackError for a broken file."""
    public = read_public(files.public).key
    secret = None if passphrase is None else _stretched(passphrase, public)
    text = read_secret(files.private).encode()
    try:
        key = load_pem_private_key(text, secret)
    except (ValueError, TypeError) as error:
        if passphrase is not None:
            raise CommandError(Exit.BAD_INPUT, "the passphrase is wrong", "Nothing was changed.") from error
        raise malformed(files.private, "it is no private key in PEM") from error
    if not isinstance(key, Ed25519PrivateKey) or jwk_of(key.public_key()) != public:
        raise malformed(files.private, f"it is not the private half of {files.public}")
    return key, public.kid


def _stretched(passphrase: str, public: PublicKey) -> bytes:
    return hashlib.scrypt(passphrase.encode(), salt=public.kid.encode(), dklen=32, **SCRYPT).hex().encode()
