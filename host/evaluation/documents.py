"""What is computed of a report: its rates, its cost, the gate's answer, and a comparison; closed documents.

Invariant: a rate stands with what it was counted from. Where nothing could be counted it is null, neither 0 nor 100.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from host.evaluation.codes import Condition
from shared_contracts.base import Contract
from shared_contracts.evaluation import Category, FaultKind
from shared_contracts.evaluation_report import Compared, Component, Conditions, Problem, Scope

Count = Annotated[int, Field(ge=0)]  # a sum of what a report holds may be larger than each of them can be
Percent = Annotated[float, Field(ge=0, le=100)]
Amount = Annotated[float, Field(ge=0)]
Ids = tuple[str, ...]


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


RefusalCode = Literal[
    "too_few_cases", "case_repeated", "contradicts_itself", "fault_not_proved", "nothing_compared",
    "compared_too_little", "cost_component_missing", "cost_per_item_zero", "scored_otherwise", "contract_test_failed",
    "contract_test_of_another_version", "stop_unasked", "stop_engaged", "not_signed", "not_pre_production",
]  # fmt: skip


class Refusal(Contract):
    """Why the report proves nothing, whatever it says of its cases."""

    code: RefusalCode
    said: str
    ids: Ids


class ConditionView(Contract):
    """One of the six: whether it held, how that is known, and the ids of what broke it."""

    condition: Condition
    held: bool
    said: str
    ids: Ids


class Incident(Contract):
    """One severe finding: one is enough."""

    id: str
    code: str
    said: str


class Unmatched(Contract):
    """A case that is not as expected."""

    id: str
    problems: tuple[Problem, ...]


class Shown(Contract):
    """Whether this report shows something, and by what; null: it does not say."""

    shown: bool | None
    said: str


class Claim(Contract):
    """Three conclusions about one part that do not follow from each other."""

    subject: Literal["control_plane", "tools", "model"]
    code_exists: Shown
    contract_test_passes: Shown
    live_system_tried: Shown


class FaultsShow(Contract):
    """One of the three things that faults are done for; `shown` is null where no case is of that kind."""

    what: Literal["stops", "recovers", "within_permission"]
    shown: bool | None
    said: str
    ids: Ids


class GateView(Contract):
    """`kessai eval gate`: passed where nothing is refused, all six hold, nothing is severe, and all is as expected.

    A release passes by a report of the scope `pre_production` alone.
    """

    passed: bool
    said: str
    scope: Scope
    made_at: AwareDatetime
    build: str
    versions: Conditions
    refused: tuple[Refusal, ...]
    conditions: tuple[ConditionView, ...]
    severe: tuple[Incident, ...]
    unmatched: tuple[Unmatched, ...]
    claims: tuple[Claim, ...]
    faults_show: tuple[FaultsShow, ...]  # empty where nothing was done to any case
    measures: Measures
    cost: Cost


class Demonstrated(Contract):
    """One thing that was shown; `said` is what was read of it afterwards, line by line."""

    what: Literal["back_off", "confirmation_query", "compensation", "stop"]
    held: bool
    said: tuple[str, ...]


class DemoView(Contract):
    """`kessai demo`: held where each of the four was seen to hold."""

    held: bool
    build: str
    shown: tuple[Demonstrated, ...]


class Difference(Contract):
    """What is not the same in both reports, so that they cannot be compared."""

    what: str
    before: str
    after: str
    ids: Ids


class Groups(Contract):
    """The three groups, chosen from the report before, and the places by which neighbours were."""

    failed: Ids
    neighbours: Ids
    controls: Ids
    states: tuple[str, ...]
    tools: tuple[str, ...]


class Side(Contract):
    """What one of the two reports is of."""

    made_at: AwareDatetime
    build: str
    workflow_release: str
    matched: Rate


Verdict = Literal["fixed", "partly_fixed", "no_effect", "regression"]


class Comparison(Contract):
    """What a change mended and what it broke.

    `severe` are the incidents after, `new` those that were not there before; `worse` the neighbours and controls that
    were as expected before and are not after. `unaccounted`: what the three-way comparison after found, by id.
    `beside`: what got worse that no case shows, in words.
    """

    groups: Groups
    fixed: Rate
    neighbours: Rate
    control_regression: Rate
    severe: tuple[Incident, ...]
    new: tuple[Incident, ...]
    worse: tuple[Unmatched, ...]
    unaccounted: Ids
    beside: tuple[str, ...]
    verdict: Verdict


class CompareView(Contract):
    """`kessai eval compare`. Where `refused` is not empty nothing was compared, and `comparison` is null."""

    refused: tuple[Difference, ...]
    changed_component: Component | None
    before: Side
    after: Side
    comparison: Comparison | None
    said: str


class Discrepancy(Contract):
    """One row that the other side does not bear out. `case` is a workflow's id, or an outside host's task."""

    kind: Literal["untracked", "missing", "duplicate"]
    id: str
    tool: str
    why: str
    meaning: str
    case: str | None
    idempotency_key: str | None


class Reconciliation(Compared):
    """`kessai reconcile`: the comparison, each id with what is wrong with it; `under_way` is counted and not judged.

    Where nothing was compared, nothing agrees.
    """

    at: AwareDatetime
    agree: bool
    under_way: Count
    differences: tuple[Discrepancy, ...]
