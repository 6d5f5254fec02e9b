"""What `kessai audit` writes with `--json`, each a closed document with a committed schema."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from shared_contracts.base import Contract


class RecordFinding(Contract):
    """One thing that is wrong with a record. `line` is the first that it is about, 0 where it is about none."""

    kind: Literal["changed", "removed", "inserted", "reordered", "truncated", "rewritten", "unsigned", "unsealed"]
    line: Annotated[int, Field(ge=0)]
    rows: tuple[str, ...]
    why: str


class RecordSide(Contract):
    """One side's sealed record. `seen_by_other`: up to which line the other side has kept a head that agrees."""

    side: Literal["host", "tools"]
    first: Annotated[int, Field(ge=1)]
    last: Annotated[int, Field(ge=0)]
    lines: Annotated[int, Field(ge=0)]
    heads: Annotated[int, Field(ge=0)]
    seen_by_other: Annotated[int, Field(ge=0)]
    waiting: Annotated[int, Field(ge=0)]
    lost_by_restore: Annotated[int, Field(ge=0)]
    erased: tuple[str, ...]
    findings: tuple[RecordFinding, ...]


class RecordVerified(Contract):
    """`kessai audit verify`."""

    at: AwareDatetime
    whole: bool
    sides: tuple[RecordSide, ...]


class RecordExported(Contract):
    """`kessai audit export`: how many lines of each side."""

    file: str
    host: Annotated[int, Field(ge=0)]
    tools: Annotated[int, Field(ge=0)]


class RecordCut(Contract):
    """`kessai audit cut`: the line behind which the host's record begins, 0 where nothing was that old."""

    before: AwareDatetime
    host_cut_to: Annotated[int, Field(ge=0)]
    tools_too: bool
