"""The return rules of the invented shop: the set that holds at the snapshot, and the one before it.

Two rows that agree on a category are one rule from two sources; two that disagree are a conflict.
"""

from __future__ import annotations

from datetime import datetime

from tool_server.demo.parts import JST
from tool_server.seed import SeedAmount, SeedPolicy, SeedRule

_CHANGE = datetime(2026, 4, 1, tzinfo=JST)


def _rule(
    category: str, days: int, *, source: str = "general-terms", dangerous: bool = False, final: bool = False
) -> SeedRule:
    return SeedRule(category=category, source=source, window_days=days, dangerous=dangerous, final_sale=final)


_V12 = (
    _rule("appliances", 30),
    _rule("apparel", 30),
    _rule("audio", 30),
    _rule("books", 14),
    _rule("books", 14, source="publisher-terms"),
    _rule("cameras", 30),
    _rule("cosmetics", 14),
    _rule("furniture", 14),
    _rule("gifts", 30),
    _rule("kitchen", 30),
    _rule("shoes", 30),
    _rule("sports", 30),
    _rule("stationery", 14),
    _rule("toys", 30),
    _rule("food", 8, final=True),
    _rule("swimwear", 30, final=True),
    _rule("aerosols", 14, dangerous=True),
    _rule("batteries", 30, dangerous=True),
    _rule("refurbished", 30),
    _rule("refurbished", 14, source="maker-terms"),
    _rule("drones", 30),
    _rule("drones", 30, source="carrier-terms", dangerous=True),
)
_V11 = (
    _rule("appliances", 14),
    _rule("apparel", 60),
    _rule("audio", 14),
    _rule("books", 14),
    _rule("cameras", 14),
    _rule("cosmetics", 7),
    _rule("furniture", 7),
    _rule("gifts", 14),
    _rule("kitchen", 14),
    _rule("shoes", 60),
    _rule("sports", 14),
    _rule("stationery", 14),
    _rule("toys", 14),
    _rule("food", 8, final=True),
    _rule("swimwear", 30, final=True),
    _rule("batteries", 14, dangerous=True),
)

POLICIES = (
    SeedPolicy(
        version="policy-v11",
        owner="returns-desk",
        effective_from=datetime(2025, 10, 1, tzinfo=JST),
        effective_until=_CHANGE,
        zone="Asia/Tokyo",
        rules=_V11,
        approval_thresholds=(SeedAmount(currency="JPY", amount=100_000),),
        return_fees=(SeedAmount(currency="JPY", amount=770),),
    ),
    SeedPolicy(
        version="policy-v12",
        owner="returns-desk",
        effective_from=_CHANGE,
        effective_until=None,
        zone="Asia/Tokyo",
        rules=_V12,
        # A currency that stands in neither list has no approved figure: its returns go to a person.
        approval_thresholds=(
            SeedAmount(currency="JPY", amount=50_000),
            SeedAmount(currency="USD", amount=35_000),
        ),
        return_fees=(SeedAmount(currency="JPY", amount=550), SeedAmount(currency="USD", amount=500)),
    ),
)
