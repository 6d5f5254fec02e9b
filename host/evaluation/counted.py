"""What a report is counted to: its rates and its cost; closed documents.

Invariant: a rate stands with what it was counted from. Where nothing could be counted it is null, neither 0 nor 100.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shared_contracts.base import Contract
from shared_contracts.evaluation import Category, FaultKind

Count = Annotated[int, Field(ge=0)]  # a sum of what a report holds may be larger than each of them can be
Percent = Annotated[float, Field(ge=0, le=100)]
Amount = Annotated[float, Field(ge=0)]


class Rate(Contract):
    """`of` among `n` in percent, to one decimal, half up; null where `n` is 0."""

    value: Percent | None
    of: Count
    n: Count


class PerItem(Contract):
    """`of` divided by `n`, to one decimal, half up; null where `n` is 0."""

    value: Amount | None
    of: Count
    n: Count


class Rates(Contract):
    """The rates of a set of cases. The cases' own flags are the denominators.

    `matched`: as expected in every respect, of all. `automatic`: rightly completed and nobody asked, of what can be.
    `handed_over`: rightly given to a person, of what needs one. `duplicates`: more returns or notices than expected,
    of what has effects. `compensated`: undone by the deadline, of what has to be. `over_automated`: no person saw it,
    of what needs one. `over_handed`: a person had to see it, of what needs none. `calls`: every attempt, per completed
    case.
    """

    matched: Rate
    automatic: Rate
    handed_over: Rate
    duplicates: Rate
    compensated: Rate
    over_automated: Rate
    over_handed: Rate
    calls: PerItem


class CategoryRates(Contract):
    """The same of one category alone."""

    category: Category
    n: Count
    rates: Rates


class StateReach(Contract):
    """How many cases were in a state, and how many ended there.

    `furthest`: how many got so far on the way to COMPLETED and no further; `lost`: those of them that were expected to
    end otherwise. Both are null for a state that does not lie on that way.
    """

    state: str
    reached: Count
    ended: Count
    furthest: Count | None
    lost: Count | None


class FaultRow(Contract):
    """The cases of one fault: how many, of how many it is proved that it happened, and what held in how many."""

    kind: FaultKind
    n: Count
    proved: Count
    end: Count
    effects: Count
    retries: Count
    compensation: Count
    told: Count


class ReasonRank(Contract):
    """Why cases went to a person, the most frequent first; null: no class was recorded."""

    handover_reason: str | None
    cases: Count


class Measures(Contract):
    """Everything that is counted. `never_taken_in`: cases of which no state is known at all."""

    n: Count
    rates: Rates
    categories: tuple[CategoryRates, ...]
    funnel: tuple[StateReach, ...]
    never_taken_in: Count
    faults: tuple[FaultRow, ...]
    handover_reasons: tuple[ReasonRank, ...]
    calls: Count
    retries: Count
    engine_reads: Count
    undoing_calls: Count
    refused_proposals: Count


CostName = Literal["model", "tools", "retries", "approvers", "compensation"]


class CostPart(Contract):
    """One component: so much of it, at that rate. `said` is not empty where the number needs a word."""

    name: CostName
    quantity: Amount
    unit: str
    rate: Amount
    cost: Amount
    said: str


class Cost(Contract):
    """What the run cost in the currency's minor unit, to two decimals, half up, and per correctly completed case.

    `basis`: whether whoever evaluated gave the rates, or they were assumed. `zero`: an item, or else the whole,
    is nothing as it is shown, so that rates of next to nothing are none; `missing`: components that have no rate.
    """

    basis: Literal["assumed", "given"]
    currency: str
    parts: tuple[CostPart, ...]
    total: Amount
    items: Count
    per_item: Amount | None
    zero: bool
    missing: tuple[CostName, ...]
