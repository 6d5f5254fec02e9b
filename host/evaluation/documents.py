"""What is concluded from a report: the gate's answer, a demonstration, a comparison; closed documents of the commands.

Apart from `counted`, which is what a report is counted to before anybody concludes anything.
"""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime

from host.evaluation.codes import Condition
from host.evaluation.counted import Cost, Count, Measures, Rate
from shared_contracts.base import Contract
from shared_contracts.evaluation_report import Compared, Component, Conditions, Problem, Scope

Ids = tuple[str, ...]

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
