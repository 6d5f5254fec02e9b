"""`kessai contract-test` as it is typed: every update tool, in a home of its own, and nothing of the user's."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from shared_contracts.tools import TOOLS
from tests.support.cli import Cli
from tests.support.records import fits

WRITES = [tool.name for tool in TOOLS.values() if tool.writes]


def test_every_update_tool_passes_in_a_home_that_is_gone_afterwards(nowhere: Cli) -> None:
    said = nowhere.with_settings(KESSAI_TOOLS_SMTP_HOST="mail.example")("contract-test", "--json")
    view = fits(said.json(), "command.contract_test.json")
    assert (said.code, view["passed"]) == (0, True), said.out
    assert [one["tool"] for one in view["tools"]] == WRITES
    for one in view["tools"]:
        assert [item["number"] for item in one["items"]] == list(range(1, 10))
        assert all(trial["held"] for trial in one["trials"])
    assert list(nowhere.home.parent.iterdir()) == []


def test_one_tool_is_shown_with_its_six_tests_and_its_nine_items(nowhere: Cli) -> None:
    said = nowhere("contract-test", "create_return")
    assert said.code == 0, said.out
    lines = said.out.splitlines()
    assert [line.startswith("pass  ") for line in lines[1:-1]] == [True] * 15
    assert lines[-1] == "passed: 1 of 1 tools"


def test_a_tool_that_reads_or_that_is_not_there_is_refused_before_anything_is_started(nowhere: Cli) -> None:
    for name in ("get_order", "delete_everything"):
        said = nowhere("contract-test", name)
        assert said.code == 2
        assert all(tool in said.err for tool in WRITES)
    assert list(nowhere.home.parent.iterdir()) == []


def test_it_says_that_it_is_not_ready_where_no_database_can_be_started(nowhere: Cli, tmp_path: Path) -> None:
    said = nowhere.with_settings(KESSAI_POSTGRES_BIN=str(tmp_path / "nothing"))("contract-test")
    assert said.code == 15
    assert not (nowhere.home.with_name(f"{nowhere.home.name}-contract-test")).exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "command", [("contract-test",), ("crash-matrix", "approve"), ("demo",)], ids=lambda one: one[0]
)
def test_what_is_interrupted_says_so_and_leaves_nothing_of_its_homes(nowhere: Cli, command: tuple[str, ...]) -> None:
    begun = nowhere.start(*command)
    wait_for(nowhere.home.parent, begun)
    begun.send_signal(signal.SIGINT)

    _, said = begun.communicate(timeout=60)

    assert (begun.returncode, "Traceback" in said) == (130, False), said
    assert "interrupted: what worked was stopped" in said
    assert list(nowhere.home.parent.iterdir()) == []


def wait_for(folder: Path, begun: subprocess.Popen[str]) -> None:
    """Until a database of a home of its own is there."""
    until = time.monotonic() + 60
    while not list(folder.glob("*/run/postgres.json")):
        assert begun.poll() is None
        assert time.monotonic() < until, "it has begun nothing"
        time.sleep(0.05)
