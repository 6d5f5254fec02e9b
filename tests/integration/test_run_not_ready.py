"""A tool server that cannot be worked with is found out before a case is taken in, by `run` and by `worker` alike."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import SecretStr

from host.commands import run as running
from host.commands.exits import Exit
from host.commands.failures import EXPECTED, tell
from host.commands.worker import worker
from host.database import NotReadyError
from host.settings import Settings
from host.stack.keys import new_key, write_key
from shared_contracts.tools import TOOLS
from tests.support.cli import EXAMPLES
from tests.support.engine import asynchronous, engine, rows, take
from tests.support.fake_tools import FakeTools
from tests.support.hostile_server import FakeToolServer
from tests.support.hostile_wire import Wire

NO_CAPABILITY = "The server does not offer the tools capability"
NO_REVISION = "Host and tool server have no revision of MCP in common"
OTHER_CONTRACT = "The server offers another contract of create_return"


class Unserved(FakeToolServer):
    """Knows the handshake alone, and answers it with a revision that nobody here speaks."""

    async def _initialize(self, wire: Wire) -> None:
        info = {"name": "fake", "version": "1"}
        await wire.result({"protocolVersion": "2019-01-01", "capabilities": self.capabilities, "serverInfo": info})


NEWER = {"create_return": {**TOOLS["create_return"].mark, "version": "99"}}
SERVERS: dict[str, tuple[type[FakeToolServer], dict[str, Any], str]] = {
    "serves another revision": (FakeToolServer, {"negotiate": "rpc_version"}, NO_REVISION),
    "serves another revision by handshake": (Unserved, {"era": "legacy"}, NO_REVISION),
    "has no tools": (FakeToolServer, {"capabilities": {}}, NO_CAPABILITY),
    "has no tools by handshake": (FakeToolServer, {"era": "legacy", "capabilities": {}}, NO_CAPABILITY),
    "has another contract": (FakeToolServer, {"contracts": NEWER}, OTHER_CONTRACT),
    "has another contract by handshake": (FakeToolServer, {"era": "legacy", "contracts": NEWER}, OTHER_CONTRACT),
}


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command sets logging up for its process, which here is the tests'."""
    root, known = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.configure(**known)


def command(name: str, settings: Settings) -> Coroutine[Any, Any, Any]:
    if name == "worker":
        return worker(settings)
    asked = running.prepare(str(EXAMPLES / "normal.json"), None, None)
    return running.run(settings, asked, fresh=False, as_json=False)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("name", ["run", "worker"])
def test_it_ends_with_15_and_the_reason_and_no_case_and_no_call(
    name: str, server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, options, reason = SERVERS[server]
    key = tmp_path / "signing.jwk"
    write_key(key, new_key())

    @asynchronous
    async def run() -> None:
        async with engine(FakeTools()) as parts, kind(**options) as fake:
            await take(parts)
            settings = Settings(
                dsn=SecretStr(parts.pool.conninfo), server_url=fake.url, issuer="https://host.example",
                signing_key_file=key,
            )  # fmt: skip
            with pytest.raises(NotReadyError) as caught:
                await command(name, settings)
            assert await rows(parts, "SELECT count(*), (SELECT count(*) FROM checkpoint) FROM workflow") == [(1, 1)]
        assert isinstance(caught.value, EXPECTED)
        assert tell(caught.value) is Exit.NOT_READY
        assert set(fake.methods()) & {"server/discover", "initialize"}
        assert fake.calls() == []

    run()
    said = capsys.readouterr()
    assert (said.out, f"kessai: {reason}" in said.err) == ("", True), said.err
