"""What libraries log on either side: that something failed and what kind of thing, never what it was about."""

from __future__ import annotations

import subprocess
import sys

import pytest

CANARY = "canary7f3a"
FORGETS_A_TASK = f"""
import asyncio, gc, logging

async def failing():
    raise ValueError("Failing row contains ({CANARY})")

async def main():
    task = asyncio.create_task(failing())
    await asyncio.sleep(0)
    del task
    gc.collect()

configure()
asyncio.run(main())
logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "pool-1", "{CANARY}")
try:
    raise KeyError("{CANARY}")
except KeyError:
    logging.getLogger("procrastinate").exception("Job ended\\n{CANARY}")
logging.getLogger("mcp").info("{CANARY}")
"""


@pytest.mark.parametrize("side", ["host.commands.log", "tool_server.log"])
def test_a_librarys_words_are_logged_without_what_they_quote_and_never_on_standard_output(side: str) -> None:
    program = [sys.executable, "-c", f"from {side} import configure\n{FORGETS_A_TASK}"]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
    assert CANARY not in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 3
    for said in ("Task exception was never retrieved", "ValueError", "error connecting in %r: %s", "KeyError"):
        assert said in done.stderr
