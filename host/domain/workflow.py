"""What a workflow kind is: one screen of data that everything else reads, and the moves that follow from it.

`legal_moves` spells every pair of a control edge and a business move that may ever stand in a history; the
database holds them as rows that checkpoints refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel

from host.domain.baseline import Baseline
from host.domain.control import INTO_END, OBSERVED, PLAIN, REFUSED, REOPENED, STARTED, Actor, Control, Edge
from host.domain.limits import Limits
from host.domain.proposals import Final, PlannerDecision, PlannerView
from host.domain.severe import Severe
from host.domain.undo import Undo
from shared_contracts.base import Money
from shared_contracts.record import Result

# While a request is under way no clock, approver or operator moves the row: their event waits for its outcome.
_UNDER_WAY = frozenset({Control.TOOL_RUNNING, Control.OBSERVING})
RESUME = "<resume_state>"  # the target of `due`: whatever state the retry left


class Version(StrEnum):
    """What a move rests on. The row's own version guards every commit; the others are compared by `unmet`."""

    ROW = "row"
    ORDER_SNAPSHOT = "order_snapshot"
    POLICY = "policy"
    AUTHZ = "authz"
    CONTRACT = "contract"


@dataclass(frozen=True, slots=True)
class Transition:
    """One business move: prerequisite state, event, target, actor, the versions that it reads, and how long.

    `within_seconds` counts active time in `source` (waits: the database's clock); None is no bound of its own.
    `rides` are the control edges that carry the move; a move into an end rides on the edges into that end.
    """

    source: tuple[str, ...]
    on: str
    target: str
    by: tuple[Actor, ...]
    reads: tuple[Version, ...]
    within_seconds: float | None
    rides: tuple[Edge, ...] = (OBSERVED,)


def T(  # noqa: N802 - the head of a table's row
    source: str | tuple[str, ...],
    on: str,
    target: str,
    by: tuple[Actor, ...],
    reads: tuple[Version, ...],
    within: float | None,
    *rides: Edge,
) -> Transition:
    """Write one row of the table; a move that names no edge rides on `observing → planning` or into its end."""
    sources = (source,) if isinstance(source, str) else source
    return Transition(sources, on, target, by, reads, within, rides if rides else (OBSERVED,))


class Move(NamedTuple):
    """One legal checkpoint: both machines before and after, the event and its actor."""

    control_from: str
    control_to: str
    business_from: str
    business_to: str
    event: str
    actor: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What code makes of an answered call: the business event, the reason, and the decision behind it.

    `versions` are those of the data that was read; None is an answer that there is no such data to have one.
    """

    event: str
    reason: str
    versions: Mapping[Version, str] | None = field(default_factory=dict)
    rule_version: str | None = None
    facts: Mapping[str, Any] | None = None
    contested: bool = False  # it rests on what another case may be doing to the same units


@dataclass(frozen=True, slots=True)
class Approvable:
    """What of an action an approver says yes to, beside the call itself."""

    amount: Money
    destination_ref: str
    order_version: int
    policy_version: str


class Language(StrEnum):
    """Languages that a customer is written to."""

    JA = "ja"
    EN = "en"


@dataclass(frozen=True, slots=True)
class Seen:
    """One answered call as workflow code sees it: a result, or the code of a refusal."""

    tool: str
    result: Mapping[str, Any] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Ended:
    """A case at its end, as its result is made from: verified effects' ids by name, and each reference once."""

    case: Mapping[str, Any]
    state: str
    reason: str
    ids: Mapping[str, str]
    seen: tuple[Seen, ...]
    evidence_refs: tuple[str, ...]


@dataclass(frozen=True)
class Workflow:
    """One business. Functions are pure; none of them sees a credential, a key or a clock."""

    kind: str
    release: str
    initial: str
    case: type[BaseModel]
    transitions: tuple[Transition, ...]
    tools: Mapping[str, tuple[str, ...]]
    ends: Mapping[str, tuple[Control, ...]]
    limits: Limits
    effects: tuple[str, ...]  # what has to be verified for the successful end
    success: str  # the end that means done
    retry_state: str | None
    approval_state: str | None
    compensation_state: str | None
    resource: Callable[[Mapping[str, Any]], str]
    customer: Callable[[Mapping[str, Any]], str]
    units: Callable[[Mapping[str, Any]], tuple[str, ...]]  # what two cases must not work on at once
    bindings: Callable[[Mapping[str, Any], tuple[Seen, ...]], Mapping[str, Any]]
    interpret: Callable[[Mapping[str, Any], Seen], Finding | None]
    needs_approval: Callable[[str, tuple[Seen, ...], Mapping[str, Any]], bool]  # by the contract's condition
    # what a person approves, None where the evidence does not tell; a kind without it cannot ask anybody
    approvable: Callable[[tuple[Seen, ...]], Approvable | None] | None
    propose: Callable[[PlannerView], PlannerDecision]
    # the case, the tool whose effect is undone, the ids of all that was made, and the answers of what undid so far
    undo: Callable[[Mapping[str, Any], str, Mapping[str, str], tuple[Seen, ...]], Undo]
    # of a tool that may need an approval: whether what was made went beyond what was approved, None: nothing was
    overstepped: Callable[[tuple[Seen, ...], Mapping[str, Any], Money | None], bool]
    severe: Callable[[str, Mapping[str, Any]], Severe]  # what an effect is that differs in these fields
    message: Callable[[str, str, Language, Mapping[str, str], tuple[Seen, ...]], str]
    outcome: type[Result]
    result: Callable[[Ended], Result]  # what the business got, from states, observations and verified effects alone
    owners: Mapping[str, str]  # who answers for a case in each state
    # whether a planner's word that the task is done holds by what was observed, and what it means; None: it does not.
    # A kind without it ends by verified effects alone and takes no word for it
    finish: Callable[[Mapping[str, Any], tuple[Seen, ...], Final], Finding | None] | None = None
    # what the case comes to from structured fields alone, or the read that this takes next; a kind may have none
    baseline: Callable[[Mapping[str, Any], tuple[Seen, ...]], Baseline] | None = None

    def transition(self, source: str, event: str, by: Actor, *, ends: bool | None = None) -> Transition | None:
        """Find the move that `event` makes from `source` where `by` says so: a word may mean two things to two.

        `ends` asks for the one that leads into an end, or for the one that does not.
        """
        found = (row for row in self.transitions if row.on == event and source in row.source and by in row.by)
        return next((row for row in found if ends is None or self.is_end(row.target) is ends), None)

    def is_end(self, state: str) -> bool:
        """Tell whether the engine's part is over in `state`."""
        return state in self.ends


def unmet(row: Transition, told: Mapping[Version, str], held: Mapping[str, str]) -> tuple[Version, ...]:
    """Name the versions that forbid the move: one that it reads and was not told, or one told that is not held."""
    resting = (version for version in dict.fromkeys((*row.reads, *told)) if version is not Version.ROW)
    return tuple(version for version in resting if version not in told or told[version] != held.get(version))


def pinned(workflow: Workflow) -> frozenset[str]:
    """Name the versions that some move of the kind rests on; everybody's rights are looked at in every kind."""
    return frozenset({Version.AUTHZ.value, *(version.value for row in workflow.transitions for version in row.reads)})


def told(workflow: Workflow, case: Mapping[str, Any], seen: tuple[Seen, ...]) -> dict[Version, str]:
    """Gather the versions that the answers so far have told."""
    findings = (workflow.interpret(case, one) for one in seen)
    versions = (finding.versions for finding in findings if finding is not None and finding.versions is not None)
    return {name: version for each in versions for name, version in each.items()}


def states(workflow: Workflow) -> tuple[str, ...]:
    """List every state of the kind, in the order of the table."""
    named = [workflow.initial]
    for row in workflow.transitions:
        named += [state for state in (*row.source, row.target) if state != RESUME]
    return tuple(dict.fromkeys(named))


def legal_moves(workflow: Workflow) -> frozenset[Move]:
    """Spell every checkpoint that this kind may ever write."""
    first = Move("", Control.CREATED, "", workflow.initial, "received", Actor.ENGINE)
    return frozenset({first, *_plain_moves(workflow), *_business_moves(workflow)})


def _plain_moves(workflow: Workflow) -> set[Move]:
    moves = set()
    for edge, event in PLAIN.items():
        places = (workflow.initial,) if edge == STARTED else tuple(workflow.tools)
        if edge == REFUSED and workflow.approval_state is not None:
            places += (workflow.approval_state,)  # a denial gives the call back before it ends the case
        moves |= {Move(*edge, state, state, event, Actor.ENGINE) for state in places}
    return moves | _reopened(workflow)


def _reopened(workflow: Workflow) -> set[Move]:
    """An operator may take up again what ended without an answer; what follows is a move of its own."""
    return {
        Move(*edge, state, state, "reopened", Actor.OPERATOR)
        for edge in REOPENED
        for state, ends in workflow.ends.items()
        if edge.source in ends
    }


def _business_moves(workflow: Workflow) -> set[Move]:
    return {
        Move(*edge, source, target, row.on, actor)
        for row in workflow.transitions
        for source in row.source
        for target in _targets(workflow, row)
        for edge in _edges(workflow, row)
        for actor in row.by
        if actor is Actor.ENGINE or edge.source not in _UNDER_WAY
    }


def _targets(workflow: Workflow, row: Transition) -> tuple[str, ...]:
    if row.target != RESUME:
        return (row.target,)
    return tuple(state for other in workflow.transitions if other.on == "transient" for state in other.source)


def _edges(workflow: Workflow, row: Transition) -> tuple[Edge, ...]:
    if row.rides != (OBSERVED,) or row.target not in workflow.ends:
        return row.rides
    return tuple(edge for end in workflow.ends[row.target] for edge in INTO_END[end])
