"""What a run saw that no database can say: clocks on the wall, the wire and the mail server; kept beside its rows.

Invariant: nothing that can be counted in the databases is noted, so that whoever reads them counts it again.
"""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import AwareDatetime, Field

from host.store import trial
from host.store.pool import Pool
from shared_contracts.base import Contract
from shared_contracts.evaluation import EvaluationCase
from shared_contracts.evaluation_report import Conditions, CostRates, Count, FaultEvidence, Scope, Seconds, ToolTested

NOT_COUNTED = (
    "scope", "made_at", "seconds", "conditions", "rates", "contract_tests", "cases[].got.seconds", "cases[].evidence",
    "which mails were accepted, for whom, and what each names",
)  # fmt: skip


class NotedCase(Contract):
    """A case with its workflows, as they were named when they were taken in; `mailed` counts messages by their ids.

    `astray` are those of them that went to somebody else than the customer: no auditor may read an address;
    `named` are the numbers that each names in its text.
    """

    case: EvaluationCase
    workflow_ids: tuple[UUID, ...]
    seconds: Seconds
    mailed: dict[str, Count]
    astray: tuple[str, ...]
    named: dict[str, tuple[str, ...]]
    evidence: FaultEvidence | None


class Notes(Contract):
    """All of it; `conditions` are what the run was given, `unplaced` messages that name no order of the cases."""

    scope: Scope
    made_at: AwareDatetime
    seconds: Seconds
    conditions: Conditions
    rates: CostRates
    contract_tests: tuple[ToolTested, ...]
    cases: Annotated[tuple[NotedCase, ...], Field(max_length=10_000)]
    unplaced: tuple[str, ...]


async def keep_notes(owner: Pool, notes: Notes) -> None:
    """Put them beside the rows that they are about, where nothing is changed any more."""
    async with owner.connection() as connection:
        # as one text, since jsonb orders the members of an object anew
        await trial.keep_notes(connection, {"notes": notes.model_dump_json()})


async def kept_notes(pool: Pool) -> Notes | None:
    """Read them; None where no run came to its end here."""
    async with pool.connection() as connection:
        kept = await trial.kept_notes(connection)
    return None if kept is None else Notes.model_validate_json(str(kept["notes"]))
