"""An engine on a real database in a bad world: random refusals, losses, lies, deaths, two drivers, stops and clocks.

Invariant: after each step no query of `machine_invariants` finds a row, and every effect has one intent and one key.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any, LiteralString
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from host.domain.control import ENDS
from host.domain.state import State
from host.engine.approve import ApprovalRefusedError
from host.engine.drive import drive
from host.engine.parts import Parts
from host.engine.reapply import NotPossibleError
from host.engine.sweep import end_late, run_once
from host.store.errors import OneAtATimeError, StoppedError
from tests.support.approvals import APPROVERS
from tests.support.careful_shop import CarefulShop
from tests.support.crash import DiedError, Fate, doomed
from tests.support.engine import RESTS, SCOPES, advance_clock, engage, engine, owners, rows, take
from tests.support.fake_tools import Answer, rejected, unknown, yen
from tests.support.machine_invariants import BROKEN, ENDED_BY_NO, EVENTS

READS = ("get_order", "check_return_policy", "get_return", "find_return", "find_notice", "get_return_links")
WRITES = ("create_return", "send_return_notice", "cancel_return", "send_correction_notice")
REFUSALS = ("rate_limited", "unavailable", "unreachable", "scope_missing", "bad_output", "not_found", "no_answer")
SPOILT = (*REFUSALS, "timeout", "timeout", "internal_error", "lie", "lie", "die", "die")
LOOKS = {"create_return": ("find_return",), "send_return_notice": ("find_notice",)}
DAY = 24 * 3600.0 + 1
WHICH = st.integers(0, 5)
SEEN: Counter[str] = Counter()  # in how many histories each event happened, before the world was good again
DUE: LiteralString = """
SELECT wake_reason, extract(epoch FROM wake_at - clock_now())::float8 FROM workflow
 WHERE workflow_id = %(id)s AND wake_at IS NOT NULL
"""


def at_rest(state: State) -> bool:
    """At an end, or waiting for a person."""
    return state.control.control in ENDS or state.task.state == "WAITING_APPROVAL"


class BadWorld(RuleBasedStateMachine):
    """A shop with an engine in a bad world."""

    workflows = Bundle("workflows")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.tools = CarefulShop(refunds={"A-3": 60_000})
        self.parts: Parts = self.loop.run(self.stack.enter_async_context(engine(self.tools, approvers=APPROVERS)))
        self.taken = 0
        self.silent: dict[UUID, int] = {}  # how often each case had asked the shop when it ended without a yes

    def teardown(self) -> None:
        """In a world that is good again every workflow comes to an end, or waits for an approval."""
        SEEN.update(event for (event,) in self.rows(EVENTS))
        self.tools.script.clear()
        try:
            ids = [one for (one,) in self.rows("SELECT workflow_id FROM workflow")]
            states: list[State] = []
            for _ in range(40):  # together: one may wait for what another has under way
                for scope in SCOPES:  # what was not undone in time engages them once more
                    engage(self.parts, scope, engaged=False)
                with owners(self.parts) as operator:  # what waited for a person to release it
                    operator.execute("UPDATE workflow SET wake_at = clock_now() WHERE wake_reason = 'compensation'")
                advance_clock(self.parts, 40)
                states = [self.loop.run(drive(self.parts, one)) for one in ids]
                if all(at_rest(state) for state in states):
                    break
            restless = [state for state in states if not at_rest(state)]
            assert restless == [], restless
            self.nothing_is_broken()
        finally:
            self.loop.run(self.stack.aclose())
            self.loop.close()

    def rows(self, query: LiteralString) -> list[tuple[Any, ...]]:
        return self.loop.run(rows(self.parts, query))

    def one_of(self, query: LiteralString, which: int) -> UUID | None:
        found = self.rows(query)
        return found[which % len(found)][0] if found else None

    def unless_refused(self, act: Coroutine[Any, Any, Any]) -> Any:
        with suppress(DiedError, OneAtATimeError, NotPossibleError, ApprovalRefusedError, StoppedError):
            return self.loop.run(act)

    @rule(target=workflows, order=st.sampled_from([1, 2, 3, 3]))
    def take_in(self, order: int) -> Any:
        self.taken += 1
        with suppress(StoppedError):
            return self.loop.run(take(self.parts, request_id=f"r-{self.taken}", order_id=f"A-{order}"))
        return multiple()

    @rule(tool=st.sampled_from(READS + WRITES), how=st.sampled_from(SPOILT), done=st.booleans())
    def spoil_next(self, tool: str, how: str, done: bool) -> None:
        """What is asked for next is refused, lost, answered with another object's, or kills who asked."""

        def die(request: Any) -> Any:
            if done:
                self.tools.honest(request)
            raise DiedError

        match how:
            case "die":
                self.script(tool, die)
            case "lie" if tool in {"get_return", "get_order"}:
                self.script(tool, self.tools.but(**({"order_id": "A-9"} if done else {"refund": yen(1)})))
            case "timeout" | "internal_error" if tool in WRITES:
                self.script(tool, self.tools.then(unknown(how)) if done else unknown(how))
            case _:
                self.script(tool, rejected(how if how in REFUSALS else "unavailable"))

    @rule(write=st.sampled_from(sorted(LOOKS)), done=st.sampled_from([True, True, False]))
    def lose_for_good(self, write: str, done: bool) -> None:
        """Nobody hears what came of it, nor can it be looked up; then the case is a person's."""
        self.script(write, self.tools.then(unknown()) if done else unknown())
        for look in LOOKS[write]:
            self.script(look, *[rejected("unavailable")] * 3)

    def script(self, tool: str, *answers: Answer) -> None:
        self.tools.script.setdefault(tool, []).extend(answers)

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

    @rule(which=WHICH)
    def let_one_run(self, which: int) -> None:
        """Drive it through its waits, as long as it waits for nobody."""
        query: LiteralString = "SELECT workflow_id FROM workflow WHERE wake_at IS NOT NULL ORDER BY workflow_id"
        workflow_id = self.one_of(query, which)
        if workflow_id is not None:
            self.let_it_run(workflow_id)

    def let_it_run(self, workflow_id: UUID) -> None:
        for _ in range(6):
            self.unless_refused(drive(self.parts, workflow_id))
            due = self.loop.run(rows(self.parts, DUE, id=workflow_id))
            if due == [] or due[0][0] in RESTS:
                return
            advance_clock(self.parts, max(0.0, due[0][1]) + 0.001)

    @rule(seconds=st.sampled_from([0.5, 2.0, 16.0, 31.0, 3600.0, DAY]))
    def let_time_pass(self, seconds: float) -> None:
        advance_clock(self.parts, seconds)

    @rule(scope=st.sampled_from(SCOPES), engaged=st.sampled_from([True, False, False]))
    def stop(self, scope: str, engaged: bool) -> None:
        """One stop at a time is engaged, and all of them are lifted."""
        for one in [scope] if engaged else SCOPES:
            engage(self.parts, one, engaged=engaged)

    @rule(late=st.booleans())
    def sweep(self, late: bool) -> None:
        due: list[UUID] = []

        async def wake(_connection: Any, workflow_id: UUID) -> None:
            due.append(workflow_id)

        if late:
            self.loop.run(end_late(self.parts))
        self.loop.run(run_once(self.parts, wake))
        for workflow_id in due:
            self.drive_it(workflow_id)

    @invariant()
    def nothing_is_broken(self) -> None:
        broken = self.rows(BROKEN)
        assert broken == [], broken
        keys = [key for _, key in self.tools.executed]
        assert len(keys) == len(set(keys)), "an effect was made twice"
        known = {key for (key,) in self.rows("SELECT idempotency_key FROM effect")}
        assert set(keys) <= known, "an effect was made without an intent"
        sent = {request.jti for request in self.tools.requests}
        recorded = {jti for (jti,) in self.rows("SELECT jti FROM attempt")}
        assert sent <= recorded, "a request left without its attempt"

    @invariant()
    def of_whom_nobody_agreed_to_the_shop_hears_nothing_more(self) -> None:
        asked = Counter(request.workflow_id for request in self.tools.requests)
        for (workflow_id,) in self.rows(ENDED_BY_NO):
            known = self.silent.setdefault(workflow_id, asked[workflow_id])
            assert known == asked[workflow_id], "the shop was asked once more after an end without a yes"

    @invariant()
    def what_is_verified_exists_under_its_own_order(self) -> None:
        made = {record["return_id"]: record for record in self.tools.returns.values()}
        query = (
            "SELECT e.external_id, w.resource FROM effect e JOIN workflow w USING (workflow_id) "
            "WHERE e.name = 'create_return' AND e.verified_at IS NOT NULL"
        )
        for return_id, order_id in self.loop.run(rows(self.parts, query)):
            assert made[return_id]["order_id"] == order_id, return_id
