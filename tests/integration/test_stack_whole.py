"""The whole stack: up for as long as somebody needs it, taken over from whoever was killed, and then gone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from host.stack import bring_up, processes
from host.stack.assembly import TOOL_SERVER, WORKER, StackChoice
from host.stack.errors import StackError, StackProblem
from host.stack.files import read_json, write_json
from host.stack.home import existing_home, open_home
from host.stack.mode import Mode
from host.stack.pids import Identity, born
from host.stack.ports import LOOPBACK, choose_port
from host.stack.removal import empty_home
from host.stack.stack import Endpoints, down, temporary_database, temporary_stack, up
from host.stack.status import PartState, StackStatus, status
from tests.support.embedded import PLAIN

pytestmark = pytest.mark.long

User = Callable[[Path], subprocess.Popen[str]]
CHOICE = StackChoice(PLAIN, tool_server_port=None, tool_server_settings={}, worker_settings={})
USER = """
import asyncio, dataclasses, json, sys
from pathlib import Path
from host.stack.assembly import StackChoice
from host.stack.postgres import PostgresChoice
from host.stack.stack import temporary_stack

async def main():
    choice = StackChoice(PostgresChoice(None, None), None, {}, {})
    async with temporary_stack(Path(sys.argv[1]), choice) as endpoints:
        print(json.dumps(dataclasses.asdict(endpoints), default=str), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def set_up_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("stack") / "home"
    yield root
    asyncio.run(empty_home(root))


@pytest.fixture
def root(set_up_once: Path) -> Iterator[Path]:
    """One home for all tests that leave it down."""
    yield set_up_once
    asyncio.run(down(set_up_once))


@pytest.fixture
def new_root(tmp_path: Path) -> Iterator[Path]:
    """Of a home that is still to be made."""
    yield tmp_path / "home"
    asyncio.run(empty_home(tmp_path / "home"))


@pytest.fixture
def user() -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """Another process that uses the stack until a signal ends it."""
    started: list[subprocess.Popen[str]] = []

    def start(root: Path) -> subprocess.Popen[str]:
        started.append(subprocess.Popen([sys.executable, "-c", USER, root], stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=60)


def endpoints_of(process: subprocess.Popen[str]) -> dict[str, object]:
    assert process.stdout is not None
    answer: dict[str, object] = json.loads(process.stdout.readline())
    return answer


def ended(process: subprocess.Popen[str], number: signal.Signals) -> int:
    process.send_signal(number)
    process.communicate(timeout=60)
    return process.returncode


def appeared(file: Path) -> None:
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} never appeared"
        time.sleep(0.001)


def now(root: Path) -> StackStatus:
    return asyncio.run(status(root))


def states(root: Path) -> dict[str, PartState]:
    return {part.name: part.state for part in now(root).parts}


def nothing_runs(root: Path) -> bool:
    return set(states(root).values()) == {PartState.STOPPED}


async def _used(root: Path, choice: StackChoice = CHOICE) -> Endpoints:
    async with temporary_stack(root, choice) as endpoints:
        async with await psycopg.AsyncConnection.connect(endpoints.links.dsn) as connection:
            cursor = await connection.execute("SELECT current_user, current_database()")
            assert await cursor.fetchone() == ("host_rt", "host")
        ready = endpoints.links.server_url.removesuffix("/mcp") + "/readyz"
        assert await asyncio.to_thread(_status_of, ready) == 200
        return endpoints


def _status_of(url: str) -> int:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own loopback address
        return int(answer.status)


def used(root: Path, choice: StackChoice = CHOICE) -> Endpoints:
    return asyncio.run(_used(root, choice))


def test_a_temporary_stack_starts_from_nothing_serves_and_leaves_nothing_running(new_root: Path) -> None:
    first = used(new_root)
    assert (first.postgres_started_here, first.tool_server_started_here) == (True, True)
    assert born(first.postgres_pid) is None
    assert born(first.tool_server_pid) is None
    assert nothing_runs(new_root)
    again = used(new_root)
    assert (again.links.server_url, again.links.issuer) == (first.links.server_url, first.links.issuer)
    assert "password" not in again.links.dsn


def test_a_second_start_does_not_migrate_again(root: Path) -> None:
    used(root)
    home = open_home(root)
    logs = [processes.log_of(home, name) for name in ("migrate_host", "migrate_tools", "load_demo")]
    before = [log.stat().st_mtime_ns for log in logs]
    used(root)
    assert [log.stat().st_mtime_ns for log in logs] == before


def test_after_an_interrupted_set_up_it_is_done_again(root: Path) -> None:
    used(root)
    home = open_home(root)
    before = read_json(home.run / "prepared.json")
    write_json(home.run / "prepared.json", {"code": "of another time"})
    used(root)
    assert read_json(home.run / "prepared.json") == before


def test_whoever_comes_while_it_runs_shares_it_and_the_last_one_stops_it(root: Path, user: User) -> None:
    first, second = user(root), user(root)
    one, two = endpoints_of(first), endpoints_of(second)
    assert one["tool_server_pid"] == two["tool_server_pid"]
    assert one["postgres_pid"] == two["postgres_pid"]
    assert {one["postgres_started_here"], two["postgres_started_here"]} == {False, True}
    starter = first if one["tool_server_started_here"] else second
    other = second if starter is first else first
    ended(starter, signal.SIGTERM)
    assert states(root)[TOOL_SERVER] is PartState.RUNNING
    assert now(root).mode is Mode.TEMPORARY
    ended(other, signal.SIGTERM)
    assert nothing_runs(root)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_user_that_is_told_to_end_leaves_nothing_running(root: Path, user: User, number: signal.Signals) -> None:
    process = user(root)
    found = endpoints_of(process)
    assert ended(process, number) != 0
    assert born(int(str(found["postgres_pid"]))) is None
    assert born(int(str(found["tool_server_pid"]))) is None
    assert nothing_runs(root)


@pytest.mark.parametrize("part", ["stack.lock", "postgres.json", "prepared.json", f"{TOOL_SERVER}.json"])
def test_one_that_is_told_to_end_while_it_starts_leaves_nothing_running(new_root: Path, user: User, part: str) -> None:
    process = user(new_root)
    appeared(new_root / "run" / part)
    assert ended(process, signal.SIGTERM) == 128 + signal.SIGTERM
    assert set(states(new_root).values()) == {PartState.STOPPED}


def test_what_a_killed_user_left_is_taken_over_by_the_next_and_then_stopped(root: Path, user: User) -> None:
    process = user(root)
    left = endpoints_of(process)
    ended(process, signal.SIGKILL)
    assert states(root)[TOOL_SERVER] is PartState.RUNNING
    assert "was killed" in now(root).why
    found = used(root)
    assert (found.postgres_pid, found.tool_server_pid) == (left["postgres_pid"], left["tool_server_pid"])
    assert (found.postgres_started_here, found.tool_server_started_here) == (False, False)
    assert nothing_runs(root)


@pytest.mark.parametrize("part", ["postgres.json", "prepared.json", f"{TOOL_SERVER}.json"])
def test_what_one_killed_while_starting_left_is_cleaned_up_by_the_next(new_root: Path, user: User, part: str) -> None:
    process = user(new_root)
    appeared(new_root / "run" / part)
    ended(process, signal.SIGKILL)
    used(new_root)
    assert nothing_runs(new_root)


def test_a_killed_part_is_brought_back_by_the_next_start(root: Path, user: User) -> None:
    process = user(root)
    found = endpoints_of(process)
    for name in ("tool_server_pid", "postgres_pid"):
        os.kill(int(str(found[name])), signal.SIGKILL)
    again = used(root)
    assert again.postgres_pid != found["postgres_pid"]
    assert again.tool_server_pid != found["tool_server_pid"]
    ended(process, signal.SIGTERM)
    assert nothing_runs(root)


def test_a_reading_command_needs_no_tool_server(root: Path) -> None:
    async def read() -> None:
        async with temporary_database(root, CHOICE) as dsn:
            async with await psycopg.AsyncConnection.connect(dsn) as connection:
                await connection.execute("SELECT 1")
            assert (await status(root)).parts[1].state is PartState.STOPPED

    asyncio.run(read())
    assert nothing_runs(root)


def test_up_keeps_everything_up_until_down_and_a_command_in_between_changes_nothing(root: Path) -> None:
    assert now(root).mode is Mode.DOWN
    asyncio.run(up(root, CHOICE))
    before = now(root)
    assert before.mode is Mode.UP
    assert {part.name: part.state for part in before.parts} == dict.fromkeys(
        ("postgres", TOOL_SERVER, WORKER), PartState.RUNNING
    )
    found = used(root)
    assert (found.postgres_started_here, found.tool_server_started_here) == (False, False)
    asyncio.run(up(root, CHOICE))
    assert now(root) == before
    assert asyncio.run(down(root)) is True
    assert nothing_runs(root)
    assert asyncio.run(down(root)) is False


def test_up_makes_a_temporary_stack_stay(root: Path, user: User) -> None:
    process = user(root)
    endpoints_of(process)
    asyncio.run(up(root, CHOICE))
    ended(process, signal.SIGTERM)
    assert now(root).mode is Mode.UP
    assert states(root)[TOOL_SERVER] is PartState.RUNNING


def test_what_died_of_a_stack_that_is_up_is_said_and_mended(root: Path) -> None:
    asyncio.run(up(root, CHOICE))
    home = open_home(root)
    worker = processes.find(home, WORKER)
    assert worker is not None
    worker.process.signal(signal.SIGKILL)
    assert asyncio.run(worker.process.gone(10))
    assert states(root)[WORKER] is PartState.DIED
    asyncio.run(up(root, CHOICE))
    assert states(root)[WORKER] is PartState.RUNNING
    for part in now(root).parts:
        assert part.pid is not None
        os.kill(part.pid, signal.SIGKILL)
        gone = Identity(part.pid, born(part.pid) or "").gone(10)
        assert asyncio.run(gone)
    assert set(states(root).values()) == {PartState.DIED}
    assert "nobody stopped it" in now(root).why
    asyncio.run(down(root))
    assert nothing_runs(root)


def test_a_worker_that_is_told_to_end_the_moment_it_is_ready_ends(root: Path) -> None:
    home = open_home(root)
    for _ in range(3):
        asyncio.run(up(root, CHOICE))
        worker = processes.find(home, WORKER)
        assert worker is not None
        worker.process.signal(signal.SIGTERM)
        assert asyncio.run(worker.process.gone(15))


def test_the_tool_servers_port_can_be_chosen_and_a_taken_one_is_refused(root: Path) -> None:
    port = choose_port(None)
    chosen = replace(CHOICE, tool_server_port=port)
    assert used(root, chosen).links.server_url == f"http://{LOOPBACK}:{port}/mcp"
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((LOOPBACK, port))
        other.listen()
        with pytest.raises(StackError) as caught:
            used(root, chosen)
    assert caught.value.problem is StackProblem.PORT_IN_USE
    assert nothing_runs(root)


def test_settings_that_the_tool_server_would_not_start_with_leave_the_running_one_as_it_is(root: Path) -> None:
    asyncio.run(up(root, CHOICE))
    before = now(root)
    for wrong, said in {"SMTP_PROT": "no setting has this name", "SMTP_HOST": "MAIL_FROM is missing"}.items():
        with pytest.raises(StackError) as caught:
            asyncio.run(up(root, replace(CHOICE, tool_server_settings={f"KESSAI_TOOLS_{wrong}": "mail.example"})))
        assert "was not stopped for it" in caught.value.what
        assert said in caught.value.mend
    assert now(root) == before


def test_a_tool_server_that_does_not_get_ready_in_the_place_of_another_says_that_that_one_is_gone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(up(root, CHOICE))
    former = now(root).parts[1].pid
    monkeypatch.setattr(bring_up, "READY_SECONDS_MAX", 3.0)
    with pytest.raises(StackError) as caught:
        asyncio.run(up(root, replace(CHOICE, tool_server_settings={"KESSAI_TOOLS_MAILDIR": "/proc/nowhere"})))
    assert f"The former one, process {former}, was stopped before." in caught.value.what
    monkeypatch.undo()
    asyncio.run(up(root, CHOICE))
    assert states(root)[TOOL_SERVER] is PartState.RUNNING


def test_where_the_mail_lies_is_told_as_the_running_tool_server_has_it(root: Path, user: User, tmp_path: Path) -> None:
    elsewhere = {"KESSAI_TOOLS_MAILDIR": str(tmp_path / "mail")}
    by_smtp = {"KESSAI_TOOLS_SMTP_HOST": "127.0.0.1", "KESSAI_TOOLS_MAIL_FROM": "returns@shop.example"}
    told = [used(root, replace(CHOICE, tool_server_settings=chosen)).maildir for chosen in ({}, elsewhere, by_smtp)]
    assert told == [open_home(root).mail, tmp_path / "mail", None]
    process = user(root)
    endpoints_of(process)
    assert used(root, replace(CHOICE, tool_server_settings=elsewhere)).maildir is None  # another's, set otherwise
    ended(process, signal.SIGKILL)


def test_other_code_is_not_pulled_away_from_who_uses_it_and_else_replaced(root: Path, user: User) -> None:
    process = user(root)
    left = endpoints_of(process)
    home = open_home(root)
    file = home.run / f"{TOOL_SERVER}.json"
    record = read_json(file)
    assert record is not None
    write_json(file, record | {"build": "older", "fingerprint": "older"})
    with pytest.raises(StackError) as caught:
        used(root)
    assert caught.value.problem is StackProblem.PROGRAM_OUTDATED
    ended(process, signal.SIGKILL)
    assert used(root).tool_server_pid != left["tool_server_pid"]
    assert nothing_runs(root)


def test_each_program_has_its_own_settings_and_none_of_the_others(root: Path) -> None:
    asyncio.run(up(root, CHOICE))
    home = open_home(root)
    found: dict[str, set[str]] = {}
    for name in (TOOL_SERVER, WORKER):
        running = processes.find(home, name)
        assert running is not None
        text = Path(f"/proc/{running.process.pid}/environ").read_bytes().decode()
        found[name] = {entry for entry in text.split("\0") if "KESSAI" in entry}
        assert not any(secret.read_text() in text for secret in home.passwords.rglob("*") if secret.is_file())
    assert all(entry.startswith("KESSAI_TOOLS_") for entry in found[TOOL_SERVER])
    assert not any(entry.startswith("KESSAI_TOOLS_") for entry in found[WORKER])
    assert not any("host_" in entry or "signing" in entry or "owner" in entry for entry in found[TOOL_SERVER])
    assert not any("tools_" in entry or "owner" in entry for entry in found[WORKER])


def test_emptying_a_home_stops_what_runs_in_it(new_root: Path) -> None:
    asyncio.run(up(new_root, CHOICE))
    pids = [part.pid for part in now(new_root).parts]
    assert asyncio.run(empty_home(new_root)) is True
    assert all(pid is not None and born(pid) is None for pid in pids)
    assert existing_home(new_root) is None
    used(new_root)


def test_the_status_of_no_home_is_that_nothing_runs_and_makes_none(new_root: Path) -> None:
    assert now(new_root).mode is Mode.DOWN
    assert asyncio.run(down(new_root)) is False
    assert not new_root.exists()
