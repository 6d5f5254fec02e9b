"""Random answers, deaths, races, stops and clocks against the real database: after each step the invariants hold."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from host.domain.control import ENDS
from host.domain.state import State
from host.engine.drive import drive
from host.engine.parts import Parts
from host.engine.sweep import run_once
from host.store.errors import OneAtATimeError, StoppedError
from tests.support.crash import DiedError, Fate, doomed
from tests.support.engine import SCOPES, advance_clock, engage, engine, owners, rows, take
from tests.support.fake_tools import Answer, FakeTools, rejected, unknown, yen

READS = ("get_order", "check_return_policy", "get_return", "find_return", "find_notice", "get_return_links")
WRITES = ("create_return", "send_return_notice", "cancel_return", "send_correction_notice")
REFUSALS = ("rate_limited", "unavailable", "unreachable", "scope_missing", "bad_output", "not_found", "no_answer")

# One row that breaks an invariant is one too many.
BROKEN = {
    "7: a row is the fold of its history": """
        SELECT w.workflow_id FROM workflow w
          LEFT JOIN checkpoint c ON c.workflow_id = w.workflow_id AND c.seq = w.seq
          LEFT JOIN legal_transition m USING (move_id)
         WHERE m.control_to IS DISTINCT FROM w.control_state OR m.business_to IS DISTINCT FROM w.state
            OR w.seq <> (SELECT count(*) FROM checkpoint x WHERE x.workflow_id = w.workflow_id)""",
    "2: one effect in flight": """
        SELECT workflow_id FROM effect WHERE outcome IS NULL GROUP BY workflow_id HAVING count(*) > 1""",
    "3: one key, one effect": """
        SELECT idempotency_key FROM effect WHERE outcome IS NULL OR outcome = 'succeeded'
         GROUP BY tenant_id, idempotency_key HAVING count(*) > 1""",
    "9: done means verified": """
        SELECT w.workflow_id FROM workflow w WHERE w.state = 'COMPLETED' AND 2 <> (
            SELECT count(*) FROM effect e WHERE e.workflow_id = w.workflow_id AND e.verified_at IS NOT NULL)""",
    "1: an intent has its permission": """
        SELECT e.workflow_id FROM effect e LEFT JOIN decision d
            ON d.workflow_id = e.workflow_id AND d.n = e.decision_n AND d.committed_in = e.committed_in
         WHERE d.outcome IS DISTINCT FROM 'allow'""",
    "what is over is not under way": """
        SELECT workflow_id FROM workflow WHERE control_state IN ('completed', 'needs_human', 'stopped', 'failed')
           AND (lease_owner IS NOT NULL OR wake_at IS NOT NULL)""",
    "whoever waits has a timer or a person": """
        SELECT workflow_id FROM workflow WHERE lease_owner IS NULL AND wake_at IS NULL
           AND control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed')""",
    "a limit is a limit": """
        SELECT workflow_id FROM attempt JOIN call USING (workflow_id, step)
         WHERE purpose = 'call' AND outcome NOT IN ('cut_off', 'unreachable')
         GROUP BY workflow_id, undoes IS NULL HAVING count(*) > 6""",
    "an end has its audit row and its outbox row": """
        SELECT w.workflow_id FROM workflow w
         WHERE w.control_state IN ('completed', 'needs_human', 'stopped', 'failed')
           AND (1 <> (SELECT count(*) FROM audit a WHERE a.workflow_id = w.workflow_id AND a.action = 'workflow_ended')
                OR 1 <> (SELECT count(*) FROM outbox o WHERE o.workflow_id = w.workflow_id))""",
}


def at_rest(state: State) -> bool:
    """At an end, or waiting for a person."""
    return state.control.control in ENDS or state.task.state == "WAITING_APPROVAL"


class Returns(RuleBasedStateMachine):
    """A shop with an engine in a bad world."""

    workflows = Bundle("workflows")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.tools = FakeTools(refunds={"A-3": 60_000})
        self.parts: Parts = self.loop.run(self.stack.enter_async_context(engine(self.tools)))
        self.taken = 0

    def teardown(self) -> None:
        """In a world that is good again every workflow comes to an end, or waits for an approval."""
        self.tools.script.clear()
        for scope in SCOPES:
            engage(self.parts, scope, engaged=False)
        with owners(self.parts) as operator:  # what waited for a person to release it
            operator.execute("UPDATE workflow SET wake_at = clock_now() WHERE wake_reason = 'compensation'")
        try:
            ids = [one for (one,) in self.loop.run(rows(self.parts, "SELECT workflow_id FROM workflow"))]
            states: list[State] = []
            for _ in range(40):  # together: one may wait for what another has under way
                advance_clock(self.parts, 40)
                states = [self.loop.run(drive(self.parts, one)) for one in ids]
                if all(at_rest(state) for state in states):
                    break
            assert [state for state in states if not at_rest(state)] == []
            self.nothing_is_broken()
        finally:
            self.loop.run(self.stack.aclose())
            self.loop.close()

    @rule(target=workflows, order=st.integers(1, 3))
    def take_in(self, order: int) -> Any:
        self.taken += 1
        with suppress(StoppedError):
            return self.loop.run(take(self.parts, request_id=f"r-{self.taken}", order_id=f"A-{order}"))
        return multiple()

    @rule(tool=st.sampled_from(READS + WRITES), code=st.sampled_from(REFUSALS))
    def refuse_next(self, tool: str, code: str) -> None:
        self.script(tool, rejected(code))

    @rule(tool=st.sampled_from(WRITES), done=st.booleans(), code=st.sampled_from(["timeout", "internal_error"]))
    def lose_next(self, tool: str, done: bool, code: str) -> None:
        self.script(tool, self.tools.then(unknown(code)) if done else unknown(code))

    @rule(read=st.sampled_from(["get_return", "get_order"]), what=st.sampled_from(["order_id", "amount"]))
    def lie_next(self, read: str, what: str) -> None:
        self.script(read, self.tools.but(**({"order_id": "A-9"} if what == "order_id" else {"refund": yen(1)})))

    @rule(tool=st.sampled_from(READS + WRITES), done=st.booleans())
    def die_next(self, tool: str, done: bool) -> None:
        def die(request: Any) -> Any:
            if done:
                self.tools.honest(request)
            raise DiedError

        self.script(tool, die)

    def script(self, tool: str, answer: Answer) -> None:
        self.tools.script.setdefault(tool, []).append(answer)

    @rule(workflow_id=workflows)
    def drive_it(self, workflow_id: UUID) -> None:
        with suppress(DiedError, OneAtATimeError):
            self.loop.run(drive(self.parts, workflow_id))

    @rule(workflow_id=workflows, at=st.integers(1, 5), before=st.booleans())
    def drive_it_to_death(self, workflow_id: UUID, at: int, before: bool) -> None:
        async def run() -> None:
            async with doomed(self.parts, Fate(at, before)) as mortal:
                with suppress(DiedError, OneAtATimeError):
                    await drive(mortal, workflow_id)

        self.loop.run(run())

    @rule(workflow_id=workflows)
    def drive_it_twice_at_once(self, workflow_id: UUID) -> None:
        async def run() -> None:
            drivers = (drive(replace(self.parts, owner=name), workflow_id) for name in "ab")
            for found in await asyncio.gather(*drivers, return_exceptions=True):
                assert not isinstance(found, BaseException) or isinstance(found, DiedError | OneAtATimeError), found

        self.loop.run(run())

    @rule(seconds=st.sampled_from([0.5, 2.0, 16.0, 31.0, 3600.0]))
    def let_time_pass(self, seconds: float) -> None:
        advance_clock(self.parts, seconds)

    @rule(scope=st.sampled_from(["updates", "reads", "new_work", "parallel"]), engaged=st.booleans())
    def stop(self, scope: str, engaged: bool) -> None:
        engage(self.parts, scope, engaged=engaged)

    @rule()
    def sweep(self) -> None:
        due: list[UUID] = []

        async def wake(_connection: Any, workflow_id: UUID) -> None:
            due.append(workflow_id)

        self.loop.run(run_once(self.parts, wake))
        for workflow_id in due:
            self.drive_it(workflow_id)

    @invariant()
    def nothing_is_broken(self) -> None:
        for what, query in BROKEN.items():
            assert self.loop.run(rows(self.parts, query)) == [], what
        keys = [key for _, key in self.tools.executed]
        assert len(keys) == len(set(keys)), "an effect was made twice"
        known = {key for (key,) in self.loop.run(rows(self.parts, "SELECT idempotency_key FROM effect"))}
        assert set(keys) <= known, "an effect was made without an intent"
        sent = {request.jti for request in self.tools.requests}
        recorded = {jti for (jti,) in self.loop.run(rows(self.parts, "SELECT jti FROM attempt"))}
        assert sent <= recorded, "a request left without its attempt"

    @invariant()
    def what_is_verified_exists_under_its_own_order(self) -> None:
        made = {record["return_id"]: record for record in self.tools.returns.values()}
        query = (
            "SELECT e.external_id, w.resource FROM effect e JOIN workflow w USING (workflow_id) "
            "WHERE e.name = 'create_return' AND e.verified_at IS NOT NULL"
        )
        for return_id, order_id in self.loop.run(rows(self.parts, query)):
            assert made[return_id]["order_id"] == order_id


TestReturns = Returns.TestCase
TestReturns.settings = settings(
    max_examples=12,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink what fails takes minutes on a real database
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
