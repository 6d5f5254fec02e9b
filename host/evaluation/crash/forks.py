"""The other end of a nursery: orders programs, and lets the nursery end when the block does.

Invariant: a nursery has loaded the modules of one side alone, so no program of the one has the other's code in memory.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from host.stack.errors import StackError, StackProblem
from host.stack.pids import Identity, born
from host.stack.processes import Program, environment, python_module

NURSERY = "host.evaluation.crash.nursery"  # by its name: nothing imports it
HOST_MODULES = ("host.cli", "host.commands.worker", "host.commands.run", "host.wiring", "host.engine.worker")
TOOLS_MODULES = ("tool_server.cli", "tool_server.serve")
_READY = "ready\n"
_END_SECONDS = 30.0


@dataclass
class Nursery:
    """Starts a program with its settings and what more its environment holds; `boundary` is that module's order."""

    process: subprocess.Popen[str]

    def start(
        self, program: Program, log: Path, boundary: Mapping[str, str], more: Mapping[str, str] | None = None
    ) -> Identity:
        """Fork it; it is not yet ready."""
        module, *arguments = program.arguments[program.arguments.index("-m") + 1 :]
        order = {
            "module": module,
            "arguments": arguments,
            "environment": environment(program.settings) | dict({} if more is None else more),
            "log": str(log),
            "boundary": dict(boundary),
        }
        pid = self._answer(order)
        return Identity(pid, born(pid) or "")

    def was_killed(self, process: Identity) -> bool:
        """Tell whether SIGKILL ended a program that was started here; asked once of each."""
        return self._answer({"ended": process.pid}) == signal.SIGKILL

    def _answer(self, order: Mapping[str, object]) -> int:
        asked, told = _pipes(self.process)
        try:
            asked.write(json.dumps(order) + "\n")
            asked.flush()
        except BrokenPipeError as error:
            raise _failed() from error
        line = told.readline()
        if not line:
            raise _failed()
        return int(line)


@contextmanager
def nursery(modules: tuple[str, ...], of: str = NURSERY) -> Iterator[Nursery]:
    """Load the modules and wait for orders; raises StackError."""
    process = subprocess.Popen(
        python_module(of, *modules), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment({}),
        start_new_session=True,  # a terminal's Ctrl-C is for us; it ends when we do, whatever ended us
    )  # fmt: skip
    try:
        if _pipes(process)[1].readline() != _READY:
            raise _failed()
        yield Nursery(process)
    finally:
        process.communicate(timeout=_END_SECONDS)


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("both were asked for")
    return process.stdin, process.stdout


def _failed() -> StackError:
    return StackError(
        StackProblem.PROGRAM_FAILED, "What starts the programs has ended.", "What it said is on standard error."
    )
