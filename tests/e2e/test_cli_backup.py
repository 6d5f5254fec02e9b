"""A backup as an operator makes it: while the stack works and while it is down, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from host.stack.binaries import wheel_directory
from tests.support.cli import EXAMPLES, Cli
from tests.support.records import fits

pytestmark = [pytest.mark.long, pytest.mark.timeout(300), pytest.mark.xdist_group("cli-backup")]

WAIT_SECONDS = 60.0
# pg_dump waits for it, and whoever holds it is not taken for somebody who forgot
LOCKED = "SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE orders.orders"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A home with one return in it, which each test leaves down."""
    cli = Cli(tmp_path_factory.mktemp("shop") / "home", {})
    said = cli("run", str(EXAMPLES / "normal.json"))
    assert said.code == 0, said.err
    yield cli
    assert cli("empty", "--yes").code == 0


@pytest.fixture
def stopped(shop: Cli) -> Cli:
    shop("down")
    return shop


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def content(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def modes(directory: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (directory, *directory.iterdir())}


@pytest.mark.parametrize("up", [False, True], ids=["down", "up"])
def test_a_backup_is_two_dumps_and_what_tells_whether_they_are_whole(stopped: Cli, tmp_path: Path, up: bool):
    if up:
        assert stopped("up").code == 0
    before = stopped.status()["mode"]
    said = stopped("backup", str(tmp_path / "copy"), "--json")
    assert (said.code, said.err) == (0, "")
    view = fits(said.json(), "command.backup.json")
    assert view["directory"] == str(tmp_path / "copy")
    for dump in view["dumps"]:
        text = (tmp_path / "copy" / dump["file"]).read_bytes()
        assert (len(text), hashlib.sha256(text).hexdigest()) == (dump["bytes"], dump["sha256"])
        assert text.startswith(b"PGDMP")
    assert modes(tmp_path / "copy") == {
        "copy": 0o700, "host.dump": 0o600, "tools.dump": 0o600, "manifest.json": 0o600
    }  # fmt: skip
    assert content(tmp_path) == {"copy"}
    assert stopped.status()["mode"] == before


def test_no_secret_of_the_home_is_in_a_backup_and_none_is_on_a_command_line(stopped: Cli, tmp_path: Path):
    assert "no key, no password" in stopped("backup", str(tmp_path / "copy")).err
    secrets = [path.read_text("utf-8").strip() for path in (stopped.home / "passwords").rglob("*") if path.is_file()]
    private = [json.loads(file.read_text("utf-8"))["d"] for file in sorted((stopped.home / "keys").glob("*.jwk"))]
    assert len(private) == 3  # what signs tokens, and each side's seal
    secrets += private
    logs = "".join(path.read_text("utf-8", "replace") for path in (stopped.home / "logs").iterdir())
    manifest = (tmp_path / "copy" / "manifest.json").read_text("utf-8")
    assert len(secrets) > 8
    assert not [secret for secret in secrets if secret in manifest or secret in logs]
    for side in ("host", "tools"):
        file = tmp_path / "copy" / f"{side}.dump"
        text = subprocess.run(
            [_program("pg_restore"), "--file=-", file], check=True, capture_output=True
        ).stdout.decode()
        assert "CREATE TABLE" in text
        assert not [secret for secret in secrets if secret in text]
        assert "CREATE ROLE" not in text
        assert "SCRAM-SHA-256" not in text


def _program(name: str) -> Path:
    return wheel_directory() / name


def test_a_backup_goes_into_an_empty_directory_and_over_nothing_else(stopped: Cli, tmp_path: Path):
    (tmp_path / "empty").mkdir(mode=0o755)
    assert stopped("backup", str(tmp_path / "empty")).code == 0
    assert modes(tmp_path / "empty")["empty"] == 0o700
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    before = (tmp_path / "empty" / "host.dump").read_bytes()
    for name, why in (
        ("empty", "there is something in it"), ("full", "there is something in it"), ("file", "it is a file"),
        ("file/copy", "no directory"), ("nowhere/copy", "no directory"),
    ):  # fmt: skip
        said = stopped("backup", str(tmp_path / name))
        assert (said.code, said.out) == (2, ""), name
        assert why in said.err
    inside = stopped("backup", str(stopped.home / "copy"))
    assert inside.code == 2
    assert "lost with it" in inside.err
    assert content(tmp_path) == {"empty", "file", "full"}
    assert (tmp_path / "empty" / "host.dump").read_bytes() == before
    assert stopped.status()["mode"] == "down"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a" * 256, "longer than 255 bytes"),
        ("あ" * 86, "longer than 255 bytes"),
        ("a/" * 2100, "the whole path is longer"),
    ],
)
def test_a_name_that_nothing_can_have_is_told_as_such(stopped: Cli, tmp_path: Path, name: str, why: str):
    for command in ("backup", "restore"):
        said = stopped(command, str(tmp_path / name))
        assert (said.code, said.out) == (2, ""), command
        assert why in said.err
    for command in (("secrets",), ("keys", "rotate", "--in")):
        said = stopped(*command, str(tmp_path / name))
        assert (said.code, said.out) == (2, ""), command
        assert why in said.err
    for command in (("list",), ("status",), ("backup", str(tmp_path / "copy")), ("restore", str(tmp_path)), ("up",)):
        said = stopped(*command, KESSAI_HOME=str(tmp_path / name))
        assert (said.code, said.out) == (2, ""), command
        assert "KESSAI_HOME" in said.err
        assert why in said.err
    assert content(tmp_path) == set()


def test_a_backup_may_have_the_longest_name_that_there_is(stopped: Cli, tmp_path: Path):
    assert stopped("backup", str(tmp_path / ("a" * 255))).code == 0
    assert content(tmp_path) == {"a" * 255}


def test_a_directory_that_nobody_may_write_to_is_refused_before_anything_starts(stopped: Cli, tmp_path: Path):
    said = stopped("backup", "/proc/copy")  # which even root may not write to
    assert (said.code, content(tmp_path)) == (2, set())
    assert "Nothing was written" in said.err


def test_a_backup_that_was_killed_leaves_nothing_that_looks_whole_and_the_next_clears_up(stopped: Cli, tmp_path: Path):
    assert stopped("up").code == 0
    with stopped.owner("tools") as tools, tools.transaction():
        tools.execute(LOCKED)
        with stopped.start("backup", str(tmp_path / "copy")) as process:
            until(lambda: any(tmp_path.glob(".kessai-*/tools.dump")))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=WAIT_SECONDS)
    assert not (tmp_path / "copy").exists()
    assert len(content(tmp_path)) == 1
    assert stopped("backup", str(tmp_path / "copy")).code == 0
    assert content(tmp_path) == {"copy"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_backup_that_is_told_to_end_leaves_nothing(stopped: Cli, tmp_path: Path, number: signal.Signals):
    assert stopped("up").code == 0
    with stopped.owner("tools") as tools, tools.transaction():
        tools.execute(LOCKED)
        with stopped.start("backup", str(tmp_path / "copy")) as process:
            until(lambda: any(tmp_path.glob(".kessai-*/tools.dump")))
            process.send_signal(number)
            process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 128 + number
        assert content(tmp_path) == set()


def test_one_backup_of_a_home_at_a_time(stopped: Cli, tmp_path: Path):
    assert stopped("up").code == 0
    with stopped.owner("tools") as tools, tools.transaction():
        tools.execute(LOCKED)
        first = stopped.start("backup", str(tmp_path / "copy"))
        until(lambda: any(tmp_path.glob(".kessai-*/tools.dump")))
        second = stopped("backup", str(tmp_path / "other"))
        assert second.code == 15
        assert "Another backup" in second.err
    first.communicate(timeout=WAIT_SECONDS)
    assert (first.returncode, content(tmp_path)) == (0, {"copy"})


def test_where_there_is_nothing_to_back_up_no_home_is_made(nowhere: Cli, tmp_path: Path):
    said = nowhere("backup", str(tmp_path / "copy"))
    assert said.code == 15
    assert "nothing to back up" in said.err
    assert content(tmp_path) == set()


@pytest.mark.parametrize("name", ["KESSAI_DSN", "KESSAI_MIGRATE_DSN"])
def test_databases_elsewhere_are_their_own_servers_to_back_up(nowhere: Cli, tmp_path: Path, name: str):
    said = nowhere("backup", str(tmp_path / "copy"), **{name: "host=db.example dbname=host"})
    assert (said.code, content(tmp_path)) == (2, set())
    for words in (name, "pg_dump", "host first", "kessai stop"):
        assert words in said.err
