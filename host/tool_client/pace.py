"""Calls leave no faster than the tool server takes them: per principal and per tenant, per process.

Waiting here costs a few milliseconds; a 429 costs an attempt. The defaults stay below the server's own limits
(20 and 100 calls a second), so that retries of other processes find room.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from aiolimiter import AsyncLimiter

BURST_SECONDS = 2.0  # as the server's own bucket
KEPT_MAX = 1024  # principals remembered; a forgotten one begins with a full bucket


@dataclass(frozen=True, slots=True)
class Rates:
    """Calls a second."""

    principal: float
    tenant: float


class Pace:
    """One leaky bucket for each principal and each tenant."""

    def __init__(self, rates: Rates) -> None:
        """Begin with full buckets."""
        self._rates = rates
        self._buckets: OrderedDict[tuple[str, str], AsyncLimiter] = OrderedDict()

    async def wait(self, tenant_id: str, principal: str) -> None:
        """Wait until a call of this principal may leave."""
        await self._bucket("tenant", tenant_id, self._rates.tenant).acquire()
        await self._bucket("principal", principal, self._rates.principal).acquire()

    def _bucket(self, what: str, name: str, rate: float) -> AsyncLimiter:
        bucket = self._buckets.get((what, name))
        if bucket is None:
            bucket = self._buckets[what, name] = AsyncLimiter(
                max(1.0, rate * BURST_SECONDS), max(BURST_SECONDS, 1 / rate)
            )
            if len(self._buckets) > KEPT_MAX:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end((what, name))
        return bucket
