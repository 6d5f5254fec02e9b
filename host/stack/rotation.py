"""From one signing key to the next, and out of one that was stolen, with no right token refused meanwhile.

    publish_next ──► the tool server takes it ──► sign_with_next ──► the old one ends when its last token has run out

Invariant: each step replaces one file whole, and what comes next is read from the files alone; so whatever is killed
in between leaves keys that sign and verify, and the next command goes on from there. A published key has its end
written beside it, as `exp`: no program has to be there at that time to take it away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from host.stack.errors import StackError, StackProblem
from host.stack.keys import KeyFiles, new_key, public_part, publish, published, read_signing_key, write_key
from host.stack.locks import Hold

_CUT_OFF = 0  # an `exp` in the past, which none that has run its time ever has
PUBLISHED_MAX = 16  # of the 64 that a tool server reads; each old one stays for its quarter of an hour


@contextmanager
def changing(files: KeyFiles) -> Iterator[None]:
    """One process at a time; a `StackError` for the second."""
    hold = Hold(files.lock)
    try:
        if not hold.exclusive():
            raise StackError(StackProblem.HOME_BUSY, "Another process is changing the signing key.", "Try again.")
        yield
    finally:
        hold.close()


def next_key(files: KeyFiles) -> dict[str, Any] | None:
    """The key that is published and does not sign yet; None outside of a rotation."""
    return read_signing_key(files.next) if files.next.exists() else None


def finish(files: KeyFiles, now: float) -> bool:
    """Give an end to old keys that lack one; True where a command was killed just before it could."""
    current = read_signing_key(files.signing)
    if files.next.exists() or not [key for key in _others(files, current["kid"], now) if not _has_end(key)]:
        return False
    _publish_signing(files, current, now)
    return True


def publish_next(files: KeyFiles, now: float) -> dict[str, Any]:
    """Publish the key that shall follow, made now or by a command that was killed; gives its private JWK."""
    current, following = read_signing_key(files.signing), next_key(files)
    others = _others(files, current["kid"], now)
    if following is None and len(others) + 2 > PUBLISHED_MAX:
        raise StackError(
            StackProblem.HOME_BUSY,
            f"{len(others)} old keys are still published, since tokens of theirs may be on their way.",
            "Try again in a quarter of an hour.",
        )
    if following is None:
        following = new_key()
        write_key(files.next, following)
    rest = [key for key in others if key.get("kid") != following["kid"]]
    publish(files, [public_part(current), public_part(following), *rest])
    return following


def sign_with_next(files: KeyFiles, now: float) -> str:
    """Sign with it from here on; gives its kid. Whoever signs looks at the file each time."""
    following = read_signing_key(files.next)
    files.next.replace(files.signing)
    _publish_signing(files, following, now)
    return str(following["kid"])


def cut_off(files: KeyFiles, kid: str) -> None:
    """End a key at once, that signs no more. It stands there by name until `forget`, when everybody was told."""
    following = next_key(files)
    if following is not None and following["kid"] == kid:
        files.next.unlink()
    publish(files, [key | {"exp": _CUT_OFF} if key.get("kid") == kid else key for key in published(files)])


def forget(files: KeyFiles, kid: str) -> None:
    """Take a key away that was cut off."""
    publish(files, [key for key in published(files) if key.get("kid") != kid or not is_cut_off(key)])


def is_over(key: dict[str, Any], now: float) -> bool:
    """Tell whether a published key has come to its end, and need not stand there."""
    return _has_end(key) and _CUT_OFF < key["exp"] <= now


def is_cut_off(key: dict[str, Any]) -> bool:
    """Tell whether it was ended before its time."""
    return _has_end(key) and key["exp"] == _CUT_OFF


def _has_end(key: dict[str, Any]) -> bool:
    return type(key.get("exp")) is int


def _others(files: KeyFiles, kid: str, now: float) -> list[dict[str, Any]]:
    return [key for key in published(files) if key.get("kid") != kid and not is_over(key, now)]


def _publish_signing(files: KeyFiles, current: dict[str, Any], now: float) -> None:
    end = int(now) + files.old_stays
    others = (key if _has_end(key) else key | {"exp": end} for key in _others(files, current["kid"], now))
    publish(files, [public_part(current), *others])


def tidy(files: KeyFiles, now: float) -> None:
    """What a killed command left, and what has ended; nothing where another command is at it."""
    hold = Hold(files.lock)
    try:
        if hold.exclusive():
            finish(files, now)
            found = published(files)
            left = [key for key in found if not is_over(key, now)]
            if left != found:
                publish(files, left)
    finally:
        hold.close()
