"""The three stages, and what stands against the end of one.

Invariant: a stage is passed by what its cases have shown, all of it, and never by the time that has gone by.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

LAST = 3
CASES: dict[int, int] = {1: 10, 2: 20, LAST: 50}
WHAT: dict[int, str] = {1: "internal test orders", 2: "cooperating users", LAST: "ordinary use"}


@dataclass(frozen=True, slots=True)
class OpenStage:
    """The open stage. `cases` were taken in, and `ended` of them wait for nobody any more."""

    opening: int
    stage: int
    releases: dict[str, str]
    actor: str
    reason: str
    os_user: str
    authz: str | None
    at: datetime
    due: int
    cases: int
    ended: int
    checked: int
    wrong: int
    uncompensated: int
    same_releases: bool


@dataclass(frozen=True, slots=True)
class Reconciled:
    """How many rows were compared, and how many ids of each kind the two sides differ by."""

    compared: int
    untracked: int
    missing: int
    duplicate: int


def stands_against(open_stage: OpenStage, reconciled: Reconciled | None) -> tuple[str, ...]:
    """Name everything that keeps the stage from being passed; `reconciled` is None where nothing was compared yet."""
    found = (
        (not open_stage.same_releases, "new cases begin under another release than when it was opened"),
        (open_stage.ended < open_stage.due, f"{open_stage.ended} of {open_stage.due} cases have ended"),
        (open_stage.uncompensated > 0, f"{open_stage.uncompensated} compensations are unfinished"),
        *(_unchecked(open_stage) if open_stage.stage == LAST else ()),
        (open_stage.wrong > 0, f"{open_stage.wrong} cases were found wrong"),
        *(_differences(reconciled) if reconciled is not None else ()),
    )
    return tuple(said for applies, said in found if applies)


def _unchecked(open_stage: OpenStage) -> tuple[tuple[bool, str], ...]:
    checked, due = open_stage.checked, open_stage.due
    return ((checked < due, f"{checked} of {due} cases are checked by a person"),)


def _differences(reconciled: Reconciled) -> tuple[tuple[bool, str], ...]:
    kinds = ("untracked", "missing", "duplicate")
    counted = [(getattr(reconciled, kind), kind) for kind in kinds]
    return (
        (reconciled.compared == 0, "nothing was compared"),
        *((count > 0, f"{count} {kind}, by kessai reconcile") for count, kind in counted),
    )
