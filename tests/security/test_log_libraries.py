"""What libraries log on either side: that something failed and what kind of thing, never what it was about."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from shared_contracts.log_limit import MANY

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
library = logging.getLogger("psycopg.pool")
library.warning("error connecting in %r: %s", "{CANARY}", OSError("{CANARY}"))
library.warning("attempt %d of %d failed after %.1f sec", 1, 2, 3.25)
library.warning("%(who)s left", {{"who": "{CANARY}"}})
library.warning("%d left, 100%% of %s", "{CANARY}", "{CANARY}")
library.warning("100% of all")
try:
    raise KeyError("{CANARY}")
except KeyError:
    logging.getLogger("procrastinate").exception("Job ended\\n{CANARY}")
logging.getLogger("procrastinate").error("Job ended" + " of it" * 100_000)
logging.getLogger("mcp").info("{CANARY}")
"""


@pytest.mark.parametrize("side", ["host.commands.log", "tool_server.log"])
def test_a_librarys_words_are_logged_without_what_they_quote_and_never_on_standard_output(side: str) -> None:
    program = [sys.executable, "-c", f"from {side} import configure\n{FORGETS_A_TASK}"]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
    assert CANARY not in done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.replace("\\u2026", "…").splitlines()
    assert len(lines) == 8
    assert max(map(len, lines)) < 2000
    told = ("error connecting in …: OSError", "attempt 1 of 2 failed after 3.2 sec", "… left", "…d left", "100% of all")
    for said, line in zip(told, lines[1:], strict=False):
        assert said in line
    for said in ("Task exception was never retrieved", "ValueError", "KeyError"):
        assert said in done.stderr


@pytest.mark.parametrize("side", ["host.commands.log", "tool_server.log"])
def test_a_line_is_one_event_in_universal_time_whatever_a_value_holds(side: str) -> None:
    value = "a\nb\r\x1b[2Jc\u2028d"
    program = f"import structlog\nfrom {side} import configure\nconfigure()\n"
    program += f"structlog.get_logger().warning('broke', of={value!r})\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    (line,) = done.stderr.splitlines()
    told = json.loads(line)
    assert line.isascii()
    assert line.isprintable()
    assert (told["event"], told["level"], told["of"]) == ("broke", "warning", value)
    assert told["timestamp"].endswith("Z")


@pytest.mark.parametrize("side", ["host.commands.log", "tool_server.log"])
def test_what_is_said_again_and_again_by_us_or_by_a_library_has_a_few_lines_in_a_minute(side: str) -> None:
    program = f"import logging, structlog\nfrom {side} import configure\nconfigure()\n"
    program += "for n in range(1000):\n"
    program += "    structlog.get_logger().warning('sealing_waits', error='OperationalError', workflow_id=str(n))\n"
    program += "    logging.getLogger('psycopg.pool').warning('attempt %d failed', n)\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(line["event"], line.get("of"), line["level"]) for line in lines] == [
        *[("sealing_waits", None, "warning"), ("library", None, "warning")] * (MANY - 1),
        ("many_alike", "sealing_waits", "error"),
        ("many_alike", "library", "error"),
    ]
