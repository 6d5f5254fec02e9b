"""What an evaluation leaves: one entry per case, what was counted on both sides, and what follows from it.

Invariant: an entry holds what was seen; every rate, cost and verdict is computed from entries alone, so that whoever
has the report can compute them again.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from shared_contracts.base import Contract, Identifier, Label
from shared_contracts.evaluation import Category, Decision, Effects, Expected, Fault

Count = Annotated[int, Field(ge=0, le=10**9)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Price = Annotated[float, Field(ge=0, le=1e9)]
NO_MODEL = "no model"
Component = Literal["orchestrator", "tool", "authorization", "persistence", "notification", "planner"]
Place = Literal["wire", "mail", "clock", "database", "process"]
# what was run: a release passes by the first alone
Scope = Literal["pre_production", "faults", "without_updates", "retail"]
FORMAT: Final = "kessai-evaluation/4"


class Problem(Contract):
    """Why an entry does not count as matched. `severe`: one of these fails the whole run."""

    code: Label
    severe: bool
    said: str


class FaultEvidence(Contract):
    """What was seen outside the host, and where; `fired`: how often, as whoever made the fault counted it there."""

    seen: Place
    fired: Count
    details: tuple[str, ...]


class Got(Contract):
    """What was seen of a case. Effects are counted at the provider, calls in the tool server's log.

    `undone`: of those effects, the returns that stand cancelled there and the notices that are corrected.
    `wrong_returns` and `wrong_notices`: the ids of effects that are of another order or customer than the request's; of
    returns that are of other lines, quantities or another reason; of notices of another return than the case's.
    `retries` are attempts beyond the first of each call, and stand in `calls` too. `active_seconds` is the longest time
    at work of one workflow, as the limits count it; `seconds` is the clock on the wall.
    """

    workflow_ids: tuple[UUID, ...]
    state: str
    reason: str
    gaps: tuple[str, ...]  # each move that does not go on from the one before it, by workflow and number
    reached: tuple[str, ...]  # each business state that the case was in, in the order of the first time
    path: tuple[str, ...]
    calls: Count
    model_calls: Count
    refused_proposals: Count
    engine_reads: Count
    undoing_calls: Count
    retries: Count
    effects: Effects
    undone: Effects
    approver: str | None
    compensation: Literal["required", "done", "impossible", "overdue"] | None  # done: within its deadline
    wrong_returns: tuple[str, ...]
    wrong_notices: tuple[str, ...]
    handover: bool | None  # whether its sheet was made; null where none is due
    handover_reason: str | None
    return_ids: tuple[str, ...]  # of the case's returns at the provider: the numbers that its customer is to be told
    told_ja: str
    seconds: Seconds
    active_seconds: Seconds


class Entry(Contract):
    """One case: what was asked of it, what was seen, and what is wrong with it."""

    id: Identifier
    category: Category
    automatable: bool
    needs_human: bool
    has_side_effect: bool
    needs_compensation: bool
    decision: Decision | None
    fault: Fault | None
    expected: Expected
    got: Got
    evidence: FaultEvidence | None
    problems: tuple[Problem, ...]


class Compared(Contract):
    """The three-way comparison: the ledger, the tool server's log, and its business tables; each by id."""

    compared: Count
    external: Count
    untracked: tuple[str, ...]
    missing: tuple[str, ...]
    duplicate: tuple[str, ...]


class Conditions(Contract):
    """What has to be the same before and after, for two reports to be compared, and what may differ in one part."""

    dataset_sha256: str
    seed: int
    concurrency: Annotated[int, Field(ge=1)]
    order_snapshot: str
    policy: str
    authz: str
    workflow_release: str
    tools: dict[str, str]  # contract version of each tool
    approvals: dict[str, str]  # what each tool, and the release, asks a person's approval for
    planner: str
    model: str  # NO_MODEL where the planner has none
    changed_component: Component | None


class CostRates(Contract):
    """What each thing costs, in the currency's minor unit; settings of whoever evaluates, not measurements.

    `basis` is `assumed` where nobody gave rates, so that those packaged here were taken. `retry` comes on top of its
    call. A rate of zero is a component that nobody has put a price on.
    """

    basis: Literal["assumed", "given"]
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    model_call: Price
    tool_call: Price
    retry: Price
    approver_minute: Price
    minutes_per_decision: Price
    compensation_call: Price


class RunLimits(Contract):
    """The hard limits of a workflow, as the release has them that was evaluated."""

    calls: Annotated[int, Field(ge=1)]
    refused_proposals: Annotated[int, Field(ge=1)]
    active_seconds: Seconds


class ToolTested(Contract):
    """How many of a tool's contract tests passed, of which build of it and of which version of its contract."""

    tool: Label
    version: Label
    build: str
    passed: Count
    of: Annotated[int, Field(ge=1)]


class Stopped(Contract):
    """What stopped all work meanwhile, and the workflow in which it was found, if it was in one."""

    cause: str
    reason: str
    workflow_id: UUID | None


class EvaluationReport(Contract):
    """`report.json`. `contract_tests` is empty where none were run beside it.

    `stops`: each was lifted, so that the other cases were run; `stopped` are the scopes in which one stood at the end.
    `signature` is of everything else, by the key of the home in which the cases were run.
    """

    format: Literal["kessai-evaluation/4"]
    scope: Scope
    made_at: AwareDatetime
    seconds: Seconds
    build: str
    conditions: Conditions
    rates: CostRates
    limits: RunLimits
    contract_tests: tuple[ToolTested, ...]
    cases: Annotated[tuple[Entry, ...], Field(max_length=10_000)]
    compared: Compared
    stops: tuple[Stopped, ...]
    stopped: tuple[str, ...]
    signature: Annotated[str, Field(max_length=2000)]
