"""Gives birth to our programs with their commits in hand: the one place from which `boundary` is loaded.

    python -m host.evaluation.crash.nursery MODULE…   orders as JSON lines on standard input, answers on standard output

    {"module": …, "arguments": …, "environment": …, "log": …, "boundary": …}   a program; answers its pid
    {"ended": pid}                                                              answers the signal that ended it, else 0


The modules are loaded once and the programs forked, which saves each the second that loading takes. A child is a
process of its own, with its own session, environment and log, and runs the same `main` as the command. When standard
input ends, whatever was started here and still lives is killed.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from host.evaluation.crash import boundary
from host.stack.pids import Identity, born

READY = "ready"


def main() -> None:
    """Serve until nobody orders any more."""
    for name in sys.argv[1:]:
        importlib.import_module(name)
    children: dict[int, Identity] = {}
    _say(READY)
    for line in sys.stdin:
        order = json.loads(line)
        if "ended" in order:
            _say(str(_signal_of(children, order["ended"])))
            continue
        pid = os.fork()
        if pid == 0:
            _become(order)
        children[pid] = Identity(pid, born(pid) or "")
        _say(str(pid))
    for child in children.values():
        child.signal(signal.SIGKILL)


def _signal_of(children: dict[int, Identity], pid: int) -> int:
    """Tell what ended a child, from the kernel's word; 0 where it lives, or ended by itself."""
    found, status = os.waitpid(pid, os.WNOHANG)
    if found == 0:
        return 0
    del children[pid]  # its number may be anybody's from here on
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _become(order: Mapping[str, Any]) -> None:
    """Be the program, as if it had been started by its command line; this never returns."""
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.environ.clear()
        os.environ.update(order["environment"])
        sys.argv = [order["module"], *order["arguments"]]
        boundary.install(order["boundary"])
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
    main()
