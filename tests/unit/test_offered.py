"""What a planner may be shown: in each state of each kind, and whatever every factor says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.domain.principals import AuthorizationSet, Principal
from host.domain.step import Step
from host.domain.workflow import Workflow, states
from host.engine.decide import offered
from host.engine.parts import Kind, Parts
from host.workflows.claims import CLAIMS
from host.workflows.returns import RETURNS
from shared_contracts.contract import Scope
from shared_contracts.tools import TOOLS
from tests.support.engine import DESK, HEAD
from tests.support.fake_tools import FakeTools
from tests.unit.workflow_state import MOVES, call, state

NAMES, SCOPES = frozenset(TOOLS), frozenset(Scope)
WRITES = {"create_return", "cancel_return", "send_return_notice", "send_correction_notice"}
NOTHING: frozenset[Any] = frozenset()


@dataclass(frozen=True)
class World:
    """All that decides, as a test has it; as it stands here nothing is in the way of any tool."""

    at: str = "ELIGIBLE"
    catalogue: frozenset[str] = NAMES
    scopes: frozenset[Scope] = SCOPES
    stage: frozenset[str] = NAMES  # what the state asks for
    answered: frozenset[str] = NAMES  # what contracts want to come first
    complete: frozenset[str] = NAMES  # contracts without a blank
    listed: frozenset[str] = NAMES
    tenant: str = "acme-jp"
    drafts: bool = False
    stops: tuple[bool, bool] = (False, False)  # of updates, of reads

    def offered(self, workflow: Workflow | None = None) -> frozenset[str]:
        """Ask the engine; by a kind's own table where one is given."""
        stage = {**RETURNS.tools, self.at: tuple(sorted(self.stage))}
        asked = replace(RETURNS, tools=stage) if workflow is None else workflow
        known = [call(n, tool) for n, tool in enumerate(sorted(self.answered), 1)]
        here = state(self.at, calls=tuple(known), kind=asked.kind, release=asked.release)
        updates, reads = self.stops
        stopped = replace(here.control, updates_stopped=updates, reads_stopped=reads)
        step = Step(replace(here, control=stopped), asked, MOVES, claim=False, active_ms=0)
        return offered(self.parts(asked), step)

    def parts(self, workflow: Workflow) -> Parts:
        desk = Principal(name=DESK.name, tenant_id=self.tenant, roles=(), scopes=self.scopes, tools=self.catalogue)
        approvers = () if self.drafts else (HEAD,)  # a kind that asks for approvals and has nobody who may give one
        rights = AuthorizationSet(version="authz-v7", principals=(desk,), approvers=approvers, operators=())
        blank = {name: replace(TOOLS[name], evidence=()) for name in NAMES - self.complete}
        kind = RETURNS if workflow.kind == RETURNS.kind else workflow
        nowhere: Any = None
        return Parts(
            pool=nowhere, tools=FakeTools(names=self.listed), planner=nowhere,
            kinds={(kind.kind, kind.release): Kind(kind, MOVES)}, registry={**TOOLS, **blank}, authorization=rights,
            owner="nobody", lease_seconds=1,
        )  # fmt: skip

    def expected(self) -> frozenset[str]:
        """Say of each tool by itself whether anything forbids it."""
        return frozenset(name for name in NAMES if self._granted(name))

    def _granted(self, name: str) -> bool:
        updates, reads = self.stops
        refused = reads or (name in WRITES and (updates or self.drafts))
        held = self.tenant == "acme-jp" and name in self.catalogue and TOOLS[name].scope in self.scopes
        asked = name in self.stage and all(first in self.answered for first in TOOLS[name].after)
        return held and asked and not refused and name in self.complete and name in self.listed


# Each state · the whole of what is shown there, where everything else grants everything and all has been answered.
SHOWN: dict[str, dict[str, set[str]]] = {
    "returns": {
        "RECEIVED": {"get_order"},
        "ORDER_VERIFIED": {"check_return_policy"},
        "ELIGIBLE": {"create_return"},
        "WAITING_APPROVAL": set(),
        "APPROVED": {"create_return"},
        "RETURN_CREATED": {"send_return_notice"},
        "RETRY_WAIT": set(),
        "COMPENSATION_REQUIRED": set(),
        "COMPLETED": set(),
        "REJECTED": set(),
        "EXPIRED": set(),
        "NEEDS_REVIEW": set(),
    },
    "claims": {
        "RECEIVED": {"caseops_get_case_snapshot"},
        "CASE_READ": {"caseops_get_policy_requirements"},
        "RULES_READ": {"caseops_list_unclassified_documents"},
        "DOCUMENTS_LISTED": {"caseops_resolve_document_alias"},
        "RETRY_WAIT": set(),
        "COMPLETED": set(),
        "REJECTED": set(),
        "NEEDS_REVIEW": set(),
    },
}


@pytest.mark.parametrize("workflow", [RETURNS, CLAIMS], ids=lambda workflow: workflow.kind)
def test_in_each_state_of_a_kind_exactly_its_tools_are_shown(workflow):
    shown = SHOWN[workflow.kind]
    assert set(shown) == set(states(workflow))
    assert {name: World(at=name).offered(workflow) for name in shown} == shown
    assert not shown["RECEIVED"] & WRITES


def some(members: frozenset[Any]) -> st.SearchStrategy[frozenset[Any]]:
    """A subset, most often nearly the whole: what few factors leave over would all be empty."""
    few = st.frozensets(st.sampled_from(sorted(members)), max_size=3)
    return few.map(lambda gone: members - gone) | st.frozensets(st.sampled_from(sorted(members)))


SETS = {"catalogue": NAMES, "scopes": SCOPES, "stage": NAMES, "answered": NAMES, "complete": NAMES, "listed": NAMES}
FEW = settings(max_examples=20)
SELDOM = st.sampled_from([False, False, True])
WORLDS = st.builds(
    World,
    at=st.sampled_from(states(RETURNS)),
    tenant=st.sampled_from(["acme-jp", "acme-jp", "acme-jp", "hoshi-jp"]),
    drafts=SELDOM,
    stops=st.tuples(SELDOM, SELDOM),
    **{name: some(members) for name, members in SETS.items()},
)


@settings(max_examples=80)
@given(WORLDS)
def test_what_is_offered_is_what_every_factor_grants_and_nothing_else(world):
    assert world.offered() == world.expected()


@pytest.mark.parametrize("factor", ["catalogue", "stage", "complete", "listed"])
@FEW
@given(world=WORLDS, tool=st.sampled_from(sorted(NAMES)))
def test_a_tool_that_one_factor_takes_out_is_gone_and_every_other_stays(factor, world, tool):
    without = replace(world, **{factor: getattr(world, factor) - {tool}})
    assert without.offered() == world.offered() - {tool}


@FEW
@given(world=WORLDS, scope=st.sampled_from(sorted(SCOPES)))
def test_a_scope_stops_and_drafts_take_out_their_own_tools_alone(world, scope):
    before = world.offered()
    of_scope = {name for name in NAMES if TOOLS[name].scope is scope}
    assert replace(world, scopes=world.scopes - {scope}).offered() == before - of_scope
    assert replace(world, drafts=True).offered() == before - WRITES
    assert replace(world, stops=(True, world.stops[1])).offered() == before - WRITES
    assert replace(world, stops=(world.stops[0], True)).offered() == NOTHING


@pytest.mark.parametrize("factor", ["catalogue", "scopes", "stage", "complete", "listed", "tenant"])
@FEW
@given(world=WORLDS)
def test_an_empty_factor_leaves_nothing_and_never_all(factor, world):
    assert replace(world, **{factor: "hoshi-jp" if factor == "tenant" else NOTHING}).offered() == NOTHING


def test_each_of_these_worlds_lets_something_through():
    assert World().offered() == NAMES
