"""The evaluation of the 120 cases and the crash matrix, as commands in homes of their own; each has to pass."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from host.stack.removal import empty_home
from tests.bench.figures import Figure
from tests.bench.stand import Stand, directory

EVALUATION_SECONDS_MAX, MATRIX_SECONDS_MAX = 60.0, 300.0
GIVEN_UP_SECONDS = 900.0


async def measure(_made: Stand) -> list[Figure]:
    """Give the seconds that each tells of itself, the preparation of its home left out."""
    with directory() as within:
        home = within / "home"
        try:
            await _run(home, "eval", "--concurrency", "8", "--seed", "1", "--report", str(within / "evaluation"))
            cases = json.loads((within / "evaluation" / "report.json").read_text("utf-8"))
            await _run(home, "eval", "drop")
            matrix = json.loads(await _run(home, "crash-matrix", "--json"))
        finally:
            await empty_home(home)
    return [
        Figure(
            f"`kessai eval`, {len(cases['cases'])} cases at 8 in flight",
            cases["seconds"],
            "s",
            "≤",
            EVALUATION_SECONDS_MAX,
        ),
        Figure(f"`kessai crash-matrix`, {len(matrix['cells'])} cells", matrix["seconds"], "s", "≤", MATRIX_SECONDS_MAX),
    ]


async def _run(home: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KESSAI_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "host.cli", *arguments, env=environment | {"KESSAI_HOME": str(home)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(GIVEN_UP_SECONDS):
        said, complained = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{arguments[0]} ended with {process.returncode}: {complained.decode()[-2000:]}")
    return said.decode()
