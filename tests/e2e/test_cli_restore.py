"""A restore as an operator makes it: a home that reads at once, works when let go on, and is never half there."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from host.stack.roles import Side
from tests.support.backups import replaced, told, with_parts
from tests.support.cli import EXAMPLES, Cli, case, written
from tests.support.records import fits

pytestmark = [pytest.mark.long, pytest.mark.timeout(300), pytest.mark.xdist_group("cli-backup")]

WAIT_SECONDS = 60.0
NORMAL = str(EXAMPLES / "normal.json")
UNDER_WAY = "SELECT name, idempotency_key FROM effect WHERE outcome IS NULL"
WAITS = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'returns.returns'::regclass"
MADE = "SELECT idempotency_key, return_id FROM returns.returns WHERE idempotency_key IS NOT NULL"
DRIVERS = "SELECT 1 FROM pg_stat_activity WHERE usename = 'host_rt'"
PATIENT = "SET LOCAL idle_in_transaction_session_timeout = 0"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A home that is down, with a return that completed and its backup beside it."""
    cli = Cli(tmp_path_factory.mktemp("shop") / "home", {})
    assert cli("run", NORMAL).code == 0
    assert cli("backup", str(backup_of(cli))).code == 0
    yield cli
    assert cli("empty", "--yes").code == 0


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Cli]:
    """A home that is not there."""
    cli = Cli(tmp_path / "other", {})
    yield cli
    assert cli("empty", "--yes").code == 0


def backup_of(cli: Cli) -> Path:
    return cli.home.parent / "copy"


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def listed(cli: Cli) -> list[dict[str, Any]]:
    rows = cli("list", "--json").json()["workflows"]
    return [{name: value for name, value in row.items() if name != "age_seconds"} for row in rows]


def test_a_completed_return_is_shown_as_it_was_before_the_backup(shop: Cli, other: Cli):
    said = other("restore", str(backup_of(shop)), "--json")
    assert (said.code, said.err) == (0, "")
    view = fits(said.json(), "command.restore.json")
    assert (view["home"], set(view["stopped"])) == (str(other.home), {"new_work", "updates", "reads"})
    assert listed(other) == listed(shop)
    (row,) = listed(shop)
    for command in (("show", row["workflow_id"]), ("explain", row["workflow_id"], "--all"), ("ledger",)):
        assert other(*command, "--json").json() == shop(*command, "--json").json(), command
    assert other.status()["mode"] == "down"


def test_a_restored_home_takes_in_nothing_and_drives_nothing(shop: Cli, other: Cli, tmp_path: Path):
    said = other("restore", str(backup_of(shop)))
    assert said.code == 0
    assert "Everything is stopped" in said.err
    assert "resume" in said.err
    new = written(tmp_path, case("high-value"))
    refused = other("run", new)
    assert (refused.code, len(listed(other))) == (14, 1)
    assert "stopped" in refused.err
    assert other("up").code == 0
    with other.owner("host") as host:
        rows = host.execute("SELECT scope, engaged, reason FROM stop").fetchall()
        ((cause, scopes),) = host.execute("SELECT cause, scopes FROM stop_log").fetchall()
    assert {row[0] for row in rows} >= {"new_work", "reads", "updates"}
    assert all(engaged and "restored from the backup of 20" in reason for _, engaged, reason in rows)
    assert (cause, set(scopes)) == ("restore", {"new_work", "reads", "updates"})
    assert other("run", new).code == 14


@pytest.mark.parametrize("at", ["migrate_host", "describe_host", "fill_host", "fill_tools", "note_restored"])
def test_a_restore_that_was_killed_leaves_a_home_that_nobody_works_in(shop: Cli, other: Cli, tmp_path: Path, at: str):
    with other.start("restore", str(backup_of(shop))) as process:
        until((other.home / "logs" / f"{at}.log").exists)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=WAIT_SECONDS)
    for command in (
        ("list",), ("run", NORMAL), ("up",), ("worker",), ("migrate",), ("token", "list"),
        ("backup", str(tmp_path / "copy")),
    ):  # fmt: skip
        said = other(*command)
        assert (said.code, said.out) == (15, ""), command
        assert "did not come to its end" in said.err
    again = other("restore", str(backup_of(shop)))
    assert again.code == 15
    assert "kessai empty" in again.err
    seen = other("status", "--json")
    assert (seen.code, "did not come to its end" in seen.json()["why"]) == (15, True)
    assert other("doctor").code == 15
    assert other("empty", "--yes").code == 0
    assert other("restore", str(backup_of(shop))).code == 0
    assert listed(other) == listed(shop)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_restore_that_is_told_to_end_takes_away_what_it_made(shop: Cli, other: Cli, number: signal.Signals):
    with other.start("restore", str(backup_of(shop))) as process:
        until((other.home / "logs" / "fill_host.log").exists)
        process.send_signal(number)
        process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 128 + number
    assert not other.home.exists()
    assert other("restore", str(backup_of(shop))).code == 0


def test_dumps_that_are_overwritten_while_it_restores_do_not_reach_the_home(shop: Cli, other: Cli, tmp_path: Path):
    copy = Path(shutil.copytree(backup_of(shop), tmp_path / "copy"))
    with other.start("restore", str(copy)) as process:
        until((other.home / "logs" / "postgres.log").exists)  # both are copied by then, and none is restored
        for side in Side:
            (copy / f"{side}.dump").write_bytes(b"PGDMP and then something else")
        assert not (other.home / "logs" / "fill_host.log").exists()
        process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0
    assert listed(other) == listed(shop)


def test_what_a_failed_restore_said_last_is_told_and_no_log_that_has_gone(shop: Cli, other: Cli, tmp_path: Path):
    copy = Path(shutil.copytree(backup_of(shop), tmp_path / "copy"))
    replaced(copy, Side.TOOLS, b"PGDMP and then nothing that makes sense")
    said = other("restore", str(copy))
    assert said.code == 15
    assert "list tools ended with exit code 1" in said.err
    assert "pg_restore: error" in said.err
    assert "Nothing was kept" in said.err
    assert str(other.home) not in said.err
    assert not other.home.exists()


def test_a_home_that_is_there_is_refused_with_what_would_help(shop: Cli):
    before = listed(shop)
    said = shop("restore", str(backup_of(shop)))
    assert said.code == 2
    assert "kessai empty" in said.err
    assert "KESSAI_HOME" in said.err
    assert listed(shop) == before


def test_what_is_no_backup_is_refused_as_bad_input_and_makes_nothing(shop: Cli, other: Cli, tmp_path: Path):
    spoilt = Path(shutil.copytree(backup_of(shop), tmp_path / "spoilt"))
    (spoilt / "tools.dump").write_bytes((spoilt / "tools.dump").read_bytes()[:-9])
    (tmp_path / "empty").mkdir()
    for name, why in (("spoilt", "tools.dump has"), ("empty", "no manifest.json"), ("nowhere", "no such directory")):
        said = other("restore", str(tmp_path / name))
        assert said.code == 2
        assert why in said.err
        assert "Nothing was made" in said.err
    assert not other.home.exists()


@pytest.mark.parametrize("name", ["KESSAI_DSN", "KESSAI_MIGRATE_DSN"])
def test_databases_elsewhere_are_their_own_servers_to_restore(shop: Cli, other: Cli, name: str):
    said = other("restore", str(backup_of(shop)), **{name: "host=db.example dbname=host"})
    assert (said.code, other.home.exists()) == (2, False)
    for words in (name, "pg_restore", "kessai stop"):
        assert words in said.err


def test_a_return_that_was_under_way_is_found_by_its_key_and_not_made_again(other: Cli, tmp_path: Path):
    source = Cli(tmp_path / "source", {})
    assert source("list").code == 0  # makes the home
    try:
        key, return_id = _killed_between_effect_and_outcome(source)
        assert source("backup", str(tmp_path / "copy")).code == 0
    finally:
        assert source("empty", "--yes").code == 0
    assert other("restore", str(tmp_path / "copy")).code == 0
    under_way = with_parts(other.home, lambda parts: told(parts, Side.HOST, UNDER_WAY))
    assert under_way == [("create_return", key)]
    (row,) = listed(other)
    lifted = other("resume", "--as", "sato", "--reason", "restored")  # looks every effect up before anything begins
    assert lifted.code == 0, lifted.out + lifted.err
    found = other("show", row["workflow_id"], "--json").json()
    assert [(effect["outcome"], effect["idempotency_key"], effect["external_id"]) for effect in found["effects"]] == [
        ("succeeded", key, return_id)
    ]
    part = ("--state", found["state"], "--limit", "1")
    assert other("resume", "--as", "sato", "--reason", "the first part", *part).code == 0
    ended = other("run", row["workflow_id"], "--json")
    assert (ended.code, ended.json()["state"], ended.json()["result"]["return_id"]) == (0, "COMPLETED", return_id)
    assert with_parts(other.home, lambda parts: told(parts, Side.TOOLS, MADE)) == [(key, return_id)]


def _killed_between_effect_and_outcome(cli: Cli) -> tuple[str, str]:
    """Drive a return until the tool server has made it, and kill the driver before the host knows; gives key and id."""
    assert cli("up").code == 0
    os.kill(cli.part("worker")["pid"], signal.SIGKILL)
    with cli.owner("host") as host, cli.owner("tools") as tools, cli.start("run", NORMAL) as process, ExitStack() as at:
        at.callback(process.communicate, timeout=WAIT_SECONDS)
        at.callback(process.kill)
        with ExitStack() as no_outcome:
            with tools.transaction():
                tools.execute(PATIENT)
                tools.execute("LOCK TABLE returns.returns IN SHARE MODE")  # it may be read, and nothing is made
                until(lambda: host.execute(UNDER_WAY).fetchone())
                until(lambda: tools.execute(WAITS).fetchone())
                no_outcome.enter_context(host.transaction())
                host.execute(PATIENT)
                host.execute("LOCK TABLE effect IN SHARE MODE")
            until(lambda: tools.execute(MADE).fetchone())
            at.close()
            until(lambda: not tools.execute(DRIVERS).fetchone())  # what it had sent is given up, not waiting for us
        ((key, return_id),) = tools.execute(MADE).fetchall()
        assert host.execute(UNDER_WAY).fetchall() == [("create_return", key)]
    assert cli("down").code == 0
    return str(key), str(return_id)
