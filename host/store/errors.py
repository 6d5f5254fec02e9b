"""What the host's database says no with, as exceptions that carry their meaning."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator


class StoreError(Exception):
    """The database refused a write by one of its rules."""

    def __init__(self, detail: str = "") -> None:
        """The docstring is the default message."""
        super().__init__(detail or (self.__doc__ or ""))


class StaleWorkflowError(StoreError):
    """Somebody else moved this workflow first; reload it."""


class StoppedError(StoreError):
    """A stop is engaged; nothing new begins."""


class ReadsStoppedError(StoppedError):
    """Every call is stopped, not only those that change something."""


class UnsettledElsewhereError(StoreError):
    """Another workflow ended in doubt over the same units."""


class OutOfTimeError(StoreError):
    """The workflow's time at work is used up, by the database's clock."""


class ApprovalOverError(StoreError):
    """The approval that the call rests on has run out, or nothing is asked any more."""


class ApproverKeyError(StoreError):
    """A key cannot be trusted as this person's."""


class OneAtATimeError(StoreError):
    """After a stop one workflow is driven at a time, and another one is."""


class NotLiftedError(StoreError):
    """The stop stays as it is, or there is none."""


class UnitsBusyError(StoreError):
    """Another workflow is at work on the same units; what it did will be known in a moment."""


class ReleaseMovedError(StoreError):
    """New cases of the kind begin under another release by now."""


class NotAdmittedError(StoreError):
    """The rollout does not let this case in, or nobody has said that none runs."""


class ActRefusedError(StoreError):
    """What an operator asked for is not possible where releases and stages stand."""


class InvariantError(StoreError):
    """The write would have broken an invariant that the database holds: a bug of ours."""


_BY_SQLSTATE: dict[str, type[StoreError]] = {
    "KS001": StoppedError,
    "KS002": UnsettledElsewhereError,
    "KS003": OutOfTimeError,
    "KS004": ReadsStoppedError,
    "KS005": UnitsBusyError,
    "KS006": ApprovalOverError,
    "KS007": OneAtATimeError,
    "KS010": InvariantError,
    "KS011": InvariantError,
    "KS012": InvariantError,
    "KS013": InvariantError,
    "KS014": InvariantError,
    "KS015": InvariantError,
    "KS016": InvariantError,
    "KS017": InvariantError,
    "KS018": StaleWorkflowError,
    "KS019": ApprovalOverError,
    "KS020": ApproverKeyError,
    "KS021": InvariantError,
    "KS022": InvariantError,
    "KS023": ApproverKeyError,
    "KS024": NotLiftedError,
    "KS025": NotLiftedError,
    "KS026": NotLiftedError,
    "KS027": ReleaseMovedError,
    "KS030": NotAdmittedError,
    "KS031": ActRefusedError,
    "23503": InvariantError,
    "23505": InvariantError,
    "23514": InvariantError,
}


@contextmanager
def refusals() -> Iterator[None]:
    """Turn the database's refusals into ours; everything else passes."""
    try:
        yield
    except psycopg.Error as error:
        known = _BY_SQLSTATE.get(error.sqlstate if error.sqlstate is not None else "")
        if known is None:
            raise
        raise known(str(error)) from error
