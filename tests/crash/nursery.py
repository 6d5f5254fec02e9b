"""Starts our programs by forking a process that has imported them already: tests with many starts need it.

    python -m tests.crash.nursery      orders as JSON lines on standard input, pids as lines on standard output

The child is a process of its own, with its own session, environment and log, and runs the same `main` as the command.
When standard input ends, whatever was started here and still lives is killed.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from host.stack.pids import Identity, born
from host.stack.processes import Program, environment, python_module

LOADED = (
    "host.cli",
    "host.commands.worker",
    "host.wiring",
    "host.engine.worker",
    "tool_server.cli",
    "tool_server.serve",
)
ROOT = Path(__file__).parents[2]


@dataclass
class Nursery:
    """The other end. A program is started with its settings and what more its environment holds."""

    process: subprocess.Popen[str]

    def start(self, program: Program, log: Path, more: Mapping[str, str]) -> Identity:
        module, *arguments = program.arguments[program.arguments.index("-m") + 1 :]
        order = {
            "module": module,
            "arguments": arguments,
            "environment": environment(program.settings) | dict(more),
            "log": str(log),
        }
        asked, told = _pipes(self.process)
        asked.write(json.dumps(order) + "\n")
        asked.flush()
        pid = int(told.readline())
        return Identity(pid, born(pid) or "")


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


@contextmanager
def nursery() -> Iterator[Nursery]:
    process = subprocess.Popen(
        python_module("tests.crash.nursery"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment({}),
    )  # fmt: skip
    try:
        assert _pipes(process)[1].readline() == "ready\n"
        yield Nursery(process)
    finally:
        process.communicate(timeout=30)


def _serve() -> None:
    for name in LOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
    children: list[Identity] = []
    _say("ready")
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(order)
        children.append(Identity(pid, born(pid) or ""))
        _say(str(pid))
    for child in children:
        child.signal(signal.SIGKILL)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _become(order: Mapping[str, Any]) -> None:
    """Be the program, as if it had been started by its command line; this never returns."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.environ.clear()
        os.environ.update(order["environment"])
        sys.argv = [order["module"], *order["arguments"]]
        importlib.import_module("tests.crash.boundary").install()
        importlib.import_module(order["module"]).main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - a forked child must not return; its log shows what happened
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
