"""A directory of secrets for programs that are started one by one, in containers or on several machines.

One file per secret, so that each program is given its own and no other. What exists stays, and is refused
where others can read it.

    postgres          the superuser's password        signing.jwk   the worker's alone
    ROLE              a role's password               jwks.json     what verifies it: the tool server's
    ROLE.pgpass       the same as libpq reads it      issuers.json  whose tokens the tool server takes
    seal-SIDE.jwk     what seals that side's record   seal-keys.json  what verifies both sides' seals: everybody's
"""

from __future__ import annotations

from pathlib import Path

from host.stack.errors import StackError, StackProblem
from host.stack.files import refuse_shared
from host.stack.home import PRIVATE, existing_home
from host.stack.initialise import password_in
from host.stack.keys import KeyFiles, ensure_key_files, key_files_in, trusted_issuers
from host.stack.roles import LIMITED, OWNER, Side, write_passfile
from host.stack.serving import ADMIN

COMPOSE_ISSUER = "https://compose.kessai.invalid"  # a name under .invalid is nobody's
ROLES = tuple(role for side in Side for role in (OWNER[side], *LIMITED[side]))
KEYS = ("signing.jwk", "jwks.json", "issuers.json", "seal-host.jwk", "seal-tools.jwk", "seal-keys.json")
NAMES = (ADMIN, *ROLES, *(f"{role}.pgpass" for role in ROLES), *KEYS)


def write_secrets(directory: Path, issuer: str | None) -> tuple[str, ...]:
    """Make what is missing and give its names; a `StackError` says what is wrong with what is there.

    None keeps the issuer that is there. Another one is refused: a key under two names is trusted by no tool server.
    """
    try:
        _private(directory)
        issuer = _one_issuer(directory, issuer)
        before = {path.name for path in directory.iterdir()}
        password_in(directory / ADMIN)
        for role in ROLES:
            write_passfile(directory / f"{role}.pgpass", role, password_in(directory / role))
        ensure_key_files(key_files_in(directory), issuer)
    except OSError as error:
        raise StackError(
            StackProblem.HOME_NOT_WRITABLE,
            f"{directory} cannot be written: {error.strerror} ({error.filename}).",
            "Name a directory of your own on a disk with room.",
        ) from error
    return tuple(name for name in NAMES if name not in before)


def keys_of_secrets(directory: Path) -> KeyFiles:
    """The keys in a directory that `write_secrets` made; a `StackError` where it is none."""
    if existing_home(directory) is not None or _of_a_home(directory):
        raise StackError(
            StackProblem.SECRET_MALFORMED,
            f"{directory} is of a home, whose keys need no directory to be named.",
            "Leave --in out; KESSAI_HOME says which home is meant.",
        )
    files = key_files_in(directory)
    if not files.signing.exists():
        raise StackError(
            StackProblem.SECRET_MISSING,
            f"There is no signing key in {directory}.",
            f"Name the directory that was made by: kessai secrets '{directory}'",
        )
    return files


def _one_issuer(directory: Path, wanted: str | None) -> str:
    files = key_files_in(directory)
    found = [str(entry["issuer"]) for entry in trusted_issuers(files.issuers) if entry["jwks_file"] == files.jwks.name]
    if _of_a_home(directory):
        raise StackError(
            StackProblem.SECRET_MALFORMED,
            f"{directory} holds the keys of a home, whose passwords lie elsewhere.",
            "Name another directory. A new signing key is made by: kessai keys rotate",
        )
    if wanted is None:
        return found[0] if found else COMPOSE_ISSUER
    if found and wanted not in found:
        raise StackError(
            StackProblem.SECRET_MALFORMED,
            f"The keys in {directory} belong to the issuer {found[0]} already.",
            f"Leave --issuer out to keep it, or name a new directory for {wanted}.",
        )
    return wanted


def _of_a_home(directory: Path) -> bool:
    return existing_home(directory.parent) is not None and directory.name == "keys"


def _private(directory: Path) -> None:
    if not directory.exists():
        directory.mkdir(mode=PRIVATE, parents=True)
        directory.chmod(PRIVATE)  # whatever the umask was
    if not directory.is_dir():
        raise StackError(StackProblem.HOME_NOT_WRITABLE, f"{directory} is no directory.", "Name a new one.")
    _refuse_home(directory)
    try:
        refuse_shared(directory)
    except StackError as error:
        if any((directory / name).exists() for name in NAMES):
            raise
        mend = f"Name a new directory, such as '{directory.absolute() / 'secrets'}'; this one may have to be open."
        raise StackError(error.problem, error.what, mend) from error


def _refuse_home(directory: Path) -> None:
    """A home's own mode lets the database's user pass: to close it, or to put more into it, would break it."""
    if existing_home(directory) is not None:
        raise StackError(
            StackProblem.SECRET_MALFORMED,
            f"{directory} is the home of a stack, which has its own secrets already.",
            f"Name a directory beside it, such as '{directory.absolute()}-secrets'; "
            "a new signing key for the home is made by: kessai keys rotate",
        )
