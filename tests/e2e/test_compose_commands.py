"""The commands of compose.yaml, run as they stand there, with no container engine: only names and places differ.

Host names become loopback, ports free ones, and /run/secrets a directory that holds what the service is given and
nothing else. The database is the embedded one, the mail sink one of the tests' own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from host.stack import postgres
from host.stack.binaries import find_binaries
from host.stack.home import open_home
from host.stack.osuser import choose_os_user, give
from host.stack.removal import empty_home
from host.stack.roles import Side
from host.stack.secrets import COMPOSE_ISSUER, write_secrets
from host.stack.serving import ADMIN
from tests.support.compose import ROOT, SECRETS, SERVICES, environment, secrets_of
from tests.support.pages import blocks
from tests.support.psql import run_script
from tests.support.server import wait_until
from tests.support.smtp_sink import Sink, smtp_sink

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("compose")]  # one set-up serves all
MODULES = {"kessai": "host.cli", "kessai-tools": "tool_server.cli", "python": ""}
EXAMPLES = ROOT / "examples" / "returns"


@dataclass
class Machine:
    """Where the services find one another."""

    root: Path
    server: postgres.Server
    sink: Sink
    tool_port: int
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def environment(self, name: str) -> dict[str, str]:
        """The service's own variables, and what any container has; no home to fall back on."""
        own = {key: self.translate(name, value) for key, value in environment(SERVICES[name]).items()}
        return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"} | own

    def translate(self, name: str, value: str) -> str:
        there = {
            "host=postgres": f"host=127.0.0.1 port={self.server.port}",
            SECRETS: str(self.secrets_for(name)),
            "tool-server:8801": f"localhost:{self.tool_port}",  # another name than the resource's, as there
            "8801": str(self.tool_port),
            "0.0.0.0": "127.0.0.1",
            "/tmp": str(self.directory(name)),
            "1025": str(self.sink.port),
        }
        every = "|".join(re.escape(word) for word in there)
        return "127.0.0.1" if value == "mail" else re.sub(every, lambda found: there[found[0]], value)

    def directory(self, name: str) -> Path:
        """Its /tmp."""
        made = self.root / "tmp" / name
        made.mkdir(parents=True, exist_ok=True)
        return made

    def secrets_for(self, name: str) -> Path:
        """Its /run/secrets."""
        given = self.root / "run" / name
        if not given.exists():
            given.mkdir(parents=True, mode=0o700)
            for secret in secrets_of(SERVICES[name]):
                shutil.copy2(self.root / "secrets" / secret, given / secret)
        return given

    def argv(self, name: str, command: list[str]) -> list[str]:
        """A command of its container: our programs by this interpreter, mounted files where they lie here."""
        mounts = (volume.split(":") for volume in SERVICES[name].get("volumes", []))
        places = {there: str(ROOT / here) for here, there, *_ in mounts if here.startswith("./")}
        module = MODULES[command[0]]
        start = [sys.executable, "-m", module] if module else [sys.executable]
        return start + [places.get(word, self.translate(name, word)) for word in command[1:]]

    def start(self, name: str) -> None:
        log = (self.root / f"{name}.log").open("w", encoding="utf-8")
        self.running[name] = subprocess.Popen(
            self.argv(name, SERVICES[name]["command"]),
            env=self.environment(name), cwd=self.directory(name), text=True,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        log.close()

    def finish(self, name: str, command: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(name, command), input=given, capture_output=True, text=True, check=False, timeout=100,
            env=self.environment(name), cwd=self.directory(name),
        )  # fmt: skip

    def run_job(self, name: str) -> None:
        done = self.finish(name, SERVICES[name]["command"])
        assert done.returncode == 0, f"{name}: {done.stderr}"

    def healthy(self, name: str) -> bool:
        return self.finish(name, SERVICES[name]["healthcheck"]["test"][1:]).returncode == 0

    def wait_healthy(self, name: str) -> None:
        process = self.running[name]
        wait_until(lambda: process.poll() is not None or self.healthy(name), seconds=60)
        assert process.poll() is None, (self.root / f"{name}.log").read_text()

    def stop(self, name: str) -> int:
        """As the engine stops it: SIGTERM, and only its grace period to end in."""
        process = self.running.pop(name)
        process.terminate()
        return process.wait(int(SERVICES[name]["stop_grace_period"].removesuffix("s")))

    def query(self, side: Side, role: str, text: str, *parameters: object) -> list[tuple[Any, ...]]:
        passfile = str(self.root / "secrets" / f"{role}.pgpass")
        with psycopg.connect(self.server.conninfo(side, role, passfile=passfile)) as connection:
            return connection.execute(text, parameters).fetchall()


@contextmanager
def database(root: Path) -> Iterator[postgres.Server]:
    home = open_home(root)
    try:
        cluster = postgres.cluster_of(home, postgres.PostgresChoice(bin=None, os_user=None), durable=False)
        server = asyncio.run(postgres.start(cluster))
        dsn = server.conninfo("postgres", ADMIN, password=cluster.admin_password())
        script = ROOT / next(v.split(":")[0] for v in SERVICES["postgres"]["volumes"] if "initdb.d" in v)
        done = run_script(dsn, root.parent / "secrets", script)
        assert done.returncode == 0, done.stderr
        yield server
    finally:
        asyncio.run(empty_home(root))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    root = tmp_path_factory.mktemp("compose")
    write_secrets(root / "secrets", COMPOSE_ISSUER)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with ExitStack() as stack:
        server = stack.enter_context(database(root / "database"))
        made = Machine(root, server, stack.enter_context(smtp_sink()), port)
        try:
            for job in ("migrate-host", "migrate-tools", "load-demo"):
                made.run_job(job)
            for service in ("tool-server", "worker"):
                made.start(service)
                made.wait_healthy(service)
            yield made
        finally:
            for process in made.running.values():
                process.kill()
                process.wait(10)


def submit(machine: Machine, name: str) -> str:
    """Take a case in as another process would, and wake a worker; gives the workflow's id."""
    case = (EXAMPLES / f"{name}.json").read_bytes()
    done = machine.finish("worker", ["python", "-c", SUBMIT], case.decode())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SUBMIT = """
import asyncio, sys
from host import settings, wiring
from host.engine.accept import accept, read_case, read_document, Origin
from host.workflows.catalogue import CURRENT

async def main():
    known = settings.load()
    workflow, case = read_case(read_document(sys.stdin.buffer.read()), CURRENT)
    async with wiring.runtime(known, settings.links(known)) as runtime:
        parts = runtime.driver.parts
        kind = parts.kinds[workflow.kind, workflow.release]
        principal = parts.authorization.by_name()[known.principal]
        print((await accept(parts.pool, kind, case, Origin(principal), runtime.driver.pins, runtime.wake)).workflow_id)

asyncio.run(main())
"""


def state_of(machine: Machine, workflow_id: str) -> str:
    ((state,),) = machine.query(
        Side.HOST, "host_auditor", "SELECT state FROM workflow WHERE workflow_id = %s", workflow_id
    )
    return str(state)


def test_a_case_is_completed_by_the_worker_and_its_notice_reaches_the_mail_sink(machine: Machine) -> None:
    before = len(machine.sink.messages)
    workflow_id = submit(machine, "steering")
    wait_until(lambda: state_of(machine, workflow_id) == "COMPLETED", seconds=60)
    (mail,) = machine.sink.messages[before:]
    assert mail["From"] == SERVICES["tool-server"]["environment"]["KESSAI_TOOLS_MAIL_FROM"]
    logged = machine.query(
        Side.TOOLS, "tools_auditor", "SELECT tool FROM calls.log WHERE task_id = %s AND outcome = 'ok'", workflow_id
    )
    assert {"get_order", "check_return_policy", "create_return", "send_return_notice"} <= {tool for (tool,) in logged}


def test_a_case_that_is_sent_into_the_workers_container_runs_to_its_end(machine: Machine) -> None:
    case = (EXAMPLES / "defective.json").read_text()
    done = machine.finish("worker", ["kessai", "run", "-", "--json"], case)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["state"] == "COMPLETED"
    assert record["result"]["message_id"] in {mail["Message-ID"] for mail in machine.sink.messages}


def test_every_job_may_be_run_again(machine: Machine) -> None:
    for job in ("migrate-host", "migrate-tools", "load-demo"):
        machine.run_job(job)


def test_the_owners_acts_run_in_the_migrations_container(machine: Machine) -> None:
    def act(*words: str) -> str:
        done = machine.finish("migrate-tools", ["kessai-tools", *words])
        assert done.returncode == 0, done.stderr
        return done.stdout

    act("disable", "cancel_return")
    tools = {tool["name"]: tool["enabled"] for tool in json.loads(act("tools", "list", "--json"))}
    assert [name for name, enabled in tools.items() if not enabled] == ["cancel_return"]
    act("enable", "cancel_return")
    act("revoke", "--jti", "a-token-that-nobody-has")
    unknown = machine.finish("migrate-tools", ["kessai-tools", "revoke", "--kid", "a-key-that-signed-nothing"])
    (key,) = json.loads((machine.root / "secrets" / "jwks.json").read_text())["keys"]
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert f"known are {key['kid']}" in unknown.stderr


def test_a_program_that_lacks_its_secret_is_not_started(machine: Machine) -> None:
    empty = machine.root / "nothing"
    empty.mkdir(exist_ok=True)
    given = str(machine.secrets_for("worker"))
    variables = {key: value.replace(given, str(empty)) for key, value in machine.environment("worker").items()}
    done = subprocess.run(
        machine.argv("worker", SERVICES["worker"]["command"]), env=variables, capture_output=True, text=True,
        check=False, timeout=60, cwd=machine.directory("worker"),
    )  # fmt: skip
    assert done.returncode == 15
    assert "Traceback" not in done.stderr


def test_the_worker_is_unhealthy_without_its_tool_server_and_both_end_within_their_grace(machine: Machine) -> None:
    assert machine.healthy("tool-server")
    assert machine.healthy("worker")
    assert machine.stop("tool-server") == 0
    assert not machine.healthy("tool-server")
    wait_until(lambda: not machine.healthy("worker"), seconds=30)
    machine.start("tool-server")
    machine.wait_healthy("tool-server")
    machine.wait_healthy("worker")
    assert machine.stop("worker") == 0
    assert not machine.healthy("worker")
    machine.start("worker")
    machine.wait_healthy("worker")


QUERIES = blocks((ROOT / "RUNBOOK.md").read_text("utf-8"), "sql")


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_every_query_of_the_runbook_runs_as_the_role_that_it_names(machine: Machine, query: str) -> None:
    workflow_id = submit(machine, "normal")  # the same case gives the same workflow
    wait_until(lambda: state_of(machine, workflow_id) == "COMPLETED", seconds=60)
    first, _, text = query.partition("\n")
    named = re.fullmatch(r"-- as (\w+) in (\w+)", first)
    assert named is not None
    parameters = [workflow_id] * text.count(":'workflow_id'")
    if parameters:
        text = text.replace("%", "%%").replace(":'workflow_id'", "%s")
    rows = machine.query(Side(named[2]), named[1], text, *parameters)
    assert bool(rows) is ("HAVING count(*) > 1" not in text)


def test_who_comes_without_a_token_gets_what_the_runbook_says(machine: Machine) -> None:
    (block,) = [text for text in blocks((ROOT / "RUNBOOK.md").read_text("utf-8"), "sh") if "curl -si" in text]
    words = shlex.split(block)
    assert words[:4] == ["curl", "-si", "-X", "POST"]
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    url, body = words[4].replace("8801", str(machine.tool_port)), words[words.index("-d") + 1]
    answer = httpx2.post(url, headers=headers, content=body, trust_env=False)
    assert answer.status_code == 401
    assert re.fullmatch(r'Bearer scope="[^"]+", resource_metadata="[^"]+"', answer.headers["WWW-Authenticate"])
    assert "token_missing" in answer.text


def test_the_database_is_made_so_that_everybody_needs_a_password() -> None:
    arguments = shlex.split(environment(SERVICES["postgres"])["POSTGRES_INITDB_ARGS"])
    user = choose_os_user(None)
    with tempfile.TemporaryDirectory() as place:
        data, password = Path(place) / "data", Path(place) / "password"
        data.mkdir(mode=0o700)
        password.write_text("known\n")
        Path(place).chmod(0o711)
        give(user, data)
        give(user, password)
        initdb = find_binaries(None, user, Path(place)).initdb
        done = subprocess.run(
            [str(initdb), "-D", str(data), "-U", ADMIN, f"--pwfile={password}", *arguments],
            capture_output=True, text=True, check=False, cwd="/", env={"PATH": os.defpath, "LC_ALL": "C"},
            **({} if user is None else user.drop()),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        lines = (data / "pg_hba.conf").read_text().splitlines()
    assert {line.split()[-1] for line in lines if line and not line.startswith("#")} == {"scram-sha-256"}
