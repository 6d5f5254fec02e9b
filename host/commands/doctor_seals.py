"""What `doctor` says of the seals of both records: that each is sealed, and that each side has the other's newest head.

Invariant: a side that does not seal, or has not told, is said to be so; that nothing is heard is taken for no health.
"""

from __future__ import annotations

from collections.abc import Iterator

from host.domain.seal_walk import PENDING_SECONDS
from host.stack.doctor import Check
from shared_contracts.seal import SealLag

BETWEEN_SECONDS = 10.0  # two ages that are read one after the other, of clocks that may differ
RECORD, LOG, HEADS = "record sealed", "tool server's log sealed", "heads exchanged"
_OURS = (
    "start a worker with KESSAI_SEALER_DSN, KESSAI_SEAL_KEY_FILE and KESSAI_SEAL_KEYS_FILE (one machine: kessai up); "
    "where one runs, its log says sealing_waits or record_not_sealed, and why"
)
_THEIRS = (
    "start it with KESSAI_TOOLS_SEALER_DSN, KESSAI_TOOLS_SEAL_KEY_FILE and KESSAI_TOOLS_SEAL_KEYS_FILE, "
    "which kessai secrets makes; where it has them, its log says sealing_waits and why"
)
_BOTH = (
    "let a worker run that reaches the tool server, and give both one seal-keys.json; the worker's log says why as "
    "head_refused, the tool server's as refused with a reason that begins with head"
)


def checks(ours: SealLag | None, theirs: SealLag | str | None) -> Iterator[Check]:
    """Judge both sides; of a database that cannot be read its own checks tell."""
    if ours is not None:
        yield _sealed(RECORD, ours, _OURS)
    if isinstance(theirs, SealLag):
        yield _sealed(LOG, theirs, _THEIRS)
    elif theirs == "not_configured":
        yield Check(LOG, False, "nothing seals it: the tool server has no settings for it", _THEIRS)
    elif theirs is None:
        yield Check(LOG, True, "not told here", "")
    else:
        yield Check(LOG, False, f"the tool server cannot tell: {theirs}", _THEIRS)
    if ours is not None and isinstance(theirs, SealLag):
        yield _exchanged(ours, theirs)


def _sealed(check: str, lag: SealLag, mend: str) -> Check:
    if lag.waits is not None and lag.waits > PENDING_SECONDS:
        return Check(check, False, f"a line waits for its seal since {lag.waits:.0f} s", mend)
    if lag.signed is None:
        return Check(check, True, "nothing has been sealed yet, and nothing waits for long", "")
    return Check(check, True, f"the newest head was signed {lag.signed:.0f} s ago", "")


def _exchanged(ours: SealLag, theirs: SealLag) -> Check:
    lacking = [
        who
        for who, head, kept in (
            ("the tool server has not our newest head", ours.signed, theirs.kept),
            ("we have not the newest head of the tool server", theirs.signed, ours.kept),
        )
        if head is not None and head > PENDING_SECONDS and (kept is None or kept > head + BETWEEN_SECONDS)
    ]
    if lacking:
        return Check(HEADS, False, f"{' and '.join(lacking)}: each could rewrite what it has not given", _BOTH)
    given, received = _ago(theirs.kept), _ago(ours.kept)
    return Check(HEADS, True, f"the last of ours was taken: {given}; the last of theirs: {received}", "")


def _ago(seconds: float | None) -> str:
    return "none yet" if seconds is None else f"{seconds:.0f} s ago"
