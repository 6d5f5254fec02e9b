"""`kessai reconcile` on a stack of its own: it agrees after work, and finds each planted difference by its id."""

from __future__ import annotations

import asyncio
import stat
import time
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jwt
import psycopg
import pytest

from host.evaluation.audit import Auditors, reconciled
from host.stack.home import existing_home
from host.stack.keys import issuer_of, key_files, read_signing_key
from host.tool_client.mint import ExternalGrant, Minter, SigningKey
from tests.e2e.test_cli_token import call
from tests.support.cli import EXAMPLES, Cli
from tests.support.records import fits

pytestmark = pytest.mark.xdist_group("reconcile")
KINDS = ("untracked", "missing", "duplicate")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A stack whose every call is known, before anybody plants anything."""
    cli = Cli(tmp_path_factory.mktemp("reconcile") / "home", {})
    try:
        _work(cli)
        yield cli
    finally:
        assert cli("empty", "--yes").code == 0


def _work(cli: Cli) -> None:
    nothing = cli("reconcile", "--json")  # also where nothing is up, or has ever been
    assert (nothing.code, nothing.json()["compared"], nothing.json()["agree"]) == (3, 0, False)
    assert cli("up").code == 0
    for name in ("normal", "dangerous", "high-value", "missing-order"):
        assert cli("run", str(EXAMPLES / f"{name}.json"), "--json").code in {0, 10, 11}
    assert cli("baseline", str(EXAMPLES.parent / "claims" / "C-102.json")).code == 0
    agreed = cli("reconcile", "--json")
    view = fits(agreed.json(), "command.reconcile.json")
    assert (agreed.code, [view[kind] for kind in KINDS], view["differences"]) == (0, [[], [], []], [])
    assert view["compared"] > 20
    assert view["external"] == 2  # the baseline's reads


@cache
def auditors(home: Path) -> Auditors:
    cli = Cli(home, {})
    return Auditors(cli.dsn("host", "host_auditor"), cli.dsn("tools", "tools_auditor"))


def differences(cli: Cli) -> set[tuple[str, str, str]]:
    """As the command finds them, without its start."""
    found = asyncio.run(reconciled(auditors(cli.home)))
    return {(one.kind.value, one.id, one.why.value) for one in found.findings}


def ran(cli: Cli, name: str) -> str:
    """A case that completed, with its id; each test has an order of its own."""
    said = cli("run", str(EXAMPLES / f"{name}.json"), "--json")
    assert said.json()["state"] == "COMPLETED", said.err
    return str(said.json()["workflow_id"])


def unguarded(connection: psycopg.Connection[Any], table: str, statement: str, *values: Any) -> list[Any]:
    """What only an owner can do to a history, by taking its guard away first."""
    with connection.transaction():
        connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")  # type: ignore[call-overload]
        found = connection.execute(statement, values).fetchall()  # type: ignore[call-overload]
        connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")  # type: ignore[call-overload]
    return list(found)


def test_a_stray_row_of_the_log_is_found_by_its_token(own: Cli):
    before, token = differences(own), str(uuid.uuid4())
    with own.owner("tools") as tools:
        tools.execute(
            "INSERT INTO calls.log (iss, sub, client_id, kid, jti, use, tenant_id, task_id, tool, outcome, duration_us)"
            " VALUES ('i', 's', 'c', 'k', %s, 'call', 'acme-jp', %s, 'get_order', 'ok', 1)",
            (token, str(uuid.uuid4())),
        )
    assert differences(own) - before == {("untracked", token, "no_attempt")}
    said, view = own("reconcile"), own("reconcile", "--json")
    assert (said.code, view.code) == (1, 1)
    assert f"untracked  {token}" in said.out
    listed = fits(view.json(), "command.reconcile.json")
    assert (listed["agree"], token in listed["untracked"]) == (False, True)
    told = {(kind, name) for kind in KINDS for name in listed[kind]}
    assert told == {(one["kind"], one["id"]) for one in listed["differences"]}


def test_a_call_with_a_token_of_ones_own_is_found_although_its_key_is_trusted(own: Cli):
    before, home = differences(own), existing_home(own.home)
    assert home is not None
    key = SigningKey.from_jwk(read_signing_key(key_files(home).signing))
    server = f"http://127.0.0.1:{own.part('tool_server')['port']}/mcp"
    grant = ExternalGrant(
        jti=str(uuid.uuid4()), task_id="T-1", tenant_id="acme-jp", principal="returns-desk@acme-jp", customer="C-2001",
        scopes=frozenset({"orders:read"}), tool=None, resource=None, idempotency_key=None, seconds=60,
    )  # fmt: skip
    token = Minter(key, issuer_of(home), server).external(grant)
    assert call(own, token, "get_order", order_id="A-1001") == (200, "ok")
    assert differences(own) - before == {("untracked", grant.jti, "no_attempt")}


def test_a_call_of_a_token_that_was_issued_is_counted_apart_and_differs_in_nothing(own: Cli):
    before, outside = differences(own), own("reconcile", "--json").json()["external"]
    token = own("token", "issue", "--customer", "C-2001").out.strip()
    assert call(own, token, "get_order", order_id="A-1001") == (200, "ok")
    assert call(own, token, "get_order", order_id="A-1003") == (200, "not_found")
    assert differences(own) == before
    assert own("reconcile", "--json").json()["external"] == outside + 2
    jti = jwt.decode(token, options={"verify_signature": False})["jti"]
    assert jti in own("token", "list", "--json").out


def test_a_row_that_the_ledger_lost_leaves_its_call_and_its_return_untracked(own: Cli):
    before, workflow = differences(own), ran(own, "fault-429")
    with own.owner("host") as host:
        lost = "DELETE FROM attempt WHERE workflow_id = %s AND tool = 'create_return' RETURNING jti"
        tokens = {row[0] for row in unguarded(host, "attempt", lost, workflow)}
        gone = "DELETE FROM effect WHERE workflow_id = %s AND name = 'create_return' RETURNING external_id"
        numbers = {row[0] for row in unguarded(host, "effect", gone, workflow)}
    assert (len(tokens), len(numbers)) == (1, 1)
    assert differences(own) - before == {
        *(("untracked", token, "no_attempt") for token in tokens),
        *(("untracked", number, "no_effect") for number in numbers),
    }


def test_an_answer_that_the_log_lost_is_missing_and_is_shown_by_its_token(own: Cli):
    before, workflow = differences(own), ran(own, "fault-timeout")
    with own.owner("tools") as tools:
        lost = "DELETE FROM calls.log WHERE task_id = %s AND tool = 'get_order' RETURNING jti"
        ((token,),) = unguarded(tools, "calls.log", lost, workflow)
    assert differences(own) - before == {("missing", token, "not_logged")}
    assert own("show", token, "--json").json()["workflow_id"] == workflow


def test_a_second_return_by_hand_is_a_duplicate_whatever_key_it_has(own: Cli):
    before, workflow = differences(own), ran(own, "fault-disconnect")
    numbers = {key: f"R-{uuid.uuid4().hex[:8]}" for key in (f"{workflow}:create_return.2", None)}
    with own.owner("tools") as tools:
        for key, number in numbers.items():
            tools.execute(
                "INSERT INTO returns.returns SELECT tenant_id, %s, order_id, customer_id, %s, status, reason, currency,"
                " 0, 0, 0, rule_version, order_version, requested_at FROM returns.returns WHERE idempotency_key = %s",
                (number, key, f"{workflow}:create_return"),
            )
    found = differences(own) - before
    assert {(kind, number) for kind, number, _ in found} == {
        ("duplicate", numbers[f"{workflow}:create_return.2"]),
        ("untracked", numbers[None]),  # without lines it is not the same return
    }


def test_a_return_by_hand_that_looks_like_loaded_data_is_found_all_the_same(own: Cli):
    before, number = differences(own), f"R-{uuid.uuid4().hex[:8]}"
    with own.owner("tools") as tools:
        put = tools.execute(
            "INSERT INTO returns.returns SELECT tenant_id, %s, order_id, customer_id, NULL, status, reason, currency,"
            " 0, 0, 0, rule_version, order_version, requested_at, requested_at FROM returns.returns"
            " WHERE idempotency_key IS NULL AND status = 'created' ORDER BY return_id LIMIT 1",
            (number,),
        )
        assert put.rowcount == 1
    assert differences(own) - before == {("untracked", number, "no_key")}


def test_nothing_is_called_wrong_while_work_goes_on(own: Cli):
    before = differences(own)
    at_work = [own.start("run", str(EXAMPLES / f"{name}.json")) for name in ("defective", "steering", "duplicate")]
    place, looked, end = auditors(own.home), 0, time.monotonic() + 60
    try:
        while any(program.poll() is None for program in at_work) and time.monotonic() < end:
            found = asyncio.run(reconciled(place))
            assert {(one.kind.value, one.id, one.why.value) for one in found.findings} == before
            looked += 1
    finally:
        for program in at_work:
            program.communicate(timeout=60)
    assert looked > 1


def test_a_report_is_for_our_eyes_alone_and_is_never_written_over(own: Cli, tmp_path: Path):
    folder = tmp_path / "new" / "report"
    said = own("reconcile", "--report", str(folder), "--json")
    file = folder / "reconcile.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text("utf-8") == said.out
    assert [one.name for one in folder.iterdir()] == ["reconcile.json"]
    again = own("reconcile", "--report", str(folder))
    assert (again.code, again.out) == (2, "")
    assert "is there already" in again.err
    assert file.read_text("utf-8") == said.out
    (tmp_path / "file").write_text("")
    nowhere = own("reconcile", "--report", str(tmp_path / "file"))
    assert (nowhere.code, "no report can be written" in nowhere.err) == (2, True)


def test_the_auditors_connections_are_enough_and_half_of_them_is_not(own: Cli, nowhere: Cli):
    host, tools = own.dsn("host", "host_auditor"), own.dsn("tools", "tools_auditor")
    told = nowhere("reconcile", "--json", KESSAI_AUDIT_HOST_DSN=host, KESSAI_AUDIT_TOOLS_DSN=tools)
    here = own("reconcile", "--json")
    assert {k: v for k, v in told.json().items() if k != "at"} == {k: v for k, v in here.json().items() if k != "at"}
    assert told.code == here.code
    half = nowhere("reconcile", KESSAI_AUDIT_HOST_DSN=host)
    assert (half.code, "KESSAI_AUDIT_TOOLS_DSN is missing" in half.err) == (2, True)
    elsewhere = nowhere("reconcile", KESSAI_DSN=own.dsn("host", "host_rt"))
    assert (elsewhere.code, elsewhere.err.count("_DSN is missing")) == (2, 2)
    writes = nowhere("reconcile", KESSAI_AUDIT_HOST_DSN=own.dsn("host", "host_rt"), KESSAI_AUDIT_TOOLS_DSN=tools)
    assert (writes.code, "the role host_rt can write" in writes.err) == (15, True)
    assert not nowhere.home.exists()


def test_nobody_who_works_is_given_an_auditors_connection(own: Cli):
    worker = own("worker", KESSAI_AUDIT_HOST_DSN="host=x")
    assert (worker.code, "a worker gets no auditor's connection" in worker.err) == (2, True)
    well = {check["check"]: check["well"] for check in own("doctor", "--json").json()["checks"]}
    assert well["auditors apart from the worker"]
    assert well["auditors apart from the tool server"]
    assert well["auditors' connections"]
    beside = own("doctor", "--json", KESSAI_DSN="host=x", KESSAI_AUDIT_HOST_DSN="host=x")
    assert beside.code == 15
