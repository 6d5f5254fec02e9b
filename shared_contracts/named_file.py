"""A file that a person or a setting names: opened once, and read whole where it is a regular one of bounded length.

Invariant: nothing is waited for and nothing without an end is read, whatever a name leads to. What counts is what was
opened, not what the name led to a moment before.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

# Of a pipe O_NONBLOCK opens the reading end at once, and of a terminal O_NOCTTY takes no hold.
OPENING: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
TEXT_BYTES_MAX: Final = 1_000_000
NAME_BYTES_MAX: Final = 255
PATH_BYTES_MAX: Final = 4095  # Linux's PATH_MAX, without the NUL at its end
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
Stamp: TypeAlias = tuple[int, int, int, int] | None  # changed (ns), size, inode, device; None where there is no file
_PART_BYTES = 1 << 20
_KINDS = (
    (stat.S_ISDIR, "Is a directory; name the file in it that is meant"),
    (stat.S_ISFIFO, "it is a pipe; write what comes out of it to a file and name that"),
)


@dataclass(frozen=True, slots=True)
class Unread:
    """Why there is no content, and what to do; `errno` is the system's number where it refused."""

    why: str
    errno: int | None = None

    @property
    def missing(self) -> bool:
        """Whether there is nothing of that name."""
        return self.errno == errno.ENOENT


def read_file(path: Path, bytes_max: int, *, secret: bool = False, decides: bool = False) -> bytes | Unread:
    """Give the content; links are followed.

    A secret is not read where it is `exposed`, and what decides whom is trusted or what somebody may is not believed
    where everybody can write it.
    """
    descriptor = open_file(path)
    if isinstance(descriptor, Unread):
        return descriptor
    try:
        status = os.fstat(descriptor)
        if secret and (found := exposed(status)) is not None:
            return Unread("; ".join(found))
        if decides and status.st_mode & stat.S_IWOTH:
            return Unread("everybody can write it; look at what is in it, then chmod o-w")
        return read_open(descriptor, bytes_max)
    finally:
        os.close(descriptor)


def stamp_of(path: Path) -> Stamp:
    """Tell one content from another by a `stat`; links are followed.

    Of the times the one that nobody can set: what comes out of an archive can have the old one.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


def read_text(path: Path, *, secret: bool = False) -> str | Unread:
    """Give the text of a small file, such as one that holds a password and nothing else."""
    content = read_file(path, TEXT_BYTES_MAX, secret=secret)
    if isinstance(content, Unread):
        return content
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return Unread("it is no text in UTF-8; save it as one")


def exposed(status: os.stat_result) -> tuple[str, str] | None:
    """Tell why a secret is in more hands than its owner's and root's, and what to do; None where it is not.

    What we own nobody else may use. What root owns its group may read: so a keeper of secrets gives one to a program
    that is not root, as Kubernetes does with `fsGroup`. It is PostgreSQL's rule for `ssl_key_file`.
    """
    mode, owner, us = stat.S_IMODE(status.st_mode), status.st_uid, os.geteuid()
    if owner not in {us, 0}:
        return f"it belongs to user id {owner}, neither to us ({us}) nor to root", f"run as its owner, or chown {us}"
    if mode & (OTHERS if owner == us else OTHERS & ~stat.S_IRGRP):
        mend = f"replace it if somebody may have read it, then chmod {600 if owner == us else 640}"
        return f"others can use it (mode {mode:04o})", mend
    return None


def open_file(path: Path) -> int | Unread:
    """Give a descriptor of a regular file, for whoever reads it in parts; it is the caller's to close."""
    try:
        descriptor = os.open(path, OPENING)
    except OSError as error:
        return _refused(error)
    except ValueError:  # a NUL, or a character that no name can hold
        return Unread("no file can have this name; name another")
    why = irregular(os.fstat(descriptor))
    if why is None:
        return descriptor
    os.close(descriptor)
    return Unread(why)


def read_open(descriptor: int, bytes_max: int) -> bytes | Unread:
    """Give the content of what is open, from its beginning; a file that grows meanwhile is no exception."""
    status = os.fstat(descriptor)
    why = irregular(status)
    if why is not None:
        return Unread(why)
    if status.st_size > bytes_max:
        return _too_long(bytes_max)
    parts, left = [], bytes_max + 1
    try:
        while left > 0 and (part := os.read(descriptor, min(left, _PART_BYTES))):
            parts.append(part)
            left -= len(part)
    except OSError as error:  # of the kernel's own files some have nothing to give yet
        return _refused(error)
    return b"".join(parts) if left > 0 else _too_long(bytes_max)


def irregular(status: os.stat_result) -> str | None:
    """Tell what it is instead of a regular file, and what to do; None for one."""
    if stat.S_ISREG(status.st_mode):
        return None
    return next((why for fits, why in _KINDS if fits(status.st_mode)), "it is a device; name a regular file")


def unnameable(path: Path, more_bytes: int = 0) -> str | None:
    """Tell why nothing can have this name with so much below it, before anything looks; None where it can."""
    try:
        parts = [os.fsencode(part) for part in path.absolute().parts]
    except UnicodeEncodeError:
        return "it holds a character that no name can hold; choose another name"
    if any(b"\0" in part for part in parts):
        return "it holds a NUL, which no name can hold; choose another name"
    if any(len(part) > NAME_BYTES_MAX for part in parts):
        return f"a name in it is longer than {NAME_BYTES_MAX} bytes; choose a shorter one"
    if sum(len(part) + 1 for part in parts) + more_bytes > PATH_BYTES_MAX:
        return f"the whole path is longer than {PATH_BYTES_MAX - more_bytes} bytes; choose a shorter one"
    return None


def _refused(error: OSError) -> Unread:
    if error.errno == errno.ENXIO:
        return Unread("it is a socket or a device; name a regular file", error.errno)
    return Unread(str(error.strerror), error.errno)


def _too_long(bytes_max: int) -> Unread:
    return Unread(f"it is larger than {bytes_max} bytes; name the file that is meant")
