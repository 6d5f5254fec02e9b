"""A passphrase: asked for on a terminal, or read from the file that a setting names; never shown, never an argument."""

from __future__ import annotations

import getpass
import sys

from host.commands.exits import CommandError, Exit
from host.settings import Settings
from host.stack.files import read_secret

CHARACTERS_MIN = 8
_NOTHING = "Nothing was changed."


def chosen(settings: Settings) -> str:
    """Get a new one, typed twice alike; raises CommandError."""
    given = _from_file(settings)
    passphrase = _asked("Passphrase for the new key: ") if given is None else given
    if len(passphrase) < CHARACTERS_MIN:
        raise CommandError(Exit.BAD_INPUT, f"a passphrase has {CHARACTERS_MIN} characters or more", "Nothing was made.")
    if given is None and _asked("Once more: ") != passphrase:
        raise CommandError(Exit.BAD_INPUT, "the two are not alike", "Nothing was made.")
    return passphrase


def known(settings: Settings, name: str) -> str:
    """Get the one of a person's key; raises CommandError."""
    given = _from_file(settings)
    return _asked(f"Passphrase of {name}: ") if given is None else given


def _from_file(settings: Settings) -> str | None:
    file = settings.approver_passphrase_file
    return None if file is None else read_secret(file).removesuffix("\n").removesuffix("\r")


def _asked(prompt: str) -> str:
    if not sys.stdin.isatty():
        mend = "Run it on a terminal, or name a file of mode 0600 in KESSAI_APPROVER_PASSPHRASE_FILE."
        raise CommandError(Exit.BAD_INPUT, "a passphrase is needed, and there is no terminal to ask on", mend)
    try:
        typed = getpass.getpass(prompt)
        typed.encode()
    except EOFError as error:
        raise CommandError(Exit.BAD_INPUT, "no passphrase was given", _NOTHING) from error
    except UnicodeError as error:
        raise CommandError(Exit.BAD_INPUT, "this is no passphrase: it holds what is no letter", _NOTHING) from error
    return typed
