"""Random answers, deaths, races, decisions, stops and clocks on the real database: after each step the invariants hold.

Nothing of it can silently never happen: a run is over only once every event below was seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, LiteralString
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, multiple, rule, run_state_machine_as_test

from host.domain.acting import By
from host.engine.approve import ApprovalRefusedError, take_decision
from host.engine.drive import drive, load
from host.engine.reapply import reapply, withdraw
from host.engine.review import adopt, close, look_up, order_compensation, release
from host.engine.sweep import end_late
from host.store.errors import OneAtATimeError
from shared_contracts.approval import jwk_of, sign
from tests.support.approvals import decision, desk
from tests.support.bad_world import DAY, SEEN, WHICH, BadWorld
from tests.support.crash import DiedError
from tests.support.engine import PINS, advance_clock, no_wake, owners, rows, take
from tests.support.fake_tools import rejected
from tests.support.machine_invariants import HANDED_OVER, TO_ASK_ANEW, WAITING

SATO = By("sato", "operator", "sha256:of-a-test")
STARTS = ("unseen return", "unseen return", "lost return", "lost notice", "wrong return", "busy")
MANY_ACTS = st.lists(
    st.sampled_from(["order", "order", "adopt", "adopt", "close", "close", "look"]), min_size=1, max_size=3
)
THEN = st.sampled_from(["run", "run", "day", "day", "key", "no key", "price", "price", ""])
SAID = st.sampled_from(["approve", "approve", "deny"])
WHO = st.sampled_from(["tanaka", "tanaka", "suzuki"])
EVENT_ID: LiteralString = "SELECT event_id FROM approval WHERE event = %(text)s"

# What the rules have to have reached in the cases of one run together.
REACHED = frozenset({
    "approval_required", "approved", "denied", "withdrawn", "expired", "approval_void", "approval_expired",
    "asked_for_anew", "return_verified", "notice_verified", "transient", "unknown_effect", "wrong_effect",
    "compensation_ordered", "compensated", "effect_adopted", "review_closed",
    "a decision was refused", "a decision was tried twice", "another decision had the same id",
})  # fmt: skip


class Returns(BadWorld):
    """The people who decide and clear up."""

    workflows = BadWorld.workflows

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, Ed25519PrivateKey] = {}
        self.counted: list[str] = []  # the decisions that counted, as they were signed
        for name in ("tanaka", "suzuki"):
            self.give_key(name)

    @initialize(target=workflows, start=st.sampled_from(STARTS), acts=MANY_ACTS, said=SAID, then=THEN)
    def somebody_is_needed(self, start: str, acts: list[str], said: str, then: str) -> Any:
        """Begin where something is at stake: people have to decide, or one has to clear up."""
        orders = {"high": "A-3", "high-too": "A-3", "low": "A-1"}
        ids = [self.loop.run(take(self.parts, request_id=r, order_id=order)) for r, order in orders.items()]
        for workflow_id in ids[:2]:
            self.let_it_run(workflow_id)
        match start:
            case "lost return":
                self.lose_for_good("create_return", done=True)
            case "lost notice":
                self.lose_for_good("send_return_notice", done=True)
            case "unseen return":
                self.script("get_return", *[rejected("unavailable")] * 4)
            case "wrong return":
                self.spoil_next("get_return", "lie", done=False)
            case _:
                self.spoil_next("create_return", "rate_limited", done=False)
        self.let_it_run(ids[2])
        self.clear_up(0, acts, sure=True)
        self.decide(0, "tanaka", said, then)
        return multiple(*ids)

    def give_key(self, name: str) -> None:
        key = self.keys[name] = Ed25519PrivateKey.generate()
        public = jwk_of(key.public_key())
        self.tools.keys[public.kid] = (name, key.public_key())
        with owners(self.parts) as sql:
            sql.execute("SELECT trust_approver(%s, %s, %s, 'sato')", (public.kid, name, public.x))

    def revoke_key(self, name: str) -> None:
        kid = jwk_of(self.keys[name].public_key()).kid
        self.tools.keys.pop(kid, None)
        with owners(self.parts) as sql:
            sql.execute("SELECT revoke_approver(%s, 'sato')", (kid,))

    async def signed(self, workflow_id: UUID, by: str, said: str, **differs: Any) -> str:
        event = decision(await load(self.parts, workflow_id), by, decision=said, **differs)
        return sign(event, self.keys[by], jwk_of(self.keys[by].public_key()).kid)

    async def hand_in(self, text: str) -> str:
        """Gives the words that it was refused with, or none."""
        try:
            await take_decision(desk(self.parts), text, 1.0)
        except ApprovalRefusedError as error:
            SEEN["a decision was refused"] += 1
            return str(error)
        self.counted.append(text)
        return ""

    @rule(which=WHICH, by=WHO, said=SAID, then=THEN)
    def decide(self, which: int, by: str, said: str, then: str) -> None:
        workflow_id = self.one_of(WAITING, which)
        if workflow_id is not None:
            self.loop.run(self.hand_in(self.loop.run(self.signed(workflow_id, by, said))))
            self.something_changes(by, then)
            if then:
                self.drive_it(workflow_id)

    @rule(name=WHO, what=THEN)
    def something_changes(self, name: str, what: str) -> None:
        match what:
            case "day":
                advance_clock(self.parts, DAY)
            case "key":
                self.revoke_key(name)
                self.give_key(name)
            case "no key":
                self.revoke_key(name)
            case "price":
                self.tools.refunds["A-3"] += 1_000

    @rule(which=WHICH, said=SAID, at_the_end=st.booleans())
    def decide_while_others_act(self, which: int, said: str, at_the_end: bool) -> None:
        """Two decide, the requester takes it back, a driver and the sweeper come by: all at once."""
        workflow_id = self.one_of(WAITING, which)
        if workflow_id is None:
            return

        async def run() -> None:
            asked = (await load(self.parts, workflow_id)).evidence.asked
            assert asked is not None
            texts = [await self.signed(workflow_id, "tanaka", one) for one in (said, "approve")]
            if at_the_end:  # whether it is still in time is a matter of milliseconds
                advance_clock(self.parts, (asked.expires_at - asked.read_at).total_seconds() - 0.02)
            with owners(self.parts) as sql:  # whoever waits for a person is looked at early
                sql.execute("UPDATE workflow SET wake_at = clock_now() WHERE workflow_id = %s", (workflow_id,))
            acts: list[Coroutine[Any, Any, Any]] = [
                self.hand_in(texts[0]), drive(replace(self.parts, owner="a"), workflow_id), self.hand_in(texts[1]),
                end_late(self.parts), drive(replace(self.parts, owner="b"), workflow_id),
                withdraw(desk(self.parts), workflow_id, "sato"),
            ]  # fmt: skip
            allowed = DiedError | OneAtATimeError | ApprovalRefusedError
            for found in await asyncio.gather(*acts, return_exceptions=True):
                assert not isinstance(found, BaseException) or isinstance(found, allowed), found

        self.loop.run(run())

    @rule(which=WHICH)
    def hand_in_again(self, which: int) -> None:
        """What counted once counts never again, neither itself nor its id in another decision."""
        if not self.counted:
            return
        text = self.counted[which % len(self.counted)]
        assert self.loop.run(self.hand_in(text)) != ""
        SEEN["a decision was tried twice"] += 1
        workflow_id = self.one_of(WAITING, which)
        if workflow_id is not None:
            (event_id,) = self.loop.run(rows(self.parts, EVENT_ID, text=text))[0]
            other = self.loop.run(self.signed(workflow_id, "tanaka", "approve", event_id=event_id))
            said = self.loop.run(self.hand_in(other))
            assert said != ""
            SEEN["another decision had the same id"] += "used before" in said

    @rule(which=WHICH)
    def take_back(self, which: int) -> None:
        workflow_id = self.one_of(WAITING, which)
        if workflow_id is not None:
            self.unless_refused(withdraw(desk(self.parts), workflow_id, "sato"))

    @rule(which=WHICH)
    def ask_anew(self, which: int) -> None:
        workflow_id = self.one_of(TO_ASK_ANEW, which)
        if workflow_id is not None:
            self.unless_refused(reapply(desk(self.parts), workflow_id, PINS, None))

    @rule(which=WHICH, acts=MANY_ACTS, sure=st.booleans())
    def clear_up(self, which: int, acts: list[str], sure: bool) -> None:
        """An operator looks at what was handed over, and does something about it."""
        now, parts = desk(self.parts), self.parts
        workflow_id = self.one_of(HANDED_OVER, which)
        for act in acts if workflow_id is not None else ():
            assert workflow_id is not None
            match act:
                case "adopt":
                    self.unless_refused(adopt(parts, workflow_id, SATO, no_wake))
                case "order":
                    self.unless_refused(order_compensation(now, workflow_id, SATO, "the wrong cup", parts.registry))
                case "close":
                    self.unless_refused(close(now, workflow_id, SATO, "by hand", accept_unknown=sure))
                case _:
                    self.unless_refused(look_up(parts, workflow_id, SATO))
            self.let_it_run(workflow_id)

    @rule(which=WHICH)
    def let_it_be_undone(self, which: int) -> None:
        query: LiteralString = "SELECT workflow_id FROM compensation WHERE state = 'required' ORDER BY workflow_id"
        workflow_id = self.one_of(query, which)
        if workflow_id is not None:
            self.unless_refused(release(desk(self.parts), workflow_id, SATO))
            self.unless_refused(drive(self.parts, workflow_id))


ORDINARY = settings(
    max_examples=5,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink what fails takes minutes on a real database
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def run(how: settings, least: int, most: int) -> None:
    """Run at least so many rounds, and no more than it takes to have seen everything happen."""
    SEEN.clear()
    for n in range(most):  # each by a seed of its own: where CI is set, rounds without one would all be the same
        run_state_machine_as_test(seed(n)(Returns), settings=how)
        if n + 1 >= least and {what for what, n in SEEN.items() if n} >= REACHED:
            return
    assert [what for what in sorted(REACHED) if not SEEN[what]] == [], "never happened"


@pytest.mark.timeout(300)
def test_whatever_happens_in_whatever_order_the_invariants_hold_after_each_step_and_all_of_it_does_happen():
    run(ORDINARY, 2, 20)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_same_holds_in_many_more_and_longer_histories():
    run(settings(ORDINARY, max_examples=50, stateful_step_count=50), 2, 2)
