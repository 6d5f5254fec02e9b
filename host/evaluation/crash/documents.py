"""What `kessai crash-matrix --json` prints: each place at which a program was killed, and what came of the case.

Invariant: a cell is right where nothing is wrong with it, and the matrix passed where every cell is right and both
sides agree over all of it; nothing else says so.
"""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from host.evaluation.crash.names import Victim, When
from shared_contracts.base import Contract, Label, Moment
from shared_contracts.evaluation_report import Compared

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class Effects(Contract):
    """What stands in the tool server's tables of one case."""

    returns: Count
    notices: Count
    cancellations: Count
    corrections: Count


class CrashCell(Contract):
    """One kill. `resume_seconds`: from the death to the case's end; null where it never came there."""

    path: Label
    victim: Victim
    boundary: Label
    when: When
    fired: bool
    workflow_id: UUID | None
    expected: Label
    reached: Label | None
    effects: Effects
    recoveries: Count
    resume_seconds: Seconds | None
    wrong: tuple[str, ...]
    right: bool


class CrashPath(Contract):
    """A way of writing that was run without a kill first: its boundaries, in the order in which they came."""

    path: Label
    victim: Victim
    what: str
    boundaries: tuple[Label, ...]
    wrong: tuple[str, ...]


class CrashMatrix(Contract):
    """`kessai crash-matrix`: the paths, and both sides of every boundary of each."""

    format: Literal["kessai-crash-matrix/1"]
    made_at: Moment
    build: str
    seconds: Seconds
    takeover_seconds: Seconds
    concurrency: Annotated[int, Field(ge=1)]
    paths: tuple[CrashPath, ...]
    cells: tuple[CrashCell, ...]
    compared: tuple[Compared, ...]
    stray_mails: tuple[str, ...]
    passed: bool
