"""No call reads a table whole, though its statements were planned while the table was empty."""

from __future__ import annotations

from pathlib import Path

from tests.support.tool_orders import order
from tests.support.tool_shop import Shop, ask, given, open_shop
from tool_server.dispatch import Dispatcher

ORDERS = 20
# what grows with every return; rules and switches are few, whatever happens
GROWING = ("orders", "lines", "returns", "return_lines", "outbox", "key", "token_used", "log")
READ = "SELECT relname, seq_tup_read::int FROM pg_stat_user_tables WHERE relname = ANY(%s)"


async def one_return(tools: Dispatcher, n: int) -> None:
    """All seven kinds of call that a normal return and its read-backs are made of."""
    bound = {"order_id": f"A-{n}"}
    lines = {"lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind"}
    given(await ask(tools, "get_order", bound))
    given(await ask(tools, "check_return_policy", {**bound, **lines}))
    made = {
        **bound,
        "return_id": given(await ask(tools, "create_return", {**bound, **lines}, key=f"R-{n}"))["return_id"],
    }
    given(await ask(tools, "get_return", made))
    given(await ask(tools, "find_return", bound, key=f"R-{n}"))
    given(await ask(tools, "send_return_notice", made, key=f"N-{n}"))
    given(await ask(tools, "find_notice", bound, key=f"N-{n}"))


def read_whole(shop: Shop) -> dict[str, int]:
    return dict(shop.rows(READ, list(GROWING)))


def test_no_call_reads_a_table_whole(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, *(order(f"A-{n}") for n in range(ORDERS)))

    async def scene(tools: Dispatcher) -> None:
        for n in range(ORDERS):
            await one_return(tools, n)

    shop.rows("SELECT pg_stat_force_next_flush()")  # what emptying the tables read is not counted later
    before = read_whole(shop)
    shop.run(scene)  # its sessions end with it, and an ended session has told all that it read
    assert {table: rows for table, rows in read_whole(shop).items() if rows > before[table]} == {}
    assert len(shop.mails()) == ORDERS
