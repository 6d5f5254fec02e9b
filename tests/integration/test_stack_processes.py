"""Programs of the stack: only their own settings, adopted when they are the same, ended and never left behind."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from host.stack import processes
from host.stack.errors import StackError, StackProblem
from host.stack.files import read_json, write_json
from host.stack.home import Home, open_home
from host.stack.pids import Identity, born
from host.stack.ports import choose_port
from host.stack.processes import Program, Running
from tests.support import stand_in

NAME = "stand_in"
STARTER = """
import sys
from pathlib import Path
from host.stack import processes
from host.stack.home import open_home
program = processes.Program("stand_in", tuple(sys.argv[3:]), {}, "1", int(sys.argv[2]), None, 5.0)
print(processes.start(open_home(Path(sys.argv[1])), program).process.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = open_home(tmp_path / "home")
    yield made
    running = processes.find(made, NAME)
    if running is not None:
        running.process.signal(signal.SIGKILL)
        assert asyncio.run(running.process.gone(10))


def program(home: Home, manner: str = "", *, settings: dict[str, str] | None = None, drain: float = 10.0) -> Program:
    port = choose_port(None)
    arguments = (sys.executable, stand_in.__file__, str(port), str(home.root / "environment"), manner)
    return Program(NAME, arguments, {} if settings is None else settings, "build", port, None, drain)


def ready(home: Home, running: Running, within: float = 20.0) -> None:
    asyncio.run(processes.wait_ready(home, running, within))


def stop(home: Home, running: Running) -> None:
    asyncio.run(processes.stop(home, running))


def test_a_program_gets_its_own_settings_and_nobody_elses(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KESSAI_DSN", "KESSAI_TOOLS_ORDERS_DSN", "PGPASSWORD", "PGOPTIONS", "VENDOR_API_KEY"):
        monkeypatch.setenv(name, "somebody else's")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    running = processes.start(home, program(home, settings={"KESSAI_TOOLS_HOST": "127.0.0.1"}))
    ready(home, running)
    found = json.loads((home.root / "environment").read_text())
    assert found["KESSAI_TOOLS_HOST"] == "127.0.0.1"
    assert found["TZ"] == "Asia/Tokyo"
    ours = {"KESSAI_TOOLS_HOST", "PYTHONPATH", "PYTHONUNBUFFERED"}
    added_by_the_shell_and_python = {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
    assert set(found) <= ours | set(processes.PASSED_ON) | added_by_the_shell_and_python
    assert "somebody else's" not in found.values()


def test_a_running_program_is_found_again_with_its_port(home: Home) -> None:
    wanted = program(home)
    running = processes.start(home, wanted)
    ready(home, running)
    found = processes.find(home, NAME)
    assert found is not None
    assert (found.process, found.port, found.started_here) == (running.process, wanted.port, False)
    assert found.fingerprint == wanted.fingerprint()
    stop(home, found)
    assert processes.find(home, NAME) is None
    assert processes.remembered_port(home, NAME) == wanted.port


def test_other_settings_other_arguments_or_other_code_make_another_program(home: Home) -> None:
    one = Program(NAME, ("a",), {"A": "1"}, "build", 1, None, 1.0)
    others = (
        Program(NAME, ("a",), {"A": "2"}, "build", 1, None, 1.0),
        Program(NAME, ("b",), {"A": "1"}, "build", 1, None, 1.0),
        Program(NAME, ("a",), {"A": "1"}, "other", 1, None, 1.0),
    )
    assert one.fingerprint() not in {other.fingerprint() for other in others}


def test_stopping_lets_it_finish(home: Home) -> None:
    running = processes.start(home, program(home))
    ready(home, running)
    stop(home, running)
    assert not running.process.alive()
    assert processes.log_of(home, NAME).read_text().splitlines()[-1] == "drained"


def test_one_that_does_not_finish_is_killed_when_its_time_is_over(home: Home) -> None:
    running = processes.start(home, program(home, "stubborn", drain=0.2))
    ready(home, running)
    stop(home, running)
    assert not running.process.alive()


def test_one_that_dies_at_once_is_reported_with_the_end_of_its_log(home: Home) -> None:
    running = processes.start(home, program(home, "dies"))
    with pytest.raises(StackError, match="no good reason") as caught:
        ready(home, running)
    assert caught.value.problem is StackProblem.PROGRAM_FAILED


def test_one_that_never_gets_ready_is_given_up(home: Home) -> None:
    running = processes.start(home, program(home, "unready"))
    with pytest.raises(StackError, match="is not ready after"):
        ready(home, running, within=0.5)


def test_one_without_a_port_is_ready_while_it_touches_its_file(home: Home) -> None:
    pulse = home.run / "pulse"
    pulse.touch()
    quiet = Program(NAME, (sys.executable, "-c", "import signal; signal.pause()"), {}, "build", None, pulse, 5.0)
    running = processes.start(home, quiet)
    with pytest.raises(StackError, match="is not ready after"):
        ready(home, running, within=0.3)
    stop(home, running)
    touching = f"import pathlib, signal; pathlib.Path({str(pulse)!r}).touch(); signal.pause()"
    running = processes.start(home, Program(NAME, (sys.executable, "-c", touching), {}, "build", None, pulse, 5.0))
    ready(home, running)
    found = processes.find(home, NAME)
    assert found is not None
    assert asyncio.run(processes.is_ready(found))


def test_a_reused_number_is_not_taken_for_ours(home: Home) -> None:
    stranger = subprocess.Popen(["/bin/sh", "-c", "read _"], stdin=subprocess.PIPE)
    try:
        for birth in ("an earlier boot/1", "", None, 7):
            write_json(home.run / f"{NAME}.json", {"pid": stranger.pid, "born": birth, "port": 1})
            assert processes.find(home, NAME) is None
        forged = Running(NAME, Identity(stranger.pid, "an earlier boot/1"), 1, None, "", "", 0.1, started_here=False)
        stop(home, forged)
        assert stranger.poll() is None
    finally:
        stranger.communicate(b"\n")


@pytest.mark.parametrize("content", ["", "[]", "null", "{", '{"pid": -1, "born": "x"}', '{"pid": "1", "born": "x"}'])
def test_a_state_file_of_rubbish_means_that_nothing_is_known_to_run(home: Home, content: str) -> None:
    (home.run / f"{NAME}.json").write_text(content)
    assert processes.find(home, NAME) is None


def test_what_a_killed_starter_started_is_found_and_can_be_stopped(home: Home) -> None:
    wanted = program(home)
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(home.root), str(wanted.port), *wanted.arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.communicate()
    found = processes.find(home, NAME)
    assert found is not None
    assert found.process.pid == pid
    ready(home, found)
    stop(home, found)
    assert born(pid) is None


def test_what_could_not_be_written_down_never_runs(home: Home, tmp_path: Path) -> None:
    wanted = program(home)
    shutil.move(home.run, tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        processes.start(home, wanted)
    shutil.move(tmp_path / "elsewhere", home.run)
    children = [pid for pid in processes_of(os.getpid()) if stand_in.__file__ in command(pid)]
    assert all(asyncio.run(Identity(pid, born(pid) or "").gone(10)) for pid in children)
    assert not (home.root / "environment").exists()


def processes_of(parent: int) -> list[int]:
    listing = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(pid) for pid, owner in (line.split() for line in listing.splitlines()) if int(owner) == parent]


def command(pid: int) -> str:
    return subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout


def test_a_command_that_ends_well_says_nothing(home: Home) -> None:
    done = Program("once", (sys.executable, "-c", "print('fine')"), {}, "build", None, None, 0.0)
    asyncio.run(processes.run_to_end(home, done, 20))
    assert processes.log_of(home, "once").read_text() == "fine\n"


def test_a_command_that_fails_is_reported_with_its_own_words_alone(home: Home) -> None:
    processes.log_of(home, "once").write_text("of an earlier time\n")
    failing = Program("once", (sys.executable, "-c", "raise SystemExit('newer schema')"), {}, "build", None, None, 0.0)
    with pytest.raises(StackError, match="newer schema") as caught:
        asyncio.run(processes.run_to_end(home, failing, 20))
    assert "earlier time" not in str(caught.value)


def test_a_command_that_takes_too_long_is_ended(home: Home) -> None:
    waiting = Program("once", (sys.executable, "-c", "import signal; signal.pause()"), {}, "build", None, None, 0.0)
    with pytest.raises(StackError, match="did not end within"):
        asyncio.run(processes.run_to_end(home, waiting, 0.3))
    assert read_json(home.run / "once.json") is None
