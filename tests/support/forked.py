"""The command line, loaded once: each command is a fork of a process that has imported everything already.

A command that is started plainly spends most of its time on imports, and tests start hundreds. Here it is a process of
its own all the same, with the environment, directory and streams that it was given, and it ends as any other. What is
killed, interrupted or watched while it runs is started plainly (`Cli.start`).

    test ──argv, environment, three streams──► loaded process ─fork─► waits ─fork─► the command
         ◄───────────── its number, its exit code ─────────┘
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path

MESSAGE_MAX = 1 << 18
_NUMBER = struct.Struct("i")


class Loaded:
    """The loaded process of one test process; it ends with the socket that leads to it."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = (sys.executable, "-m", "tests.support.forked", str(theirs.fileno()))
            self.process = subprocess.Popen(command, cwd=directory, env=environment, pass_fds=[theirs.fileno()])
        self._directory, self._line = directory, ours

    def run(
        self, arguments: tuple[str, ...], environment: Mapping[str, str], streams: tuple[int, int, int], seconds: float
    ) -> int:
        """Run a command on these streams; gives its exit code, below zero for a signal. Kills what takes longer."""
        answer, teller = socket.socketpair()
        with answer:
            with teller:
                message = {"argv": arguments, "env": dict(environment), "cwd": str(self._directory)}
                socket.send_fds(self._line, [json.dumps(message).encode()], [*streams, teller.fileno()])
            number = _told(answer)
            answer.settimeout(seconds)
            try:
                return _told(answer)
            except TimeoutError:
                os.kill(number, signal.SIGKILL)
                raise


def _told(answer: socket.socket) -> int:
    return int(_NUMBER.unpack(answer.recv(_NUMBER.size, socket.MSG_WAITALL))[0])


def _serve(line: socket.socket) -> tuple[dict[str, object], list[int]] | None:
    """Fork for each message; gives what a command was given in the process that becomes it, and None at the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever waits for a command is waited for by nobody
    while True:
        message, given, _, _ = socket.recv_fds(line, MESSAGE_MAX, 4)
        if not message:
            return None
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            line.close()
            runner = os.fork()
            if runner == 0:
                os.close(given[3])
                return json.loads(message), given[:3]
            for one in given[:3]:
                os.close(one)
            os.write(given[3], _NUMBER.pack(runner))
            code = os.waitstatus_to_exitcode(os.waitpid(runner, 0)[1])
            os.write(given[3], _NUMBER.pack(code))
            os._exit(0)
        for one in given:
            os.close(one)


def _become(argv: list[str], env: Mapping[str, str], cwd: str, streams: list[int]) -> None:
    for number, one in enumerate(streams):
        os.dup2(one, number)
        os.close(one)
    sys.stdin = TextIOWrapper(os.fdopen(0, "rb"), encoding="utf-8")
    sys.stdout = TextIOWrapper(os.fdopen(1, "wb"), encoding="utf-8")
    sys.stderr = TextIOWrapper(os.fdopen(2, "wb"), encoding="utf-8", errors="backslashreplace", line_buffering=True)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = ["host.cli", *argv]
    runpy.run_module("host.cli", run_name="__main__", alter_sys=True)


def _main() -> None:
    commands = importlib.import_module("host.commands")
    modules = [f"host.commands.{one.name}" for one in pkgutil.iter_modules(commands.__path__)]
    for module in ("host.cli", "host.wiring", *modules):
        importlib.import_module(module)
    gc.freeze()  # else each command, when it ends, takes apart what is loaded here, which takes longer than it ran
    given = _serve(socket.socket(fileno=int(sys.argv[1])))
    if given is not None:
        wanted, streams = given
        _become(streams=streams, **wanted)  # type: ignore[arg-type]  # as it was sent


if __name__ == "__main__":
    _main()
