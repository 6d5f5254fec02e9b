"""Loading: all or nothing, the same again changes nothing, and every mistake is told with its place."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from tests.support.tool_orders import line, order, policy, recipient, seed
from tests.support.tool_prepared import made_return
from tests.support.tool_shop import Shop, open_shop, tool_database, until
from tool_server.demo.generate import SHOP
from tool_server.load import Loaded, SeedError, load, read_seed
from tool_server.seed_amounts import shares

COUNTS = (
    "SELECT (SELECT count(*) FROM orders.orders), (SELECT count(*) FROM policies.versions),"
    " (SELECT count(*) FROM notices.recipients)"
)


def everything(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.rows(
        "SELECT 'o', to_jsonb(o)::text, xmin::text FROM orders.orders AS o"
        " UNION ALL SELECT 'l', to_jsonb(l)::text, xmin::text FROM orders.lines AS l"
        " UNION ALL SELECT 'c', to_jsonb(c)::text, xmin::text FROM returns.line_counters AS c"
        " UNION ALL SELECT 'n', to_jsonb(n)::text, xmin::text FROM returns.order_counters AS n"
        " UNION ALL SELECT 'r', to_jsonb(r)::text, xmin::text FROM returns.returns AS r"
        " UNION ALL SELECT 'p', to_jsonb(p)::text, xmin::text FROM policies.versions AS p"
        " UNION ALL SELECT 'm', to_jsonb(m)::text, xmin::text FROM notices.recipients AS m ORDER BY 1, 2"
    )


def earlier(return_id: str = "R-old", quantity: int = 1, **changes: Any) -> dict[str, Any]:
    plain = {
        "return_id": return_id,
        "status": "created",
        "reason": "changed_mind",
        "created_at": "2026-07-22T09:00:00+09:00",
        "lines": [{"line_id": "L1", "quantity": quantity}],
    }
    return plain | changes


def test_the_same_file_again_changes_no_row(tmp_path: Path) -> None:
    data = order("A-1", line(quantity=3), returns=[earlier()])
    shop = open_shop(tmp_path, data)
    before = everything(shop)
    assert asyncio.run(load(shop.database.owner, seed(data))) == Loaded(0, 0, 0, 1, 0, 0)
    assert everything(shop) == before


def test_the_demo_shop_loads_whole_and_adds_up() -> None:
    database = tool_database()
    data = read_seed(SHOP)
    done = asyncio.run(load(database.owner, data))
    assert done.orders_new == len(data.orders)
    shop = Shop(database, None, SHOP)
    off = (
        "SELECT order_id FROM orders.orders AS o WHERE paid <> shipping_fee + (SELECT sum(paid) FROM orders.lines AS l"
        " WHERE l.tenant_id = o.tenant_id AND l.order_id = o.order_id)"
    )
    assert shop.rows(off) == []
    assert asyncio.run(load(database.owner, data)).orders_unchanged == len(data.orders)


def test_earlier_returns_count_and_get_their_amounts(tmp_path: Path) -> None:
    returns = [
        earlier("R-2", created_at="2026-07-23T09:00:00+09:00", reason="defective"),
        earlier("R-1"),
        earlier("R-3", status="cancelled", created_at="2026-07-24T09:00:00+09:00"),
        earlier("R-4", status="rejected", created_at="2026-07-25T09:00:00+09:00"),
    ]
    shop = open_shop(tmp_path, order("A-1", line(price=3_333, quantity=3), discount=1_000, returns=returns))
    assert dict(shop.rows("SELECT return_id, refund FROM returns.returns")) == {
        "R-1": 2_499, "R-2": 3_000, "R-3": 2_500, "R-4": 0,
    }  # fmt: skip
    assert shop.rows("SELECT returned, refunded FROM returns.line_counters") == [(2, 5_999)]
    assert shop.rows("SELECT refunded FROM returns.order_counters") == [(5_499,)]
    assert dict(shop.rows("SELECT return_id, status FROM returns.records"))["R-3"] == "cancelled"


def test_a_newer_version_of_an_order_replaces_it_and_keeps_its_returns(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(quantity=2, delivered_quantity=1)))
    shop.run(made_return)
    newer = order("A-1", line(quantity=2, delivered_at="2026-07-28T10:00:00+09:00"), line("L2"), version=2, note="new")
    assert asyncio.run(load(shop.database.owner, seed(newer))).orders_updated == 1
    assert shop.rows("SELECT version, note FROM orders.orders") == [(2, "new")]
    counters = "SELECT line_id, delivered, returned FROM returns.line_counters ORDER BY line_no"
    assert shop.rows(counters) == [("L1", 2, 1), ("L2", 1, 0)]
    assert shop.one("SELECT delivered_at = '2026-07-20T10:00:00+09:00' FROM orders.lines WHERE line_id = 'L1'")


def test_a_new_snapshot_of_the_same_orders_is_told_by_the_next_read(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    shop.load(seed(order("A-1"), snapshot="2026-08-01"))
    assert shop.one("SELECT snapshot FROM orders.orders") == "2026-08-01"


AGAINST: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"note": "changed"}, {}, "raise its version"),
    ({"version": 1}, {"policies": [policy(owner="another")]}, "a change of rules is a new version"),
    (
        {},
        {"policies": [policy(approval_thresholds=[{"currency": "JPY", "amount": 90_000}])]},
        "policy-v12 was loaded with other rules; a change of rules is a new version",
    ),
    ({"version": 2, "customer_id": "C-9"}, {}, "keeps its customer"),
    ({"version": 2, "currency": "USD"}, {}, "keeps its customer and its currency"),
    ({"version": 2, "lines": [line("L0"), line("L1", quantity=2)]}, {}, "keep their place"),
    ({"version": 2, "returns": [earlier("R-new")]}, {}, "first load only"),
    (
        {"version": 2, "lines": [line("L1", quantity=2, delivered_quantity=0, delivered_at=None)]},
        {},
        "order acme/A-1, line L1, delivered_quantity: 1 were returned and only 0 would be delivered; raise it",
    ),
    (
        {"version": 2, "lines": [line("L1", price=1_000, quantity=2)]},
        {},
        "order acme/A-1, line L1: 3000 were paid back and only 2000 would be paid for the line",
    ),
    (
        {"version": 2, "captured": 2_000},
        {},
        "order acme/A-1, captured: 2500 were paid back, which with refunded_outside is above 2000",
    ),
    (
        {"version": 2, "captured": 6_000, "refunded_outside": 4_000},
        {},
        "order acme/A-1, captured: 2500 were paid back, which with refunded_outside is above 6000",
    ),
    (
        {},
        {"policies": [policy(), policy("p-new")]},
        "policies[1].effective_from: p-new begins at the instant at which policy-v12, which is loaded already, begins",
    ),
    (
        {"captured": 6_000},
        {"orders": [order("B-2", returns=[earlier("R-here")])]},
        "order acme/B-2, return R-here: is the number of a return that is loaded already",
    ),
]
NAMES = (
    "SELECT conname FROM pg_constraint JOIN pg_namespace AS n ON n.oid = connamespace"
    " WHERE n.nspname IN ('orders', 'policies', 'returns', 'notices')"
)


def told_of(shop: Shop, error: SeedError) -> str:
    """What a person reads; no name that only the database knows stands in it."""
    said = str(error)
    names = {name for (name,) in shop.rows(NAMES)}
    assert len(names) > 40
    assert [name for name in names if name in said] == []
    return said


@pytest.mark.parametrize(("changes", "data", "told"), AGAINST, ids=[row[2] for row in AGAINST])
def test_a_file_against_what_is_there_is_refused_whole(
    tmp_path: Path, changes: dict[str, Any], data: dict[str, Any], told: str
) -> None:
    shop = open_shop(tmp_path, order("A-1", line("L1", quantity=2)), order("C-1", returns=[earlier("R-here")]))
    shop.run(made_return)
    before = everything(shop)
    changed = order("A-1", **({"lines": [line("L1", quantity=2)]} | changes))
    policies = {name: value for name, value in data.items() if name == "policies"}
    with pytest.raises(SeedError) as caught:
        asyncio.run(load(shop.database.owner, seed(order("B-1"), changed, *data.get("orders", ()), **policies)))
    assert told in told_of(shop, caught.value)
    assert everything(shop) == before


def test_everything_that_is_wrong_with_orders_is_told_at_once(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"), order("A-2"))
    with pytest.raises(SeedError) as caught:
        shop.load(seed(order("A-1", note="changed"), order("A-2", version=2, customer_id="C-9")))
    assert len(caught.value.problems) == 2


def test_the_shipping_that_was_paid_back_is_not_taken_away_again(tmp_path: Path) -> None:
    whole = earlier(reason="defective")
    shop = open_shop(tmp_path, order("A-1", shipping_fee=700, returns=[whole]))
    with pytest.raises(SeedError) as caught:
        shop.load(seed(order("A-1", version=2, captured=3_700, discount=0, shipping_fee=0, lines=[line(price=3_700)])))
    told = "order acme/A-1, shipping_fee: 700 of it were paid back; it cannot become 0"
    assert told in told_of(shop, caught.value)


VERSION: LiteralString = "INSERT INTO policies.versions (version, effective_from, owner, zone, content_sha256) VALUES "
RETURN: LiteralString = """
    INSERT INTO returns.order_counters (tenant_id, order_id, captured, refunded_outside, shipping_fee)
    VALUES ('acme', 'Z-1', 0, 0, 0);
    INSERT INTO returns.returns (tenant_id, return_id, order_id, customer_id, status, reason, currency, refund,
                                 shipping_refund, return_fee, rule_version, order_version, requested_at)
    VALUES ('acme', 'R-old', 'Z-1', 'C-1', 'rejected', 'other', 'JPY', 0, 0, 0, 'v', 1, now())"""
RACES: list[tuple[LiteralString, str]] = [
    (
        VERSION + "('p-other', '2026-02-01T00:00:00+09:00', 'o', 'UTC', 'x')",
        "a row of policies.versions (2026-01-31 15:00:00+00): begins at the instant at which another version begins",
    ),
    (
        VERSION + "('p-new', '2026-03-01T00:00:00+09:00', 'o', 'UTC', 'x')",
        "a row of policies.versions (p-new): was loaded a moment ago by somebody else; load the file again",
    ),
    (RETURN, "a row of returns.returns (acme/R-old): is the number of a return that is loaded already"),
]


@pytest.mark.parametrize(("meanwhile", "told"), RACES)
def test_what_another_load_does_at_the_same_time_is_told_in_words_too(
    tmp_path: Path, meanwhile: LiteralString, told: str
) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    new = policy("p-new", effective_from="2026-02-01T00:00:00+09:00")
    file = seed(order("B-1", returns=[earlier()]), policies=[policy(), new])

    async def scene() -> None:
        async with await psycopg.AsyncConnection.connect(shop.database.admin) as other:
            await other.execute(meanwhile)
            loading = asyncio.create_task(load(shop.database.owner, file))
            waits = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted"
            await until(lambda: loading.done() or bool(shop.one(waits)))
            await other.commit()
            await loading

    with pytest.raises(SeedError) as caught:
        asyncio.run(scene())
    assert told in told_of(shop, caught.value)


def test_a_unit_that_was_returned_and_cancelled_twice_can_have_been_returned_again(tmp_path: Path) -> None:
    returns = [
        earlier("R-1", status="cancelled"),
        earlier("R-2", status="cancelled", created_at="2026-07-23T09:00:00+09:00"),
        earlier("R-3", created_at="2026-07-24T09:00:00+09:00"),
    ]
    shop = open_shop(tmp_path, order("A-1", returns=returns), order("A-2", returns=[earlier("R-4")]))
    assert shop.rows("SELECT returned, refunded FROM returns.line_counters ORDER BY order_id") == [(1, 3_000)] * 2
    assert dict(shop.rows("SELECT return_id, status FROM returns.records")) == {
        "R-1": "cancelled", "R-2": "cancelled", "R-3": "created", "R-4": "created",
    }  # fmt: skip


@pytest.mark.parametrize("sign", ["\u2028", "\u0085", "\u00ad", "\u200b"])
def test_a_name_that_the_database_would_not_take_is_told_without_what_it_is(tmp_path: Path, sign: str) -> None:
    shop = open_shop(tmp_path)
    file = tmp_path / "seed.json"
    people = [recipient(name=f"見本{sign}花子")]
    file.write_text(json.dumps({"snapshot": "s", "policies": [policy()], "orders": [], "recipients": people}))
    try:
        shop.load(read_seed(file))
    except SeedError as error:
        said = told_of(shop, error)
        assert "花子" not in said
        assert "remove it" in said or "recipients[0].name" in said


def test_an_older_version_is_refused(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", version=3))
    with pytest.raises(SeedError, match="is older"):
        shop.load(seed(order("A-1", version=2)))


def test_a_return_from_before_the_first_rules_is_refused(tmp_path: Path) -> None:
    old = order("A-1", line(quantity=2), returns=[earlier(created_at="2025-01-01T00:00:00+09:00")])
    with pytest.raises(SeedError, match="no policy version was in effect when R-old was made"):
        open_shop(tmp_path, old)


def broken(**changes: Any) -> dict[str, Any]:
    return order("A-1", line("L1", quantity=2), **changes)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"orders": [broken(), broken()]}, "orders: acme/A-1 stands 2 times"),
    ({"orders": [broken(discount=6_001, captured=0)]}, "orders[0].discount: 6001 is above the lines' 6000"),
    ({"orders": [broken(captured=6_001)]}, "orders[0].captured: 6001 is above the order's 6000"),
    ({"orders": [broken(refunded_outside=6_001)]}, "orders[0].refunded_outside: is above"),
    ({"orders": [broken(ordered_at="0001-01-01T00:00:00Z")]}, "orders[0].ordered_at: 0001-01-01"),
    ({"orders": [order("A", line(delivered_quantity=2))]}, "orders[0].lines[0].delivered_quantity: is above the 1"),
    ({"orders": [order("A", line(delivered_at="1970-01-01T00:00:00Z"))]}, "write null where there is no date"),
    ({"orders": [order("A", line(), line())]}, "orders[0].lines: L1 stands 2 times"),
    ({"orders": [order("A", line(price=10**12, quantity=10_000), captured=0)]}, "minor units; split it"),
    ({"orders": [broken(returns=[earlier(quantity=3)])]}, "line L1: 1 more returned than delivered"),
    ({"orders": [broken(returns=[earlier(), earlier()])]}, "orders[].returns: acme/R-old stands 2 times"),
    ({"orders": [broken(returns=[earlier(lines=[{"line_id": "L9", "quantity": 1}])])]}, "the order has no line L9"),
    ({"policies": [policy(zone="Mars/Olympus")]}, "policies[0].zone: 'Mars/Olympus' is no time zone"),
    ({"policies": [policy(effective_until="2025-01-01T00:00:00Z")]}, "policies[0].effective_until: is not after"),
    ({"policies": [policy(), policy("p2")]}, "two versions cannot begin at one instant"),
    ({"recipients": [recipient(name="Eve\r\nBcc: x")]}, "recipients[0].name: holds a line break"),
    (
        {"recipients": [recipient(email="a..b@example.com")]},
        "recipients[0].email: 'a..b@example.com' is no mail address",
    ),
    ({"recipients": [recipient(), recipient()]}, "recipients: acme/C-1 stands 2 times"),
    ({"orders": [broken(shipping_fee=-1)]}, "orders[0].shipping_fee: Input should be greater than or equal to 0"),
    ({"orders": [broken(shipping_fee=1.5)]}, "orders[0].shipping_fee: Input should be a valid integer"),
    ({"orders": [broken(currency="yen")]}, "orders[0].currency"),
    ({"orders": [broken(extra=1)]}, "orders[0].extra: Extra inputs are not permitted"),
    ({"orders": [broken(note="a\x00b")]}, "orders[0].note: Value error, a NUL character cannot be stored"),
    ({"orders": [broken(ordered_at="2026-07-01T00:00:00")]}, "orders[0].ordered_at: Input should have timezone info"),
    ({"orders": [order("A", line(price=10**400))]}, "orders[0].lines[0].unit_price"),
]


@pytest.mark.parametrize(("changes", "told"), MISTAKES, ids=[row[1][:50] for row in MISTAKES])
def test_a_mistake_in_the_file_is_told_with_its_place(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    plain = {"snapshot": "s", "policies": [policy()], "orders": [broken()], "recipients": []}
    file = tmp_path / "seed.json"
    file.write_text(json.dumps(plain | changes))
    with pytest.raises(SeedError) as caught:
        read_seed(file)
    assert told in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"nothing", b"[]", b"{}", b'{"snapshot": "\xff"}', b"[" * 100_000])
def test_what_is_no_seed_file_at_all_is_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "seed.json"
    file.write_bytes(content)
    with pytest.raises(SeedError):
        read_seed(file)


def test_many_mistakes_are_told_together_and_not_without_end(tmp_path: Path) -> None:
    file = tmp_path / "seed.json"
    orders = [order(f"A-{at}", line(delivered_quantity=2)) for at in range(50)]
    file.write_text(json.dumps({"snapshot": "s", "policies": [], "orders": orders, "recipients": []}))
    with pytest.raises(SeedError) as caught:
        read_seed(file)
    assert len(caught.value.problems) == 50
    assert str(caught.value).splitlines()[-1] == "… and 30 more"


def test_a_mistake_leaves_nothing_of_the_file(tmp_path: Path) -> None:
    shop = open_shop(tmp_path)
    bad = order("B-2", line(quantity=2), returns=[earlier(created_at="2025-01-01T00:00:00+09:00")])
    with pytest.raises(SeedError):
        shop.load(seed(order("B-1"), bad, policies=[policy("p-new", effective_from="2026-02-01T00:00:00+09:00")]))
    assert shop.rows(COUNTS) == [(0, 1, 0)]


@pytest.mark.parametrize(
    ("discount", "amounts", "given"),
    [
        (0, [5, 7], [0, 0]),
        (1, [1, 1], [1, 0]),
        (10, [10], [10]),
        (100, [999, 1000, 1, 0], [50, 50, 0, 0]),
        (3, [1, 1, 1], [1, 1, 1]),
        (0, [0, 0], [0, 0]),
        (7, [3, 3, 3], [3, 2, 2]),
    ],
)
def test_a_discount_is_shared_out_by_largest_remainder(discount: int, amounts: list[int], given: list[int]) -> None:
    assert shares(discount, amounts) == given
    assert sum(given) == discount
    assert all(share <= amount for share, amount in zip(given, amounts, strict=True))
