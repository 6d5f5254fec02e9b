"""A stack of this machine without a worker, a shop of its own, and a wire that may be spoiled on the way to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any, LiteralString

from tests.crash.orders import case, write_orders
from tests.crash.proxy import Act, Proxy, proxy
from tests.support.cli import ROOT, Cli, written
from tests.support.records import fits

ORDERS = 40
WRONG = {"amount": 1, "currency": "JPY"}


@dataclass
class Shop:
    """Its command line, straight and over a spoilt wire, and its books."""

    cli: Cli
    spoilt: Cli
    wire: Proxy
    folder: Path
    taken: int = field(default=0)

    def order(self) -> dict[str, Any]:
        """A normal return of an order that nobody has returned yet."""
        self.taken += 1
        return case(self.taken - 1)

    def run(self, document: dict[str, Any], *, code: int, spoilt: bool = False) -> dict[str, Any]:
        """Run a case to where it rests; gives its record."""
        said = (self.spoilt if spoilt else self.cli)("run", written(self.folder, document), "--json")
        assert said.code == code, said.err + said.out[-2000:]
        return fits(said.json(), "record.json")

    def on(self, record: dict[str, Any], *, code: int) -> dict[str, Any]:
        """Let a case go on to where it rests again."""
        said = self.cli("run", record["workflow_id"], "--json")
        assert said.code == code, said.err + said.out[-2000:]
        return fits(said.json(), "record.json")

    def shown(self, record: dict[str, Any]) -> dict[str, Any]:
        return fits(self.cli("show", record["workflow_id"], "--json").json(), "record.json")

    def wrong(self, document: dict[str, Any]) -> dict[str, Any]:
        """A return of which somebody on the way says another amount."""
        self.wire.change("get_return", lambda answer: answer.update(refund=WRONG))
        return self.run(document, code=13, spoilt=True)

    def lost(self, document: dict[str, Any], tool: str, look: str) -> dict[str, Any]:
        """A case of which nobody heard whether the tool has done what it was asked to, nor could find it out."""
        self.wire.next(tool, Act.LOSE_ANSWER)
        return self.unseen(document, look)

    def unseen(self, document: dict[str, Any], look: str) -> dict[str, Any]:
        """A case whose last effect nobody could look at."""
        self.wire.next(look, *(Act.LOSE,) * 3)
        return self.run(document, code=11, spoilt=True)

    def acts(self, *arguments: str, code: int = 0, by: str = "sato") -> dict[str, Any]:
        """Do one of the acts that print what was done."""
        said = self.cli(*arguments, "--as", by, "--json")
        assert said.code == code, said.err
        return fits(said.json(), "command.review.json")

    def resumed(self) -> None:
        """Let everything go on as before, once nothing is in doubt or left to be undone."""
        said = self.cli("resume", "--as", "sato", "--reason", "It was undone.", "--json")
        assert said.code == 0, said.err + said.out
        assert self.cli("resume", "--as", "sato", "--reason", "All is well.", "--full").code == 0

    def stopped(self) -> set[str]:
        with self.cli.owner("host") as sql:
            return {scope for (scope,) in sql.execute("SELECT scope FROM stop WHERE engaged").fetchall()}

    def told(self, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        """What the tool server's own books say."""
        with self.cli.owner("tools") as sql:
            return sql.execute(query, values).fetchall()

    def returns(self, order_id: str) -> list[tuple[str, bool]]:
        """Each return of an order, and whether it was cancelled."""
        query: LiteralString = (
            "SELECT r.return_id, c.return_id IS NOT NULL FROM returns.returns r "
            "LEFT JOIN returns.cancellations c USING (tenant_id, return_id) WHERE r.order_id = %s ORDER BY r.created_at"
        )
        return [(number, cancelled) for number, cancelled in self.told(query, order_id)]

    def mails(self, order_id: str) -> list[Message]:
        """The mails that lie in the Maildir about an order, the oldest first."""
        rows = self.told("SELECT message_id FROM notices.outbox WHERE order_id = %s ORDER BY created_at", order_id)
        files = (message_from_bytes(file.read_bytes()) for file in (self.cli.home / "mail" / "new").iterdir())
        by_id = {str(mail["Message-ID"]): mail for mail in files}
        return [by_id[number] for (number,) in rows]


@contextmanager
def open_shop(folder: Path) -> Iterator[Shop]:
    """Bring it up; what drives a case is the command that was typed, and no worker beside it."""
    cli = Cli(folder / "home", {})
    try:
        assert cli("up").code == 0
        os.kill(cli.part("worker")["pid"], signal.SIGTERM)
        _stock(cli, folder)
        with proxy(cli.part("tool_server")["port"]) as wire:
            keys = cli.home / "keys"
            issuer = json.loads((keys / "issuers.json").read_text("utf-8"))[0]["issuer"]
            spoilt = cli.with_settings(
                KESSAI_DSN=cli.dsn("host", "host_rt"), KESSAI_SERVER_URL=wire.url,
                KESSAI_AUDIENCE=f"http://127.0.0.1:{wire.upstream}/mcp", KESSAI_ISSUER=issuer,
                KESSAI_SIGNING_KEY_FILE=str(keys / "signing.jwk"),
            )  # fmt: skip
            yield Shop(cli, spoilt, wire, folder)
    finally:
        assert cli("empty", "--yes").code == 0


def _stock(cli: Cli, folder: Path) -> None:
    file = folder / "orders.json"
    write_orders(file, range(ORDERS))
    environment = cli.environment(KESSAI_TOOLS_MIGRATE_DSN=cli.dsn("tools", "tools_owner"))
    argv = [sys.executable, "-m", "tool_server.cli", "load", str(file)]
    done = subprocess.run(argv, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def operator_of(folder: Path, name: str, tenant_id: str) -> Path:
    """The packaged authorization set with one operator more, who acts for one tenant alone."""
    document = json.loads((ROOT / "host" / "data" / "authz-v7.json").read_text(encoding="utf-8"))
    document["operators"].append({"name": name, "tenant_id": tenant_id, "may": ["review", "compensate"]})
    file = folder / "authz.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file
