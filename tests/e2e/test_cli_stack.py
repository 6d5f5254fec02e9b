"""The stack of one machine: kept up, taken down, emptied, and never left running after a run of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import EXAMPLES, Cli
from tests.support.records import fits

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("cli-mistakes")]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_run_brings_up_what_it_needs_and_leaves_nothing_running(nowhere: Cli):
    said = nowhere("run", str(EXAMPLES / "normal.json"))
    assert said.code == 0, said.err
    seen = nowhere.status()
    assert (seen["mode"], {part["state"] for part in seen["parts"]}) == ("down", {"stopped"})
    read = nowhere("list", "--json")
    assert [row["state"] for row in read.json()["workflows"]] == ["COMPLETED"]
    assert nowhere.status()["mode"] == "down"
    again = nowhere("run", str(EXAMPLES / "normal.json"))
    assert "already known" in again.out
    anew = nowhere("run", str(EXAMPLES / "normal.json"), "--fresh", "--json")
    assert (anew.code, anew.err) == (0, "")
    assert anew.json()["workflow_id"] != read.json()["workflows"][0]["workflow_id"]
    assert nowhere("empty", "--yes").code == 0
    assert list(nowhere.home.iterdir()) == []


def test_a_stack_that_is_up_is_adopted_and_stays_until_it_is_taken_down(nowhere: Cli):
    assert nowhere("down").err.strip() == "nothing ran"
    up = nowhere("up")
    assert up.code == 0, up.err
    anew = nowhere("run", str(EXAMPLES / "normal.json"), "--fresh")
    assert (anew.code, anew.out) == (15, "")
    assert "The stack is up" in anew.err
    pids = {part["name"]: part["pid"] for part in fits(nowhere.status(), "command.status.json")["parts"]}
    assert set(pids) == {"postgres", "tool_server", "worker"}
    nowhere("run", str(EXAMPLES / "normal.json"))
    nowhere("up")
    assert {part["name"]: part["pid"] for part in nowhere.status()["parts"]} == pids
    port = nowhere.part("tool_server")["port"]
    assert listens(port)
    assert nowhere("down").err.strip() == "stopped"
    assert {part["state"] for part in nowhere.status()["parts"]} == {"stopped"}
    assert not listens(port)
    assert nowhere("migrate").code == 0
    assert nowhere.status()["mode"] == "down"
    nowhere("empty", "--yes")


LINKS = ("KESSAI_DSN", "KESSAI_SERVER_URL", "KESSAI_ISSUER", "KESSAI_SIGNING_KEY_FILE")


@pytest.mark.parametrize("name", LINKS)
def test_nothing_is_removed_while_another_place_is_named(nowhere: Cli, name: str):
    nowhere.home.mkdir()
    (nowhere.home / ".kessai-home").write_text('{"id": "x", "layout": 1}', encoding="utf-8")
    (nowhere.home / "mail").mkdir()
    for arguments in (("--yes",), ()):
        said = nowhere("empty", *arguments, given="y\n", **{name: "db.example"})
        assert (said.code, said.out) == (2, "")
        assert name in said.err
        assert str(nowhere.home) in said.err
    assert (nowhere.home / "mail").is_dir()


def test_the_commands_of_this_machine_say_so_where_the_others_work_elsewhere(nowhere: Cli):
    elsewhere = dict.fromkeys(LINKS, "db.example")
    for arguments in (("status",), ("down",)):
        said = nowhere(*arguments, **elsewhere)
        assert said.code == 0
        assert f"about this machine's home {nowhere.home} alone. KESSAI_DSN, KESSAI_SERVER_URL" in said.err
        assert "alone" not in nowhere(*arguments).err
    assert nowhere("status", "--json", **elsewhere).json()["elsewhere"] == ", ".join(LINKS)
    assert nowhere("status", "--json").json()["elsewhere"] is None
    assert f"home: {nowhere.home}" in nowhere("status").out


def test_status_ends_with_15_where_something_that_should_run_does_not(nowhere: Cli):
    assert nowhere("status").code == 0
    try:
        assert nowhere("up").code == 0
        assert nowhere("status").code == 0
        worker = nowhere.part("worker")
        os.kill(worker["pid"], signal.SIGKILL)
        _until(lambda: nowhere.part("worker")["state"] == "died")
        said = nowhere("status", "--json")
        assert (said.code, said.json()["well"]) == (15, False)
        assert "died" in nowhere("status").out
        assert nowhere("up").code == 0
        assert nowhere("status").code == 0
        for part in nowhere.status()["parts"]:  # as a reboot does
            os.kill(part["pid"], signal.SIGKILL)
        _until(lambda: nowhere.status()["mode"] == "down")
        assert nowhere("status").code == 15
    finally:
        nowhere("down")
        assert nowhere("status").code == 0
        nowhere("empty", "--yes")


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline


def test_nothing_is_removed_without_a_yes(nowhere: Cli):
    nowhere.home.mkdir()
    (nowhere.home / ".kessai-home").write_text('{"id": "x", "layout": 1}', encoding="utf-8")
    (nowhere.home / "mail").mkdir()
    said = nowhere("empty", given="n\n")
    assert said.code == 1
    assert (nowhere.home / "mail").is_dir()
    assert nowhere("empty", given="y\n").code == 0
    assert not (nowhere.home / "mail").exists()


def changed(directory: Path, before: dict[str, str]) -> set[str]:
    return {name for name, text in before.items() if (directory / name).read_text() != text}


def keys_in(cli: Cli, directory: Path) -> list[dict[str, Any]]:
    return list(json.loads(cli("keys", "list", "--in", str(directory), "--json").out)["keys"])


def test_secrets_are_made_once_and_a_key_is_rotated_in_two_steps(nowhere: Cli, tmp_path: Path):
    directory = tmp_path / "secrets"
    assert "made" in nowhere("secrets", str(directory)).err
    before = {path.name: path.read_text() for path in directory.iterdir() if path.is_file()}
    assert "everything already" in nowhere("secrets", str(directory)).err
    rotate = ("keys", "rotate", "--in", str(directory))
    assert nowhere(*rotate, "--published").code == 2
    assert "signs nothing yet" in nowhere(*rotate).err
    assert changed(directory, before) == {"jwks.json"}
    assert [key["state"] for key in keys_in(nowhere, directory)] == ["signing", "next"]
    assert "signs from now on" in nowhere(*rotate, "--published").err
    assert changed(directory, before) == {"signing.jwk", "jwks.json"}
    new, old = keys_in(nowhere, directory)
    assert (new["state"], old["state"], new["ends_at"]) == ("signing", "old", None)
    said = nowhere("keys", "revoke", new["kid"], "--in", str(directory))
    assert (said.code, f"kessai-tools revoke --kid={new['kid']}" in said.err) == (0, True)
    newest, _ = keys_in(nowhere, directory)
    assert (newest["state"], newest["kid"] in {new["kid"], old["kid"]}) == ("signing", False)
    assert nowhere("keys", "revoke", new["kid"], "--in", str(directory)).code == 2
    directory.chmod(0o755)
    assert nowhere("secrets", str(directory)).code == 15
