import asyncio
import time

from host.tool_client.pace import KEPT_MAX, Pace, Rates


async def spent(pace: Pace, calls: list[tuple[str, str]]) -> float:
    started = time.monotonic()
    for tenant, principal in calls:
        await asyncio.wait_for(pace.wait(tenant, principal), 5)
    return time.monotonic() - started


def test_calls_beyond_the_burst_wait_for_their_turn() -> None:
    pace = Pace(Rates(principal=10, tenant=1000))
    assert asyncio.run(spent(pace, [("t", "p")] * 24)) >= 0.3  # 20 at once, then one each 0.1 s


def test_one_principal_does_not_hold_up_another() -> None:
    async def both() -> float:
        pace = Pace(Rates(principal=1, tenant=1000))
        await spent(pace, [("t", "p")] * 2)
        return await spent(pace, [("t", "q")] * 2)

    assert asyncio.run(both()) < 0.5


def test_principals_of_one_tenant_share_its_rate() -> None:
    pace = Pace(Rates(principal=1000, tenant=10))
    assert asyncio.run(spent(pace, [("t", f"p{n}") for n in range(24)])) >= 0.3


def test_the_buckets_kept_are_bounded() -> None:
    pace = Pace(Rates(principal=1000, tenant=100_000))
    asyncio.run(spent(pace, [("t", f"p{n}") for n in range(KEPT_MAX + 10)]))
    assert len(pace._buckets) <= KEPT_MAX
