"""Orders in numbers: each is drawn from its own number, and about half of them get one or two oddities."""

from __future__ import annotations

from datetime import timedelta

from shared_contracts.orders import OrderStatus
from tool_server.demo.parts import SNAPSHOT, below, delivered, goods, line, order, pick
from tool_server.demo.people import CUSTOMERS, customer
from tool_server.demo.twists import COMBINATIONS, twisted
from tool_server.seed import SeedLine, SeedOrder
from tool_server.seed_checks import total

_RANGES = {"acme-jp": ("A", 1101, 134, 0), "hoshi-jp": ("H", 3001, 58, 67)}  # letter, first, count, combinations
_DOLLARS_EVERY = 8

# name, category, yen, US cents
_PRODUCTS = (
    ("炊飯器 5合", "appliances", 18_800, 12_530),
    ("ハンドミキサー", "appliances", 4_280, 2_899),
    ("卓上扇風機", "appliances", 3_680, 2_450),
    ("スマートスピーカー", "audio", 9_980, 6_599),
    ("ブックシェルフスピーカー", "audio", 32_000, 21_305),
    ("三脚 アルミ", "cameras", 7_600, 5_119),
    ("フリースジャケット", "apparel", 5_490, 3_667),
    ("デニムパンツ", "apparel", 7_990, 5_333),
    ("ウールマフラー", "apparel", 4_950, 3_301),
    ("スニーカー", "shoes", 8_800, 5_867),
    ("革靴 プレーントゥ", "shoes", 19_800, 13_199),
    ("料理の基本(上巻)", "books", 1_980, 1_320),
    ("星空の歩き方", "books", 2_420, 1_613),
    ("化粧水 200ml", "cosmetics", 3_300, 2_199),
    ("リップバーム", "cosmetics", 880, 587),
    ("本棚 3段", "furniture", 12_900, 8_607),
    ("ローテーブル", "furniture", 15_400, 10_267),
    ("鉄鍋 22cm", "kitchen", 8_250, 5_505),
    ("弁当箱 2段", "kitchen", 2_640, 1_761),
    ("水切りラック", "kitchen", 3_960, 2_641),
    ("ダンベル 5kg", "sports", 3_480, 2_323),
    ("テント 2人用", "sports", 24_800, 16_533),
    ("方眼ノート 5冊組", "stationery", 1_650, 1_101),
    ("万年筆 中字", "stationery", 11_000, 7_333),
    ("ジグソーパズル 1000ピース", "toys", 2_970, 1_979),
    ("木製電車セット", "toys", 6_380, 4_257),
)
_QUANTITIES = (1, 1, 1, 1, 2, 2, 3, 5)
_NOTES = (None, None, None, None, "置き配希望", "領収書を同梱してください", "Please leave it with the concierge.")


def _lines(number: str, *, dollars: bool) -> list[SeedLine]:
    first, count = below(len(_PRODUCTS), number, "product"), 1 + below(4, number, "lines")
    # 26 products, stepped by 7: no product comes twice in one order
    chosen = [_PRODUCTS[(first + 7 * nth) % len(_PRODUCTS)] for nth in range(count)]
    return [
        line(nth, name, category, cents if dollars else yen, quantity=pick(_QUANTITIES, number, "quantity", nth))
        for nth, (name, category, yen, cents) in enumerate(chosen, 1)
    ]


def _discount(number: str, worth: int, *, dollars: bool) -> int:
    kind = below(4, number, "discount")
    fixed = 500 if not dollars else 400
    return (0, 0, min(fixed, worth), worth // 10)[kind]


def _shipping(number: str, worth: int, *, dollars: bool) -> int:
    if dollars:
        return pick((0, 895, 1_495), number, "shipping")
    return 0 if worth >= 10_000 else pick((550, 550, 1_100), number, "shipping")


def _plain(tenant: str, number: str, nth: int) -> SeedOrder:
    """Draw an order without oddities, delivered at most nine days before the snapshot."""
    dollars = nth % _DOLLARS_EVERY == _DOLLARS_EVERY - 1
    minutes = 9 * 60 + below(12 * 60, number, "minute")
    when = SNAPSHOT - timedelta(days=2 + below(8, number, "day")) + timedelta(minutes=minutes)
    lines = [delivered(item, when) for item in _lines(number, dollars=dollars)]
    worth = goods(lines)
    return order(
        tenant, number, customer(below(CUSTOMERS[tenant], number, "customer")), lines,
        currency="USD" if dollars else "JPY",
        shipping_fee=_shipping(number, worth, dollars=dollars),
        discount=_discount(number, worth, dollars=dollars),
        note=pick(_NOTES, number, "note"),
    )  # fmt: skip


def _settled(made: SeedOrder) -> SeedOrder:
    """Bring what follows from the lines in line with them: the status, and the version as events counted."""
    open_units = [item.quantity - item.delivered_quantity for item in made.lines]
    status = made.status
    if status not in {OrderStatus.CANCELLED, OrderStatus.REFUNDED, OrderStatus.PENDING}:
        status = OrderStatus.DELIVERED if not any(open_units) else OrderStatus.SHIPPED
    arrivals = {item.delivered_at for item in made.lines if item.delivered_quantity}
    version = 1 + len(arrivals) + len(made.returns)
    return made.model_copy(update={"status": status, "version": version})


def settled(made: SeedOrder) -> SeedOrder:
    """Finish an order and check that what was received does not exceed what it cost."""
    if made.captured > total(made):
        raise ValueError(f"{made.order_id}: more was captured than the order costs")
    return _settled(made)


def _odd(tenant: str, nth: int) -> SeedOrder:
    letter, first, _count, skipped = _RANGES[tenant]
    number = f"{letter}-{first + nth}"
    plain = _plain(tenant, number, nth)
    # every second order keeps its plain form; the others walk through the combinations
    return plain if nth % 2 == 0 else twisted(plain, COMBINATIONS[(nth // 2 + skipped) % len(COMBINATIONS)])


ORDINARY = tuple(_odd(tenant, nth) for tenant, (_, _, count, _) in _RANGES.items() for nth in range(count))
