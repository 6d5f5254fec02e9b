"""`kessai run` as a person waits for it: from the command to COMPLETED, the database's start and stop included.

Once in a home that is emptied first, as `make run` does, and then in a home that was set up before.
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

SECONDS_MAX, RUNS = 4.0, 3
GIVEN_UP_SECONDS = 120.0
EXAMPLE = Path(__file__).parents[2] / "examples" / "returns" / "normal.json"


async def measure(_made: Stand) -> list[Figure]:
    """Give the wall seconds of both."""
    with directory() as within:
        home = within / "home"
        try:
            emptied = [await _run(home, EXAMPLE, empty=True) for _ in range(RUNS)]
            prepared = [await _run(home, _fresh(within, number), empty=False) for number in range(RUNS)]
        finally:
            await empty_home(home)
    return [
        Figure("`kessai run` in an emptied home, database made anew", median(emptied), "s", "≤", SECONDS_MAX),
        Figure("`kessai run` in a home that was set up before", median(prepared), "s", "≤", SECONDS_MAX),
    ]


async def _run(home: Path, case: Path, *, empty: bool) -> float:
    began = time.perf_counter()
    if empty:
        await empty_home(home)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KESSAI_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "host.cli", "run", str(case), "--json",
        env=environment | {"KESSAI_HOME": str(home)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(GIVEN_UP_SECONDS):
        said, complained = await process.communicate()
    seconds = time.perf_counter() - began
    if process.returncode != 0 or json.loads(said)["state"] != "COMPLETED":
        raise RuntimeError(f"the run ended with {process.returncode}: {complained.decode()[-2000:]}")
    return seconds


def _fresh(within: Path, number: int) -> Path:
    """Ask for one more line of the demo's shop, so that nothing is known of it yet."""
    case = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    case["request_id"] = f"bench-command-{number}"
    file = within / f"case-{number}.json"
    file.write_text(json.dumps(case), encoding="utf-8")
    return file
