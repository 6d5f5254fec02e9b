"""`kessai run` as a person waits for it: from the command to COMPLETED, the database's start and stop included.

Once in a home that is emptied first, which is what `make run` does, and then in one that was set up before.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from statistics import median

from host.stack.removal import empty_home
from tests.bench.figures import Figure
from tests.bench.stand import Stand, directory

SECONDS_MAX = 4.0
GIVEN_UP_SECONDS = 120.0
EXAMPLES = Path(__file__).parents[2] / "examples" / "returns"
RUNS, PREPARED = 3, ("defective", "steering", "duplicate")  # examples that complete, each for the first time


async def measure(_made: Stand) -> list[Figure]:
    """Give the wall seconds of both."""
    with directory() as within:
        home = within / "home"
        try:
            fresh = [await _run(home, "normal", "--fresh") for _ in range(RUNS)]
            prepared = [await _run(home, name) for name in PREPARED]
        finally:
            await empty_home(home)
    return [
        Figure("`kessai run --fresh` (as `make run`), everything made anew", median(fresh), "s", "≤", SECONDS_MAX),
        Figure("`kessai run` in a home that was set up before", median(prepared), "s", "≤", SECONDS_MAX),
    ]


async def _run(home: Path, example: str, *options: str) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KESSAI_")}
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "host.cli", "run", str(EXAMPLES / f"{example}.json"), "--json", *options,
        env=environment | {"KESSAI_HOME": str(home)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(GIVEN_UP_SECONDS):
        said, complained = await process.communicate()
    seconds = time.perf_counter() - began
    if process.returncode != 0 or json.loads(said)["state"] != "COMPLETED":
        raise RuntimeError(f"{example} ended with {process.returncode}: {complained.decode()[-2000:]}")
    return seconds
