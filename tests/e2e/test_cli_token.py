"""A token for an outside host: in the record before it exists, good for what it was issued for and for nothing else."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import jwt
import pytest

from shared_contracts.task_token import CallDetails, TaskClaims
from tests.support.cli import Cli
from tests.support.server import request

pytestmark = pytest.mark.xdist_group("cli")
MINE = ("token", "issue", "--customer", "C-2001")


def issued(stack: Cli, *more: str) -> tuple[str, TaskClaims]:
    said = stack(*MINE, *more)
    assert said.code == 0, said.err
    (token,) = said.out.splitlines()
    assert token not in said.err
    claims = TaskClaims.model_validate_json(json.dumps(jwt.decode(token, options={"verify_signature": False})))
    assert claims.jti in said.err
    return token, claims


def details(claims: TaskClaims) -> CallDetails:
    (one,) = claims.authorization_details
    return one


def task(stack: Cli, jti: str) -> dict[str, Any]:
    with stack.owner("host") as owner:
        row = owner.execute("SELECT to_jsonb(t) FROM external_task t WHERE jti = %s", (jti,)).fetchone()
        audit = owner.execute("SELECT count(*) FROM audit WHERE details ->> 'jti' = %s", (jti,)).fetchone()
    assert row is not None
    assert audit == (1,)
    return dict(row[0])


def call(stack: Cli, token: str, tool: str, **arguments: Any) -> tuple[int, str]:
    """Call as an outside host does: the status, and the error's code or `ok`."""
    body, headers = request("tools/call", {"name": tool, "arguments": arguments}, token=token)
    url = f"http://127.0.0.1:{stack.part('tool_server')['port']}/mcp"
    answer = httpx2.post(url, content=body, headers=headers, timeout=30)
    if answer.status_code != 200:
        return answer.status_code, answer.headers.get("www-authenticate", "")
    text = answer.text
    found = json.loads(text[text.index("{") : text.rindex("}") + 1])["result"]
    return 200, found["_meta"]["dev.kessai/error"]["code"] if found.get("isError") else "ok"


def test_a_token_reads_for_its_customer_and_is_known_by_its_id_before_and_after(stack: Cli):
    token, claims = issued(stack, "--as", "mori")
    known = task(stack, claims.jti)
    assert (known["task_id"], known["customer"], known["tool"]) == (claims.task_id, "C-2001", None)
    assert (known["issued_by"], known["scopes"]) == ("mori", sorted(claims.scope.split()))
    assert all(scope.endswith(":read") for scope in claims.scope.split())
    assert (claims.use, claims.exp - claims.iat, claims.tenant_id) == ("external", 900, "acme-jp")
    assert call(stack, token, "get_order", order_id="A-1001") == (200, "ok")
    assert call(stack, token, "get_order", order_id="A-1003") == (200, "not_found")  # another customer's
    status, challenge = call(stack, token, "create_return", order_id="A-1001", lines=[], reason="other")
    assert (status, "insufficient_scope" in challenge) == (403, True)
    with stack.owner("tools") as tools:
        logged = tools.execute("SELECT count(*) FROM calls.log WHERE jti = %s AND use = 'external'", (claims.jti,))
        assert (logged.fetchone() or (0,))[0] >= 2


def test_a_token_for_one_order_reads_no_other(stack: Cli):
    token, claims = issued(stack, "--resource", "A-1001", "--scope", "orders:read", "--minutes", "1")
    assert (claims.scope, claims.exp - claims.iat, details(claims).resource) == ("orders:read", 60, "A-1001")
    assert call(stack, token, "get_order", order_id="A-1001") == (200, "ok")
    assert call(stack, token, "get_order", order_id="A-1002") == (200, "token_for_other_resource")


def test_a_write_is_allowed_by_name_on_one_order_under_one_key(stack: Cli):
    token, claims = issued(stack, "--allow-write", "create_return", "--resource", "A-1001")
    one = details(claims)
    assert (claims.scope, one.tool, one.resource) == ("returns:write", "create_return", "A-1001")
    assert (
        one.idempotency_key == task(stack, claims.jti)["idempotency_key"] == f"external:{claims.task_id}:create_return"
    )
    assert one.arguments_sha256 is None
    assert call(stack, token, "cancel_return", order_id="A-1001", return_id="R-1")[1] != "ok"
    assert call(stack, token, "get_order", order_id="A-1001")[0] == 403


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (("--allow-write", "create_return"), "--resource"),
        (("--allow-write", "get_order", "--resource", "A-1"), "no write"),
        (("--allow-write", "issue_refund", "--resource", "A-1"), "no write"),
        (("--allow-write", "create_return", "--resource", "A-1", "--scope", "orders:read"), "--scope"),
        (
            ("--allow-write", "create_return", "--resource", "A-1", "--principal", "returns-reader@acme-jp"),
            "may not call",
        ),
        (("--scope", "returns:write"), "--allow-write"),
        (("--scope", "admin"), "may read"),
        (("--principal", "nobody"), "returns-desk@acme-jp"),
        (("--minutes", "16"), "--minutes"),
        (("--minutes", "0"), "--minutes"),
        (("--customer", ""), "customer"),
        (("--resource", "A 1; DROP"), "resource"),
    ],
    ids=str,
)
def test_what_may_not_be_issued_is_refused_and_leaves_nothing_behind(stack: Cli, wanted: tuple[str, ...], named: str):
    with stack.owner("host") as owner:
        before = owner.execute("SELECT count(*) FROM external_task").fetchone()
        said = stack(*MINE, *wanted)
        after = owner.execute("SELECT count(*) FROM external_task").fetchone()
    assert (said.code, said.out) == (2, "")
    assert named in said.err
    assert before == after
