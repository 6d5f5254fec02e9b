"""How often one may call: a token bucket per principal and one per tenant, of this replica.

Invariant: a call is counted before anything is known of its outcome, so failures count too; a refused call takes
nothing. Memory is bounded, and where it is full a newcomer waits: the limit has no way of failing open.

Each bucket is one number, the time at which it will be full again (the generic cell rate algorithm).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

BURST_SECONDS = 2.0
BUCKETS_MAX = 20_000  # about 3 MB; a bucket that is full again is forgotten
_FULL_WAIT_SECONDS = 1.0
_ROUNDING_SECONDS = 1e-6  # a sum of intervals is off by less; the last call of a burst must not fail by it


class Buckets:
    """Token buckets of one rate. `rate` is calls per second; a burst of two seconds' worth is let through."""

    def __init__(self, rate: float) -> None:
        self._interval = 1.0 / rate
        self._depth = max(BURST_SECONDS, self._interval)
        self._full_at: dict[Hashable, float] = {}
        self._swept_at = float("-inf")

    def wait(self, key: Hashable, now: float) -> float:
        """Give the seconds until `key` may call; 0 means now. Takes nothing."""
        full_at = self._full_at.get(key)
        if full_at is None:
            return 0.0 if self._room(now) else _FULL_WAIT_SECONDS
        wait = max(full_at, now) + self._interval - self._depth - now
        return wait if wait > _ROUNDING_SECONDS else 0.0

    def take(self, key: Hashable, now: float) -> None:
        """Count one call of `key`, which `wait` has let through."""
        self._full_at[key] = max(self._full_at.get(key, now), now) + self._interval

    def _room(self, now: float) -> bool:
        if len(self._full_at) >= BUCKETS_MAX and now >= self._swept_at + _FULL_WAIT_SECONDS:
            self._swept_at = now
            self._full_at = {key: full_at for key, full_at in self._full_at.items() if full_at > now}
        return len(self._full_at) < BUCKETS_MAX


class Failures:
    """How often one address may fail. `rate` is per second.

    Nobody is turned away for what others do: a request is judged first, and an address that failed too often is only
    told to wait instead of why it failed. So behind a balancer, where all have one address, a right token passes.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets, self._clock = Buckets(rate), clock

    def wait(self, address: str) -> float:
        """Count one failure of an address and give 0, or give the seconds that it is told to wait."""
        now = self._clock()
        wait = self._buckets.wait(address, now)
        if wait == 0.0:
            self._buckets.take(address, now)
        return wait


class Rates:
    """Both limits at once. `clock` gives seconds that never go back."""

    def __init__(self, principal: float, tenant: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._principals, self._tenants, self._clock = Buckets(principal), Buckets(tenant), clock

    def admit(self, issuer: str, subject: str, tenant: str) -> float:
        """Count a call and give 0, or give the seconds to wait and count nothing."""
        now = self._clock()
        principal = (issuer, subject)
        wait = max(self._principals.wait(principal, now), self._tenants.wait(tenant, now))
        if wait == 0.0:
            self._principals.take(principal, now)
            self._tenants.take(tenant, now)
        return wait
