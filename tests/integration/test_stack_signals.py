"""A process that is told to end: it does, although a cancellation was lost, and its cleaning up is not cut short."""

from __future__ import annotations

import signal
import subprocess
import sys

BEGIN = """
import asyncio, sys
from host.stack.signals import ended_by_signals

async def main():
    with ended_by_signals() as ending:
        print("ready", flush=True)
"""
LOSES_ONE = """
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("lost", flush=True)
        await asyncio.Event().wait()
"""
CLEANS_UP = """
        try:
            await asyncio.Event().wait()
        finally:
            ending.leave()
            print("leaving", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            print("cleaned", flush=True)
"""
END = """
asyncio.run(main())
"""


def started(body: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + body + END], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert line(process) == "ready"
    return process


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_cancellation_that_was_lost_is_asked_for_again() -> None:
    process = started(LOSES_ONE)
    process.send_signal(signal.SIGTERM)
    assert line(process) == "lost"
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


def test_further_signals_do_not_cut_the_cleaning_up_short() -> None:
    process = started(CLEANS_UP)
    process.send_signal(signal.SIGHUP)
    assert line(process) == "leaving"
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate("go on\n", timeout=30)
    assert out.strip() == "cleaned"
    assert process.returncode == 128 + signal.SIGHUP
