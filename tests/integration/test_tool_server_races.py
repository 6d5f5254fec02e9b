"""Many calls at once: one effect per key, never more than was bought or paid, and no deadlock."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg

from tests.support.tool_orders import line, order
from tests.support.tool_prepared import ORDER, RETURN, effects_of
from tests.support.tool_shop import HOLD_A1, Shop, ask, code_of, given, open_shop, until
from tool_server.call import Answer, Answered
from tool_server.dispatch import Dispatcher

PROOF = """
SELECT count(*) FROM returns.line_counters AS c
JOIN returns.order_counters AS n USING (tenant_id, order_id)
LEFT JOIN LATERAL (
    SELECT coalesce(sum(l.quantity), 0) AS units, coalesce(sum(l.refund), 0) AS refund
    FROM returns.return_lines AS l JOIN returns.returns AS r USING (tenant_id, return_id)
    LEFT JOIN returns.cancellations AS x USING (tenant_id, return_id)
    WHERE (l.tenant_id, l.order_id, l.line_id) = (c.tenant_id, c.order_id, c.line_id)
      AND x.return_id IS NULL AND r.status = 'created') AS made ON true
LEFT JOIN LATERAL (
    SELECT coalesce(sum(r.refund), 0) AS refund
    FROM returns.returns AS r LEFT JOIN returns.cancellations AS x USING (tenant_id, return_id)
    WHERE (r.tenant_id, r.order_id) = (c.tenant_id, c.order_id) AND x.return_id IS NULL AND r.status = 'created')
    AS total ON true
WHERE (made.units, made.refund, total.refund) <> (c.returned, c.refunded, n.refunded)
   OR made.units > c.delivered OR made.refund > c.paid OR total.refund + n.refunded_outside > n.captured
"""


def counters_agree(shop: Shop) -> bool:
    """The counters are what the rows add up to, and within every bound."""
    return bool(shop.one(PROOF) == 0)


async def at_once(*calls: Any) -> list[Answer]:
    return list(await asyncio.gather(*calls))


def ended(answers: list[Answer]) -> list[str]:
    return sorted("ok" if isinstance(answer, Answered) else answer.code for answer in answers)


def test_thirty_first_uses_of_one_key_are_one_return_and_one_answer(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(quantity=40)))

    async def scene(tools: Dispatcher) -> list[Answer]:
        return await at_once(*(ask(tools, "create_return", {**ORDER, **RETURN}, key="K") for _ in range(30)))

    answers = shop.run(scene)
    assert len({str(given(answer)) for answer in answers}) == 1
    assert effects_of(shop, "K") == 1
    assert counters_agree(shop)


def test_thirty_first_uses_of_one_key_are_one_mail_and_one_answer(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> list[Answer]:
        made = given(await ask(tools, "create_return", {**ORDER, **RETURN}, key="R"))
        arguments = {**ORDER, "return_id": made["return_id"]}
        return await at_once(*(ask(tools, "send_return_notice", arguments, key="K") for _ in range(30)))

    answers = shop.run(scene)
    assert len({str(given(answer)) for answer in answers}) == 1
    assert (effects_of(shop, "K"), len(shop.mails())) == (1, 1)


def test_two_returns_of_three_fifths_each_never_pay_back_more_than_was_paid(tmp_path: Path) -> None:
    rounds = range(50)
    shop = open_shop(tmp_path, *(order(f"A-{at}", line(price=2_000, quantity=5)) for at in rounds))
    three = {"lines": [{"line_id": "L1", "quantity": 3}], "reason": "defective"}

    async def scene(tools: Dispatcher) -> list[list[Answer]]:
        return [
            await at_once(
                *(ask(tools, "create_return", {"order_id": f"A-{at}", **three}, key=f"{at}-{who}") for who in "ab")
            )
            for at in rounds
        ]

    assert [ended(answers) for answers in shop.run(scene)] == [["ok", "quantity_gone"]] * len(rounds)
    assert counters_agree(shop)
    assert shop.rows("SELECT DISTINCT refunded FROM returns.order_counters") == [(6_000,)]


def test_ten_parts_at_once_stop_where_the_money_that_came_in_ends(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=1_500, quantity=10), captured=10_000))
    one = {"lines": [{"line_id": "L1", "quantity": 1}], "reason": "defective"}

    async def scene(tools: Dispatcher) -> list[Answer]:
        return await at_once(*(ask(tools, "create_return", {**ORDER, **one}, key=f"k{at}") for at in range(10)))

    assert ended(shop.run(scene)) == ["ok"] * 10
    assert shop.rows("SELECT refunded, captured FROM returns.order_counters") == [(10_000, 10_000)]
    assert counters_agree(shop)


def test_lines_asked_for_in_opposite_orders_wait_and_never_deadlock(tmp_path: Path) -> None:
    rounds, orders = 200, 10
    lines = [line("L1", price=10, quantity=50), line("L2", price=10, quantity=50)]
    shop = open_shop(tmp_path, *(order(f"A-{at}", *lines) for at in range(orders)))
    forth = [{"line_id": "L1", "quantity": 1}, {"line_id": "L2", "quantity": 1}]
    before = deadlocks(shop)

    async def scene(tools: Dispatcher) -> list[Answer]:
        answers = []
        for at in range(rounds):
            wanted = {"order_id": f"A-{at % orders}", "reason": "other"}
            answers += await at_once(
                ask(tools, "create_return", {**wanted, "lines": forth}, key=f"{at}-forth"),
                ask(tools, "create_return", {**wanted, "lines": forth[::-1]}, key=f"{at}-back"),
            )
        return answers

    assert ended(shop.run(scene)) == ["ok"] * 2 * rounds
    assert shop.rows("SELECT DISTINCT returned FROM returns.line_counters") == [(2 * rounds // orders,)]
    assert counters_agree(shop)
    assert deadlocks(shop) == before


def deadlocks(shop: Shop) -> int:
    return int(shop.one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))


def test_a_return_and_its_cancellation_at_once_leave_counters_that_agree(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=100, quantity=30)))

    async def scene(tools: Dispatcher) -> None:
        for at in range(20):
            made = given(await ask(tools, "create_return", {**ORDER, **RETURN}, key=f"r{at}"))
            cancel = {**ORDER, "return_id": made["return_id"]}
            await at_once(
                ask(tools, "cancel_return", cancel, key=f"c{at}"),
                ask(tools, "cancel_return", cancel, key=f"d{at}"),
                ask(tools, "create_return", {**ORDER, **RETURN}, key=f"s{at}"),
            )

    shop.run(scene)
    assert shop.rows("SELECT returned FROM returns.line_counters") == [(20,)]
    assert shop.one("SELECT count(*) FROM returns.cancellations") == 20
    assert counters_agree(shop)


def test_an_order_that_is_cancelled_while_a_return_waits_for_it_is_refused(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> Answer:
        async with await psycopg.AsyncConnection.connect(shop.database.admin) as owner:
            await owner.execute(HOLD_A1)
            await owner.execute("UPDATE orders.orders SET status = 'cancelled', version = 2")
            call = asyncio.create_task(ask(tools, "create_return", {**ORDER, **RETURN}, key="K"))
            await until(lambda: shop.one("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0)
        return await call

    answer = shop.run(scene)
    assert code_of(answer) == "not_eligible"
    assert answer.details == {"reason": "not_returnable", "outcome": "rejected"}
    assert effects_of(shop, "K") == 0


def test_a_token_that_is_used_fifty_times_at_once_acts_at_most_once(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(quantity=60)))

    async def scene(tools: Dispatcher) -> list[Answer]:
        arguments = {**ORDER, **RETURN}
        return await at_once(*(ask(tools, "create_return", arguments, key=f"k{at}", jti="the-one") for at in range(50)))

    assert ended(shop.run(scene)) == ["ok"] + ["token_used"] * 49
    assert shop.one("SELECT count(*) FROM returns.returns") == 1
