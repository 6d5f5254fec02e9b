"""Deciding with nothing running; and a host that was taken over whole, but for the one key that it never has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from host.commands.approver_keys import files_of, make
from host.engine.parts import Request, new_id, new_jti
from host.stack.keys import read_signing_key
from host.tool_client.mint import Minter, SigningKey
from shared_contracts.approval import Approver
from shared_contracts.tools import TOOLS
from tests.support.cli import Cli
from tests.support.deciding import approvers, authorization_with, digest_of, high_value, made
from tests.support.server import request

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("cli-alone")]

ORDER = ("A-1003", "C-2003", "L1")
CREATE = {"order_id": "A-1003", "lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind"}
APPROVE = ("--yes", "--digest")


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Cli]:
    """A home in which nothing runs, and tanaka's key."""
    cli = approvers(Cli(tmp_path / "home", {}), tmp_path, "tanaka")
    yield cli
    assert cli("empty", "--yes").code == 0


def test_a_case_is_approved_with_nothing_running_and_another_process_goes_on_with_it(alone: Cli, tmp_path: Path):
    record = high_value(alone, tmp_path, *ORDER)
    said = alone("approve", record["workflow_id"], "--as", "tanaka", *APPROVE, digest_of(record))
    assert said.code == 0, said.err
    assert alone.status()["mode"] == "down"
    ended = alone("run", record["workflow_id"], "--json")
    assert (ended.code, ended.json()["state"]) == (0, "COMPLETED")
    assert [effect["outcome"] for effect in ended.json()["effects"]] == ["succeeded"] * 2
    assert len(list((alone.home / "mail" / "new").iterdir())) == 1
    assert alone("run", record["workflow_id"], "--json").json() == ended.json()


def test_whoever_has_all_that_the_host_has_but_no_approvers_key_gets_no_return_made(alone: Cli, tmp_path: Path):
    authorization = authorization_with(tmp_path, "mallory")
    evil = alone.with_settings(KESSAI_AUTHZ_FILE=str(authorization), KESSAI_APPROVERS=str(tmp_path / "evil"))
    assert evil("up").code == 0
    record = high_value(evil, tmp_path, *ORDER)
    approver = json.loads(authorization.read_text("utf-8"))["approvers"][-1]
    trusted = make(files_of(tmp_path / "evil", "mallory"), Approver.model_validate_json(json.dumps(approver)), None)
    with evil.owner("host") as host:
        host.execute("SELECT trust_approver(%s, 'mallory', %s, 'mallory')", (trusted.key.kid, trusted.key.x))
        said = evil("approve", record["workflow_id"], "--as", "mallory", *APPROVE, digest_of(record))
        assert said.code == 0, said.err  # the host believes its own database
        after = evil("run", record["workflow_id"], "--json").json()
        (forged,) = host.execute("SELECT event FROM approval WHERE approver = 'mallory'").fetchone() or ("",)
        other = high_value(alone, tmp_path, "A-1024", "C-2024", "L1")
        said = alone("approve", other["workflow_id"], "--as", "tanaka", *APPROVE, digest_of(other))
        assert said.code == 0, said.err
        (genuine,) = host.execute("SELECT event FROM approval WHERE approver = 'tanaka'").fetchone() or ("",)
        for act in ("GRANT tools_owner TO host_owner", "ALTER ROLE tools_owner PASSWORD 'mine'"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                host.execute(act)
    tried = [attempt["error"]["code"] for call in after["calls"] for attempt in call["attempts"] if attempt["error"]]
    assert (after["state"], after["reason"]) == ("NEEDS_REVIEW", "approval_refused")
    assert "approval_refused" in tried
    version = record["approvals"][0]["version"]
    for approval, answer in ((forged, "approval_refused"), (genuine, "approval_refused"), (None, "approval_required")):
        assert called(evil, record, approval, None if approval is None else version) == answer
    for role in ("host_owner", "host_rt"):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(evil.dsn("tools", role))
    assert made(evil, "A-1003") == (0, 0)


def called(cli: Cli, record: dict[str, Any], approval: str | None, version: int | None) -> str:
    """Call the tool server by hand, with a token that the host's own key signs; gives the error's code."""
    key = SigningKey.from_jwk(read_signing_key(cli.home / "keys" / "signing.jwk"))
    issuer = json.loads((cli.home / "keys" / "issuers.json").read_text("utf-8"))[0]["issuer"]
    url = f"http://127.0.0.1:{cli.part('tool_server')['port']}/mcp"
    asked = Request(
        tool=TOOLS["create_return"], arguments=CREATE, jti=new_jti(), workflow_id=record["workflow_id"],
        tenant_id="acme-jp", subject="returns-desk@acme-jp", customer="C-2003", resource="A-1003",
        idempotency_key=f"forged:{new_id()}", attempt=1, requested_at=datetime(2026, 7, 30, 1, tzinfo=UTC),
        timeout_seconds=10, correlation={}, approval=approval, approved_version=version,
    )  # fmt: skip
    body, headers = request(
        "tools/call", {"name": "create_return", "arguments": CREATE}, token=Minter(key, issuer, url).call(asked)
    )
    text = httpx2.post(url, content=body, headers=headers, timeout=30).text
    found = json.loads(text[text.index("{") : text.rindex("}") + 1])["result"]
    return str(found["_meta"]["dev.kessai/error"]["code"]) if found.get("isError") else "ok"
