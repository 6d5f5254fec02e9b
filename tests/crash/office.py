"""Persons who act on the cases of a stage: an approver with a key, an operator, and cases that wait for them.

Cases that need a person are made by the real parts: dear orders, and answers that get lost on the way to a worker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from host.engine.accept import Origin, accept, read_case
from host.stack.assembly import owner_dsn
from host.stack.pids import Identity
from host.stack.processes import Program, python_module
from host.stack.roles import Side
from host.workflows.catalogue import CURRENT
from shared_contracts.approval import LIFETIME
from tests.crash.boundary import AT, TRACE
from tests.crash.orders import TENANT, case
from tests.crash.proxy import Act, proxy
from tests.crash.stage import Stage
from tests.support import tool_orders

DEAR = 60_000  # above what needs no yes
LOOKS = 3  # of a worker that cannot find something out
WORD = ("--reason", "Because.", "--as", "sato")


@dataclass
class Office:
    """`seen_not` have a return, a notice and nobody who could look at that; `in_doubt` have a return unheard of."""

    stage: Stage
    settings: dict[str, str]
    seen_not: list[UUID] = field(default_factory=list)
    in_doubt: list[UUID] = field(default_factory=list)
    dear: int = 0

    # -- cases --------------------------------------------------------------------------------------------------

    def waiting(self) -> UUID:
        """A case that waits for an approval; a worker has to be there."""
        self.dear += 1
        number = f"D-{self.dear:06}"
        file = self.stage.stand.within / f"{number}.json"
        bought = tool_orders.line(price=DEAR)
        order = tool_orders.order(number, bought, tenant_id=TENANT, customer_id=number.replace("D", "CD"))
        people = [tool_orders.recipient(order["customer_id"], tenant_id=TENANT)]
        seed = {"snapshot": "2026-07-30T00:00:00+09:00", "policies": [], "orders": [order], "recipients": people}
        file.write_text(json.dumps(seed, ensure_ascii=False), encoding="utf-8")
        owner = owner_dsn(self.stage.stand.parts, Side.TOOLS)
        self.stage.command("load-dear", "tool_server.cli", "load", str(file), KESSAI_TOOLS_MIGRATE_DSN=owner)
        asked = {"request_id": number, "order_id": number, "customer_id": order["customer_id"]}
        workflow = self.stage.run(self._take({**case(0), **asked}))
        self.stage.until("SELECT state = 'WAITING_APPROVAL' FROM workflow WHERE workflow_id = %(id)s", id=workflow)
        return workflow

    async def _take(self, document: dict[str, Any]) -> UUID:
        desk = self.stage.desk
        _, read = read_case(document, CURRENT)
        return (await accept(desk.pool, desk.kind, read, Origin(desk.principal), desk.pins, desk.wake)).workflow_id

    def state(self, workflow: UUID) -> tuple[str, str]:
        query = "SELECT state, reason FROM workflow WHERE workflow_id = %(id)s"
        ((state, reason),) = self.stage.rows(query, id=workflow)
        return state, reason

    def closed(self, workflow: UUID) -> bool:
        query = "SELECT review_closed_at IS NOT NULL FROM workflow WHERE workflow_id = %(id)s"
        return bool(self.stage.rows(query, id=workflow)[0][0])

    def undoings(self, workflow: UUID) -> list[tuple[str, bool]]:
        """Each undoing of a case: its state, and whether somebody has released it."""
        query = "SELECT state, released_by IS NOT NULL FROM compensation WHERE workflow_id = %(id)s ORDER BY n"
        return [(state, released) for state, released in self.stage.rows(query, id=workflow)]

    def undone(self, workflow: UUID) -> tuple[int, int]:
        """How many cancellations and correcting mails stand at the provider."""
        stand, name = self.stage.stand, f"{workflow}:%"
        ask = (
            "SELECT count(*) FROM returns.cancellations c JOIN returns.returns r USING (tenant_id, return_id) "
            "WHERE r.idempotency_key LIKE %s"
        )
        ((cancelled,),) = stand.rows(Side.TOOLS, "tools_auditor", ask, name)
        tell = "SELECT message_id FROM notices.audited WHERE idempotency_key LIKE %s AND kind = 'correction'"
        told = stand.rows(Side.TOOLS, "tools_auditor", tell, name)
        files = [file.read_bytes() for file in (stand.parts.home.mail / "new").iterdir()]
        return cancelled, sum(f"Message-ID: {number}\r\n".encode() in file for (number,) in told for file in files)

    # -- acts ---------------------------------------------------------------------------------------------------

    def decision(self, act: str, workflow: UUID) -> tuple[str, ...]:
        """The command that says yes or no to what is asked right now."""
        query = "SELECT action_digest FROM approval_request WHERE workflow_id = %(id)s ORDER BY version DESC LIMIT 1"
        ((digest,),) = self.stage.rows(query, id=workflow)
        reason = () if act == "approve" else ("--reason", "Not ours.")
        return (act, str(workflow), "--as", "tanaka", "--yes", "--digest", str(digest), *reason)

    def start(self, *arguments: str, **more: str) -> Identity:
        program = Program("act", python_module("host.cli", *arguments), self.settings, "", None, None, 0)
        return self.stage.start(program, **more)

    def act(self, *arguments: str, **more: str) -> str:
        """Do it to its end, whatever that is; gives what it printed."""
        begun = len(self.stage.stand.said("act"))
        self.stage.gone(self.start(*arguments, **more))
        return self.stage.stand.said("act")[begun:]

    def dies(self, point: str, *arguments: str) -> None:
        """Do it, and be killed at that point."""
        assert f"SIGKILL {point}" in self.act(*arguments, **{AT: point})

    def traced(self, *arguments: str) -> list[str]:
        """Do it, and give the names of its commits."""
        file = self.stage.stand.within / f"act-{self.stage.new_order()}.trace"
        self.act(*arguments, **{TRACE: str(file)})
        return [json.loads(line)["name"] for line in file.read_text("utf-8").splitlines()]

    def stopped(self, engaged: bool) -> None:
        """Let updates be stopped, or not."""
        with psycopg.connect(self.stage.stand.admin("host"), autocommit=True) as admin:
            admin.execute("UPDATE stop SET engaged = %s WHERE scope = 'updates'", (engaged,))

    # -- time ---------------------------------------------------------------------------------------------------

    @contextmanager
    def a_day_later(self) -> Iterator[None]:
        """Nobody was there for as long as an approval may take."""
        clock = "CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT {} $$"
        with psycopg.connect(self.stage.stand.admin("host"), autocommit=True) as admin:
            row = admin.execute("SELECT pg_get_functiondef('clock_now()'::regprocedure)").fetchone()
            assert row is not None
            ahead = int(LIFETIME.total_seconds()) + 1
            admin.execute(clock.format(f"clock_timestamp() + interval '{ahead} s'").encode())
            try:
                yield
            finally:
                admin.execute(str(row[0]).encode())


def opened(stage: Stage, folder: Path, *, seen_not: int, in_doubt: int) -> Office:
    """Make an approver, and so many cases of either kind."""
    parts, links = stage.stand.parts, stage.stand.links
    settings = {
        "KESSAI_DSN": links.dsn, "KESSAI_SERVER_URL": links.server_url, "KESSAI_AUDIENCE": links.audience,
        "KESSAI_ISSUER": links.issuer, "KESSAI_SIGNING_KEY_FILE": str(links.signing_key_file),
        "KESSAI_APPROVERS": str(folder / "keys"), "KESSAI_LEASE_SECONDS": "1",
    }  # fmt: skip
    made = Office(stage, settings)
    made.act("approver", "add", "tanaka", "--no-passphrase")
    public = str(folder / "keys" / "tanaka.json")
    owner = {"KESSAI_MIGRATE_DSN": owner_dsn(parts, Side.HOST)}
    stage.command("trust", "host.cli", "approver", "trust", public, **settings, **owner)
    tools = owner_dsn(parts, Side.TOOLS)
    stage.command("trust", "tool_server.cli", "approver", "trust", public, KESSAI_TOOLS_MIGRATE_DSN=tools)
    stage.keep("server")
    stage.drop("worker")
    with proxy(stage.stand.tool_server().port or 0) as way:
        worker = stage.started(stage.behind(way))
        way.next("create_return", *(Act.LOSE_ANSWER,) * in_doubt)
        way.next("find_return", *(Act.LOSE,) * LOOKS * in_doubt)
        made.in_doubt = _reviewed(stage, in_doubt)
        way.next("find_notice", *(Act.LOSE,) * LOOKS * seen_not)
        made.seen_not = _reviewed(stage, seen_not)
        stage.kill(worker)
    return made


def _reviewed(stage: Stage, count: int) -> list[UUID]:
    cases = [stage.take() for _ in range(count)]
    assert {state for state, _ in stage.ended(*cases)} == {"NEEDS_REVIEW"}
    return cases


def commands_printed(text: str) -> list[str]:
    """The workflows that a command has named."""
    return re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", text)
