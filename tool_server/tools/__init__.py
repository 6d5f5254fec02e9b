"""What tools do, one file per family. A handler gets its own family's connections and a checked call, and answers."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tool_server.call import Answer, Call
from tool_server.store.pool import Pool

Handler: TypeAlias = Callable[[Pool, Call], Awaitable[Answer]]
