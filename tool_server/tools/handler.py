"""What a handler is: it gets its own family's connections and a call that was checked, and answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tool_server.call import Answer, Call
from tool_server.store.pool import Pool

Handler: TypeAlias = Callable[[Pool, Call], Awaitable[Answer]]
