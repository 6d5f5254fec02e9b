"""A new key while everything works, and a stolen one: what an operator types, on a stack with a worker."""

from __future__ import annotations

import httpx2
import pytest

from tests.support.cli import Cli
from tests.support.records import fits
from tests.support.server import request

pytestmark = pytest.mark.xdist_group("cli")


def keys(stack: Cli) -> dict[str, str]:
    said = stack("keys", "list", "--json")
    assert said.code == 0, said.err
    page = fits(said.json(), "command.keys_list.json")
    return {key["kid"]: key["state"] for key in page["keys"]}


def signing(stack: Cli) -> str:
    (kid,) = (kid for kid, state in keys(stack).items() if state == "signing")
    return kid


def token(stack: Cli) -> str:
    said = stack("token", "issue", "--customer", "C-2001")
    assert said.code == 0, said.err
    return said.out.strip()


def status(stack: Cli, bearer: str) -> int:
    """Of a call of an outside host."""
    body, headers = request("tools/call", {"name": "get_order", "arguments": {"order_id": "A-1001"}}, token=bearer)
    url = f"http://127.0.0.1:{stack.part('tool_server')['port']}/mcp"
    return httpx2.post(url, content=body, headers=headers, timeout=30).status_code


def test_keys_follow_one_another_while_the_stack_works_and_a_revoked_one_is_refused_at_once(stack: Cli):
    first, before = signing(stack), token(stack)
    said = stack("keys", "rotate")
    assert (said.code, "signs from now on" in said.err) == (0, True), said.err
    second, after = signing(stack), token(stack)
    assert (second != first, keys(stack)[first]) == (True, "old")
    assert [status(stack, one) for one in (before, after)] == [200, 200]

    assert stack("keys", "revoke", second).code == 0
    assert status(stack, after) == 401
    third = signing(stack)
    assert third not in {first, second}
    assert second not in keys(stack)
    assert [status(stack, one) for one in (before, token(stack))] == [200, 200]
    with stack.owner("tools") as owner:
        assert owner.execute("SELECT count(*) FROM calls.revocation WHERE value = %s", (second,)).fetchone() == (1,)

    worker = stack.part("worker")["pid"]
    assert stack("doctor").code == 0
    assert stack.part("worker")["pid"] == worker
    nobody = stack("keys", "revoke", "nobody")
    assert (nobody.code, third in nobody.err) == (2, True)
    assert stack("keys", "rotate", "--published").code == 2
