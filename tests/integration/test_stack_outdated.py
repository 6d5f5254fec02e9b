"""A stack that is up while the code or the wishes change: who reads goes on, who fails breaks nothing that works."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from host.stack.assembly import TOOL_SERVER, WORKER, StackChoice
from host.stack.errors import StackError, StackProblem
from host.stack.files import read_json, write_json
from host.stack.home import open_home
from host.stack.mode import Mode
from host.stack.ports import LOOPBACK
from host.stack.removal import empty_home
from host.stack.stack import down, temporary_database, temporary_stack, up
from host.stack.status import PartState, StackStatus, status
from tests.support.embedded import PLAIN

pytestmark = pytest.mark.xdist_group("stack-outdated")

CHOICE = StackChoice(PLAIN, tool_server_port=None, tool_server_settings={}, worker_settings={})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One home for all tests, each of which brings it to where it begins: what is up already costs little."""
    root = tmp_path_factory.mktemp("stack") / "home"
    yield root
    asyncio.run(empty_home(root))


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else holds."""
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen()
        yield int(other.getsockname()[1])


def now(root: Path) -> StackStatus:
    return asyncio.run(status(root))


async def used(root: Path) -> None:
    async with temporary_stack(root, CHOICE):
        pass


def test_who_only_reads_is_not_kept_from_it_by_a_stack_of_other_code_and_leaves_it_as_it_is(root: Path) -> None:
    asyncio.run(up(root, CHOICE))
    home = open_home(root)
    prepared = read_json(home.run / "prepared.json")
    assert prepared is not None
    write_json(home.run / "prepared.json", prepared | {"code": "older"})
    for name in (TOOL_SERVER, WORKER):
        record = read_json(home.run / f"{name}.json")
        assert record is not None
        write_json(home.run / f"{name}.json", record | {"build": "older", "fingerprint": "older"})
    before = now(root)

    async def read() -> None:
        async with (
            temporary_database(root, CHOICE) as dsn,
            await psycopg.AsyncConnection.connect(dsn) as connection,
        ):
            await connection.execute("SELECT 1 FROM workflow")

    asyncio.run(read())
    with pytest.raises(StackError) as caught:
        asyncio.run(used(root))
    assert caught.value.problem is StackProblem.PROGRAM_OUTDATED
    assert "kessai up" in caught.value.mend
    assert now(root) == before
    asyncio.run(up(root, CHOICE))
    assert {part.pid for part in now(root).parts[1:]} & {part.pid for part in before.parts[1:]} == set()
    assert read_json(home.run / "prepared.json") == prepared


def test_a_start_that_fails_leaves_nothing_running_where_nothing_ran(root: Path, taken: int) -> None:
    asyncio.run(down(root))
    with pytest.raises(StackError) as caught:
        asyncio.run(up(root, replace(CHOICE, tool_server_port=taken)))
    assert caught.value.problem is StackProblem.PORT_IN_USE
    assert {part.state for part in now(root).parts} == {PartState.STOPPED}
    assert now(root).mode is Mode.DOWN


def test_a_start_that_wants_what_cannot_be_had_leaves_what_is_up_as_it_is(root: Path, taken: int) -> None:
    asyncio.run(up(root, CHOICE))
    before = now(root)
    with pytest.raises(StackError) as caught:
        asyncio.run(up(root, replace(CHOICE, tool_server_port=taken)))
    assert caught.value.problem is StackProblem.PORT_IN_USE
    assert now(root) == before
