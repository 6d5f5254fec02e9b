"""A return of 50,000 yen or more: a person's signed yes, for exactly this, once, as the shop's own tables have it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shared_contracts.approval import Action, Void, sign
from tests.support.tool_approvals import VERSION, Person, action_now, approve, trusted
from tests.support.tool_orders import line, order, policy, seed
from tests.support.tool_prepared import effects_of
from tests.support.tool_shop import Shop, ask, code_of, given, open_shop
from tool_server.approvers import revoke
from tool_server.call import Answer, Answered, Refused
from tool_server.dispatch import Dispatcher

ONE = {"order_id": "A-1", "lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind"}
SMALL = {**ONE, "order_id": "A-2"}
TANAKA = Person.named("tanaka", substitutes=("suzuki",))
SUZUKI = Person.named("suzuki", 2_000_000)
LESSER = Person.named("lesser", 59_499)
ELSEWHERE = Person.named("abroad", tenant_id="other")
DOLLARS = Person.named("dollar", 10**9, currency="USD")
STRANGER = Person.named("tanaka")
WRITTEN: LiteralString = """
    SELECT (SELECT count(*) FROM returns.returns), (SELECT count(*) FROM calls.key),
           (SELECT count(*) FROM calls.token_used), (SELECT count(*) FROM returns.approvals_used)"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = open_shop(tmp_path, order("A-1", line(price=60_000, quantity=3)), order("A-2", line(price=3_000)))
    asyncio.run(trusted(shop, TANAKA, SUZUKI, LESSER, ELSEWHERE, DOLLARS))
    return shop


def why(answer: Answer) -> str:
    assert isinstance(answer, Refused), answer
    assert answer.code == "approval_refused"
    return str(answer.details["reason"])


def ended(answers: list[Answer]) -> list[str]:
    return sorted("ok" if isinstance(answer, Answered) else f"{answer.code} {answer.details}" for answer in answers)


def test_without_an_approval_nothing_is_made_and_with_one_the_return_is(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> tuple[Answer, Answer]:
        bare = await ask(tools, "create_return", ONE, key="K")
        return bare, await approve(tools, TANAKA.signs(await action_now(tools, ONE)), ONE)

    bare, made = shop.run(scene)
    assert isinstance(bare, Refused)
    assert (bare.code, bare.details) == ("approval_required", {"reason": "high_value", "outcome": "approval"})
    assert given(made)["refund"] == {"amount": 59_500, "currency": "JPY"}
    assert shop.rows("SELECT idempotency_key, approver FROM returns.approvals_used") == [("K", "tanaka")]


def test_arguments_in_another_order_are_what_was_approved(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        approval = TANAKA.signs(await action_now(tools, ONE))
        back = {"reason": "changed_mind", "lines": [{"quantity": 1, "line_id": "L1"}], "order_id": "A-1"}
        return await approve(tools, approval, back)

    assert given(shop.run(scene))["status"] == "created"


DIFFERS: list[tuple[Void, Person, dict[str, Any]]] = [
    (Void.OTHER_TENANT, TANAKA, {"tenant_id": "other"}),
    (Void.OTHER_WORKFLOW, TANAKA, {"workflow_id": "W-2"}),
    (Void.OTHER_VERSION, TANAKA, {"version": VERSION + 1}),
    (Void.OTHER_REQUESTER, TANAKA, {"subject": "desk2@example.com"}),
    (Void.OTHER_TOOL, TANAKA, {"tool": "cancel_return"}),
    (Void.OTHER_RESOURCE, TANAKA, {"resource": "A-2"}),
    (Void.OTHER_ACTION, TANAKA, {"action_digest": "0" * 64}),
    (Void.DENIED, TANAKA, {"decision": "deny"}),
    (Void.OTHER_KEY, SUZUKI, {"approver": "tanaka"}),
    (Void.OVER_LIMIT, LESSER, {}),
    (Void.OVER_LIMIT, DOLLARS, {}),
    (Void.OUT_OF_TURN, SUZUKI, {"waited": 3599}),
    (Void.UNKNOWN_KEY, STRANGER, {}),
    (Void.UNKNOWN_KEY, ELSEWHERE, {}),
    (Void.UNKNOWN_KEY, ELSEWHERE, {"approver": "tanaka", "tenant_id": "acme"}),
]


@pytest.mark.parametrize(("reason", "person", "differs"), DIFFERS, ids=lambda value: str(value)[:40])
def test_an_event_that_differs_in_one_respect_is_void_and_spends_nothing(
    shop: Shop, reason: Void, person: Person, differs: dict[str, Any]
) -> None:
    async def scene(tools: Dispatcher) -> tuple[Answer, list[tuple[Any, ...]], Answer]:
        action = await action_now(tools, ONE)
        refused = await approve(tools, person.signs(action, **differs), ONE, jti="same")
        written = shop.rows(WRITTEN)
        return refused, written, await approve(tools, TANAKA.signs(action), ONE, jti="same")

    refused, written, made = shop.run(scene)
    assert why(refused) == reason
    assert written == [(0, 0, 0, 0)]
    assert given(made)["status"] == "created"


@pytest.mark.parametrize(
    ("reason", "asked", "decided", "ends"),
    [  # in seconds from now
        (Void.FROM_THE_FUTURE, -60, 60, 3_600),
        (Void.FROM_THE_FUTURE, -60, -61, 3_600),
        (Void.EXPIRED, -3_600, -3_500, -1),
        (Void.EXPIRED, -86_401, -86_400, 0),
        (Void.EXPIRED, -60, -30, 86_400),  # longer than a day from the request
    ],
)
def test_an_approval_counts_between_its_decision_and_its_end_and_for_a_day_at_most(
    shop: Shop, reason: Void, asked: int, decided: int, ends: int
) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        now = shop.one("SELECT clock_now()")
        at = {
            name: now + timedelta(seconds=seconds)
            for name, seconds in (("requested_at", asked), ("decided_at", decided), ("expires_at", ends))
        }
        return await approve(tools, TANAKA.signs(await action_now(tools, ONE), **at), ONE)

    assert why(shop.run(scene)) == reason
    assert shop.rows(WRITTEN) == [(0, 0, 0, 0)]


def test_nobody_approves_what_they_asked_for_in_whatever_case_their_name_is_written(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        action = await action_now(tools, ONE)
        return [
            await approve(tools, TANAKA.signs(action, subject=sub), ONE, sub=sub)
            for sub in ("tanaka", "Tanaka", "TANAKA")
        ]

    assert [why(answer) for answer in shop.run(scene)] == [Void.OWN_REQUEST] * 3


def test_a_signature_of_another_key_under_a_known_name_is_bad(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        event = TANAKA.event(await action_now(tools, ONE))
        return await approve(tools, sign(event, Ed25519PrivateKey.generate(), TANAKA.kid), ONE)

    assert why(shop.run(scene)) == Void.BAD_SIGNATURE


def test_without_the_version_that_was_approved_the_event_is_for_none(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        return await approve(tools, TANAKA.signs(await action_now(tools, ONE)), ONE, approved_version=None)

    assert why(shop.run(scene)) == Void.OTHER_VERSION


@pytest.mark.parametrize(
    ("change", "member", "now"),
    [
        (
            "UPDATE orders.orders SET destination_ref = 'address://acme/C-1@2'",
            "destination_ref",
            "address://acme/C-1@2",
        ),
        ("UPDATE orders.orders SET version = 2", "order_version", 2),
        ("UPDATE returns.order_counters SET captured = 55000", "amount", {"amount": 55_000, "currency": "JPY"}),
        (None, "policy_version", "policy-v13"),
    ],
)
def test_what_changed_in_the_shop_after_the_approval_is_told_and_asks_for_another(
    shop: Shop, change: LiteralString | None, member: str, now: Any
) -> None:
    async def scene(tools: Dispatcher) -> tuple[Action, Answer, Answer]:
        action = await action_now(tools, ONE)
        if change is None:
            newer = policy("policy-v13", effective_from="2026-07-01T00:00:00+09:00")
            await asyncio.to_thread(shop.load, seed(policies=[policy(), newer]))
        else:
            shop.rows(change)
        refused = await approve(tools, TANAKA.signs(action), ONE)
        return action, refused, await approve(tools, TANAKA.signs(await action_now(tools, ONE)), ONE)

    action, refused, made = shop.run(scene)
    assert why(refused) == Void.OTHER_ACTION
    assert isinstance(refused, Refused)
    before = action.model_dump(mode="json")
    assert refused.details["action"] == {**before, member: now} != before
    assert given(made)["status"] == "created"


def test_other_arguments_than_those_approved_are_another_action(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        approval = TANAKA.signs(await action_now(tools, ONE))
        two = {**ONE, "lines": [{"line_id": "L1", "quantity": 2}]}
        return [await approve(tools, approval, other) for other in (two, {**ONE, "reason": "other"})]

    assert [why(answer) for answer in shop.run(scene)] == [Void.OTHER_ACTION] * 2


def test_what_the_rules_refuse_no_approval_permits(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        action = await action_now(tools, ONE)
        four = {**ONE, "lines": [{"line_id": "L1", "quantity": 4}]}
        gone = await approve(tools, TANAKA.signs(action), four)
        shop.rows("UPDATE orders.orders SET status = 'cancelled'")
        return [gone, await approve(tools, TANAKA.signs(action), ONE)]

    assert [code_of(answer) for answer in shop.run(scene)] == ["quantity_gone", "not_eligible"]


def test_a_substitute_decides_once_the_request_is_as_old_as_the_rule_says(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        action = await action_now(tools, ONE)
        return [await approve(tools, SUZUKI.signs(action, waited=waited), ONE) for waited in (3_599, 3_600)]

    early, in_turn = shop.run(scene)
    assert why(early) == Void.OUT_OF_TURN
    assert given(in_turn)["status"] == "created"


def test_above_the_first_approvers_limit_a_substitute_decides_at_once(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=600_000)))

    async def scene(tools: Dispatcher) -> list[Answer]:
        await trusted(shop, TANAKA, SUZUKI)
        action = await action_now(tools, ONE)
        return [await approve(tools, person.signs(action), ONE) for person in (TANAKA, SUZUKI)]

    over, made = shop.run(scene)
    assert why(over) == Void.OVER_LIMIT
    assert given(made)["status"] == "created"


def test_from_the_next_call_on_a_revoked_key_approves_nothing_and_new_terms_hold(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        action = await action_now(tools, ONE)
        approval = TANAKA.signs(action)
        await trusted(shop, TANAKA.on(limit=LESSER.approver.limit))
        lowered = await approve(tools, approval, ONE)
        await revoke(shop.database.owner, "tanaka", "operator")
        return [lowered, await approve(tools, approval, ONE)]

    assert [why(answer) for answer in shop.run(scene)] == [Void.OVER_LIMIT, Void.UNKNOWN_KEY]


def test_the_same_event_under_its_own_key_is_a_replay_and_under_another_key_used(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        approval = TANAKA.signs(await action_now(tools, ONE))
        first = await approve(tools, approval, ONE)
        again = await approve(tools, approval, ONE, attempt=2)
        other = await approve(tools, approval, ONE, key="L")
        await revoke(shop.database.owner, "tanaka", "operator")
        return [first, again, other, await approve(tools, approval, ONE, attempt=3)]

    first, again, other, after_revoking = shop.run(scene)
    assert given(first) == given(again) == given(after_revoking)
    assert why(other) == Void.USED
    assert (effects_of(shop, "K"), effects_of(shop, "L")) == (1, 0)


def test_an_event_that_was_used_stays_used_when_its_return_is_cancelled(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        approval = TANAKA.signs(await action_now(tools, ONE))
        number = given(await approve(tools, approval, ONE))["return_id"]
        given(await ask(tools, "cancel_return", {"order_id": "A-1", "return_id": number}, key="C"))
        return await approve(tools, approval, ONE, key="L")

    assert why(shop.run(scene)) == Void.USED


def test_of_two_keys_that_race_with_one_event_one_acts(tmp_path: Path) -> None:
    rounds = range(50)
    shop = open_shop(tmp_path, *(order(f"A-{at}", line(price=60_000, quantity=2)) for at in rounds))

    async def scene(tools: Dispatcher) -> list[list[str]]:
        await trusted(shop, TANAKA)
        told = []
        for at in rounds:
            arguments = {**ONE, "order_id": f"A-{at}"}
            approval = TANAKA.signs(await action_now(tools, arguments))
            both = (approve(tools, approval, arguments, key=f"{at}-{who}") for who in "ab")
            told.append(ended(list(await asyncio.gather(*both))))
        return told

    assert shop.run(scene) == [["approval_refused {'reason': 'used'}", "ok"]] * len(rounds)
    assert shop.rows(WRITTEN) == [(len(rounds),) * 4]


def test_two_approvers_of_one_request_make_one_return_for_its_key(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        action = await action_now(tools, ONE)
        signed = [TANAKA.signs(action), SUZUKI.signs(action, waited=4_000)]
        return list(await asyncio.gather(*(approve(tools, approval, ONE) for approval in signed)))

    first, second = shop.run(scene)
    assert given(first) == given(second)
    assert shop.rows(WRITTEN) == [(1, 1, 2, 1)]


def test_an_approval_that_comes_unneeded_is_held_to_its_rules_and_spent(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        action = await action_now(tools, SMALL)
        bad = await approve(tools, TANAKA.signs(action, decision="deny"), SMALL)
        good = await approve(tools, TANAKA.signs(action, event_id="E-1"), SMALL)
        return [bad, good]

    bad, good = shop.run(scene)
    assert why(bad) == Void.DENIED
    assert given(good)["status"] == "created"
    assert shop.rows("SELECT event_id FROM returns.approvals_used") == [("E-1",)]


def test_a_word_that_sounds_like_a_yes_is_none(shop: Shop) -> None:
    words = [
        "approved", "承認済み", "yes", "{}", "..", "a.b.c", "null", '{"decision":"approve"}', "\x7f", "🙂.🙂.🙂",
        "eyJhbGciOiJub25lIn0..", "." * 4_000, "A" * 4_000,
    ]  # fmt: skip

    async def scene(tools: Dispatcher) -> list[Answer]:
        return [await approve(tools, word, ONE) for word in words]

    assert [why(answer) for answer in shop.run(scene)] == [Void.MALFORMED] * len(words)
    assert shop.rows(WRITTEN) == [(0, 0, 0, 0)]


def test_an_event_with_any_character_changed_dropped_or_doubled_is_void(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> set[str]:
        text = TANAKA.signs(await action_now(tools, ONE))
        told = set()
        for at in range(0, len(text), 11):
            other = "A" if text[at] != "A" else "B"
            for spelt in (text[:at] + other + text[at + 1 :], text[:at] + text[at + 1 :], text[: at + 1] + text[at:]):
                told.add(why(await approve(tools, spelt, ONE)))
        return told

    assert shop.run(scene) <= {Void.MALFORMED, Void.BAD_SIGNATURE, Void.UNKNOWN_KEY}
    assert shop.rows(WRITTEN) == [(0, 0, 0, 0)]


def test_the_log_names_the_event_and_its_approver_where_the_signature_held_and_never_the_signature(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[str]:
        action = await action_now(tools, ONE)
        signed = [
            STRANGER.signs(action, event_id="E-0"),
            TANAKA.signs(action, event_id="E-1", decision="deny"),
            TANAKA.signs(action, event_id="E-2"),
        ]
        for approval in signed:
            await approve(tools, approval, ONE)
        return signed

    signed = shop.run(scene)
    rows = shop.rows(
        "SELECT outcome, approval_event, approver FROM calls.log WHERE tool = 'create_return' ORDER BY seq"
    )
    assert rows == [
        ("approval_refused", None, None),
        ("approval_refused", "E-1", "tanaka"),
        ("ok", "E-2", "tanaka"),
    ]
    logged = shop.rows("SELECT to_jsonb(l)::text FROM calls.log AS l")
    kept = str(logged + shop.rows("SELECT to_jsonb(u)::text FROM returns.approvals_used AS u"))
    assert not any(part in kept for text in signed for part in text.split("."))


def test_every_reason_is_shown_here_but_the_one_that_a_key_rules_out() -> None:
    """A key and its person are one row, so a signature that holds always has its approver."""
    shown = {reason for reason, *_ in DIFFERS} | {
        Void.MALFORMED, Void.BAD_SIGNATURE, Void.OWN_REQUEST, Void.FROM_THE_FUTURE, Void.EXPIRED, Void.USED,
    }  # fmt: skip
    assert shown == set(Void) - {Void.NO_APPROVER}


def test_two_tenants_may_have_approvers_of_one_name_and_neither_signs_for_the_other(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=60_000)), order("A-1", line(price=60_000), tenant_id="other"))
    namesake = Person.named("tanaka", tenant_id="other")

    async def scene(tools: Dispatcher) -> list[Answer]:
        await trusted(shop, TANAKA, namesake)
        action = await action_now(tools, ONE)
        crossed = await approve(tools, namesake.signs(action), ONE)
        return [crossed, await approve(tools, TANAKA.signs(action), ONE)]

    crossed, made = shop.run(scene)
    assert why(crossed) == Void.UNKNOWN_KEY
    assert given(made)["status"] == "created"
