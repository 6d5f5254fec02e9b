"""One caller's turn on the shared wire: its token, its deadline, and what was seen of the answer.

It travels in a context variable, which the SDK carries to the request that it belongs to. Invariant: once
closed, or once its posts are used up, nothing leaves under it; so one call is at most one request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from host.domain.outcome import HttpStatus, NotSent, RpcError, WireResult


@dataclass(slots=True)
class Exchange:
    """`deadline` is of the event loop's clock; `seen` is None while all that came were answers."""

    token: str
    deadline: float
    posts_left: int
    posted: bool = False
    closed: bool = False
    seen: WireResult | None = None

    def may_post(self) -> bool:
        """Tell whether one more request may leave. After a failure none may: a fallback would hide it."""
        return not self.closed and self.posts_left > 0 and (self.seen is None or _is_an_answer(self.seen))

    def failure(self, otherwise: WireResult) -> WireResult:
        """What to make of an exchange that ended without an answer: `otherwise` only if a request was under way."""
        if self.seen is not None:
            return self.seen
        return otherwise if self.posted else NotSent("client_closed")


def _is_an_answer(seen: WireResult) -> bool:
    """An older server answers a newer method with an error or a plain 4xx, and then may be asked the old way."""
    match seen:
        case RpcError():
            return True
        case HttpStatus(status):
            return 400 <= status < 500 and status not in {401, 403, 429}
        case _:
            return False


_current: ContextVar[Exchange] = ContextVar("exchange")


@contextmanager
def exchanging(exchange: Exchange) -> Iterator[Exchange]:
    """Make it the one that requests of this context belong to; afterwards nothing more leaves under it."""
    mark = _current.set(exchange)
    try:
        yield exchange
    finally:
        exchange.closed = True
        _current.reset(mark)


def exchange_for_good(exchange: Exchange) -> None:
    """Make it the one of this task and of all that it starts; its posts and its deadline bound it."""
    _current.set(exchange)


def current_exchange() -> Exchange:
    """Whose request this is."""
    return _current.get()
