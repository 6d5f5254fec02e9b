"""Takes one case in, as a process of its own that can be killed on the way: python -m tests.crash.submit NUMBER."""

from __future__ import annotations

import asyncio
import sys

from host import settings
from tests.crash.desk import desk


async def _submit(number: int) -> None:
    dsn = settings.load().dsn
    assert dsn is not None
    async with desk(dsn.get_secret_value()) as opened:
        sys.stdout.write(f"{await opened.take(number)}\n")


def main() -> None:
    asyncio.run(_submit(int(sys.argv[1])))
