"""A stand for tests: programs started in a moment, one case at a time, and what stands at the provider afterwards.

The database and the desk are kept for a whole module; each test has an order of its own, and starts what it kills.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, LiteralString, TypeVar
from uuid import UUID

import psycopg

from host.domain.control import ENDS
from host.domain.step import key_of
from host.evaluation.crash.forks import HOST_MODULES, TOOLS_MODULES, Nursery, nursery
from host.stack.pids import Identity
from host.stack.processes import Program, python_module
from host.stack.roles import Side
from tests.crash.audit import NOTICE, RETURN, judge, read_books
from tests.crash.desk import Desk, desk
from tests.crash.proxy import Proxy
from tests.crash.stand import Stand, kill, stand

LEASE_SECONDS = "1"
ENDED_SECONDS = 40.0  # a few waits of a few seconds; the machine may be busy
LOOK_SECONDS = 0.02
T = TypeVar("T")


@dataclass
class Stage:
    """Everything that a test of a crash works with."""

    runner: asyncio.Runner
    stand: Stand
    desk: Desk
    nursery: Nursery
    next_order: int = 0
    kept: dict[str, Identity] = field(default_factory=dict)
    accepted: list[UUID] = field(default_factory=list)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    # -- programs -----------------------------------------------------------------------------------------------

    def start(self, program: Program, **boundary: str) -> Identity:
        """Start it; it may die before it is ready, which is for the test to say."""
        process = self.nursery.start(program, self.stand.log(program.name), boundary)
        self.stand.living.append(process)
        return process

    def started(self, program: Program, **boundary: str) -> Identity:
        """Start it and wait until it is ready."""
        since = len(self.stand.said(program.name))
        process = self.start(program, **boundary)
        self.run(self.stand.ready(program, process, since))
        return process

    def server(self, **boundary: str) -> Identity:
        return self.started(self.stand.tool_server(), **boundary)

    def worker(self, name: str = "worker", **boundary: str) -> Identity:
        return self.started(self.stand.worker(name), **boundary)

    def keep(self, name: str) -> Identity:
        """The `server` or `worker` that tests share as long as none of them kills it."""
        living = self.kept.get(name)
        if living is None or not living.alive():
            living = self.kept[name] = self.server() if name == "server" else self.worker()
        return living

    def drop(self, name: str) -> None:
        """Let the shared one go: a test is about to have one of its own."""
        living = self.kept.pop(name, None)
        if living is not None:
            self.kill(living)

    def clear(self) -> None:
        """End whatever a test has started and left, but what is kept."""
        for process in self.stand.living:
            if process not in self.kept.values():
                self.kill(process)

    def kill(self, *processes: Identity) -> None:
        for process in processes:
            self.run(kill(process))

    def gone(self, process: Identity, within_seconds: float = ENDED_SECONDS) -> None:
        """Wait for an end that somebody else brings about."""
        assert self.run(process.gone(within_seconds)), "it has not ended"

    def behind(self, way: Proxy, name: str = "worker", **settings: str) -> Program:
        """A worker that reaches the tool server through a proxy; tokens are for the server itself all the same."""
        return self.stand.worker(name, KESSAI_SERVER_URL=way.url, KESSAI_AUDIENCE=self.stand.url, **settings)

    def command(self, name: str, module: str, *arguments: str, **settings: str) -> str:
        """Run a command to its end, and give what it printed."""
        begun = len(self.stand.said(name))
        process = self.start(Program(name, python_module(module, *arguments), settings, "", None, None, 0))
        self.gone(process)
        return self.stand.said(name)[begun:]

    # -- cases --------------------------------------------------------------------------------------------------

    def new_order(self) -> int:
        """The number of an order that nobody has returned yet."""
        self.next_order += 1
        return self.next_order - 1

    def take(self) -> UUID:
        """Take the next case in, with its wake-up."""
        taken = self.run(self.desk.take(self.new_order()))
        self.accepted.append(taken)
        return taken

    def rows(self, query: LiteralString, **values: object) -> list[tuple[Any, ...]]:
        return self.run(self.desk.rows(query, **values))

    def until(self, query: LiteralString, seconds: float = ENDED_SECONDS, **values: object) -> None:
        """Wait, bounded, until a query's first column is true."""
        deadline = time.monotonic() + seconds
        while not self.rows(query, **values)[0][0]:
            assert time.monotonic() < deadline, f"it never came true: {query} {values}"
            time.sleep(LOOK_SECONDS)

    def hears(self, name: str, words: str, since: int) -> None:
        """Wait until a program has said something in its log."""
        deadline = time.monotonic() + ENDED_SECONDS
        while words not in self.stand.said(name)[since:]:
            assert time.monotonic() < deadline, f"{name} never said: {words}"
            time.sleep(LOOK_SECONDS)

    def ended(self, *workflows: UUID, within_seconds: float = ENDED_SECONDS) -> list[tuple[str, str]]:
        """Wait until all have ended; gives state and reason of each, in the order given."""
        query = (
            "SELECT count(*) = 0 FROM workflow WHERE workflow_id = ANY (%(ids)s) AND control_state <> ALL (%(ends)s)"
        )
        self.until(query, within_seconds, ids=list(workflows), ends=[end.value for end in ENDS])
        found = self.rows("SELECT workflow_id, state, reason FROM workflow WHERE workflow_id = ANY (%(ids)s)",
                          ids=list(workflows))  # fmt: skip
        by_id = {row[0]: (row[1], row[2]) for row in found}
        return [by_id[workflow] for workflow in workflows]

    def recoveries(self, workflow: UUID) -> int:
        return int(self.rows("SELECT recoveries FROM workflow WHERE workflow_id = %(id)s", id=workflow)[0][0])

    def version(self, workflow: UUID) -> int:
        """How often the row has been moved."""
        return int(self.rows("SELECT version FROM workflow WHERE workflow_id = %(id)s", id=workflow)[0][0])

    def listed_again(self, way: Proxy) -> None:
        """Wait until a worker behind the proxy has asked the tool server for its list once more."""
        way.wait_served("tools/list", way.served["tools/list"] + 1)

    def outcomes(self, workflow: UUID) -> list[str]:
        """Each request of a case: its tool, and what it was closed with."""
        query = "SELECT tool || ' ' || coalesce(outcome, '…') FROM attempt WHERE workflow_id = %(id)s ORDER BY step, n"
        return [row[0] for row in self.rows(query, id=workflow)]

    def effects(self, workflow: UUID) -> tuple[int, int]:
        """How many returns and mails the provider has made for a case, whatever the host believes."""
        ask = "SELECT count(*) FROM returns.returns WHERE idempotency_key = %s"
        ((returns,),) = self.stand.rows(Side.TOOLS, "tools_auditor", ask, key_of(workflow, RETURN))
        tell = "SELECT message_id FROM notices.audited WHERE idempotency_key = %s"
        told = self.stand.rows(Side.TOOLS, "tools_auditor", tell, key_of(workflow, NOTICE))
        files = [file.read_bytes() for file in (self.stand.parts.home.mail / "new").iterdir()]
        return returns, sum(f"Message-ID: {number}\r\n".encode() in file for (number,) in told for file in files)

    def shown(self, workflow: UUID) -> dict[str, Any]:
        """What `kessai show` tells of a case, held against what stands at the provider."""
        said = self.command("show", "host.cli", "show", str(workflow), "--json", KESSAI_DSN=self.stand.links.dsn)
        record: dict[str, Any] = json.loads(said)
        ((state,),) = self.rows("SELECT state FROM workflow WHERE workflow_id = %(id)s", id=workflow)
        assert record["state"] == state
        believed = {e["name"]: e for e in record["effects"] if e["outcome"] == "succeeded"}
        assert (int(RETURN in believed), int(NOTICE in believed)) == self.effects(workflow)
        assert state != "COMPLETED" or all(e["verified_at"] is not None for e in believed.values())
        return record

    def faults(self) -> list[str]:
        """Whatever contradicts itself in both databases and the mail, over all cases of this stage."""
        return judge(read_books(self.stand), self.accepted).faults

    def forget_jobs(self) -> None:
        """Begin with an empty queue: what an earlier test's killed worker held is no part of the next one."""
        with psycopg.connect(self.stand.admin("host"), autocommit=True) as admin:
            admin.execute("DELETE FROM procrastinate_jobs")


@contextmanager
def staged(orders: int, **worker_settings: str) -> Iterator[Stage]:
    """Bring everything up but the programs; all of it is gone afterwards."""
    settings = {"KESSAI_LEASE_SECONDS": LEASE_SECONDS, "KESSAI_CONCURRENCY": "8"} | worker_settings
    with asyncio.Runner() as runner, nursery(HOST_MODULES + TOOLS_MODULES) as born:
        stood = stand(orders, settings)
        made = runner.run(stood.__aenter__())
        try:
            with psycopg.connect(made.admin(), autocommit=True) as admin:
                admin.execute("ALTER SYSTEM SET autovacuum = off")  # so that every transaction is one of ours
                admin.execute("SELECT pg_reload_conf()")
            opened = desk(made.links.dsn)
            at_desk = runner.run(opened.__aenter__())
            try:
                yield Stage(runner, made, at_desk, born)
            finally:
                runner.run(opened.__aexit__(None, None, None))
        finally:
            runner.run(stood.__aexit__(None, None, None))
