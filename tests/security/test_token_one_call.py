"""One token, one call, on the whole server: real HTTP, real tokens, a real database behind them."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from mcp_types import Tool as ListedTool
from mcp_types import ToolAnnotations

from shared_contracts.contract import Tool
from shared_contracts.digest import digest
from shared_contracts.errors import ERROR_META
from tests.support.server import LEGACY, MODERN, Server, message_of, request, running, wait_until
from tests.support.tokens import DROP
from tests.support.tool_orders import ASKED_AT, line, order
from tests.support.tool_shop import HOLD_A1, Shop, open_shop
from tool_server.dispatch import Dispatcher
from tool_server.offer import listed
from tool_server.store.switches import revoke

LINES = {"lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind"}
ORDER = {"order_id": "A-1"}
ERAS = pytest.mark.parametrize("era", [MODERN, LEGACY])


@dataclass(frozen=True)
class Whole:
    """The tool server as it is deployed, over a shop."""

    server: Server
    shop: Shop

    def token(
        self, name: str, arguments: dict[str, Any], *, details: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        bound = {
            "tool": name,
            "resource": arguments["order_id"],
            "arguments_sha256": digest(arguments),
            "requested_at": ASKED_AT.isoformat(),
        }
        return self.server.issuer.token(
            **{"tenant_id": "acme", **claims}, details={**bound, **({} if details is None else details)}
        )

    def ask(self, name: str, arguments: dict[str, Any], token: str | None = None, era: str = MODERN) -> dict[str, Any]:
        """The result, or the error's body."""
        given = self.token(name, arguments) if token is None else token
        result = message_of(self.server.call(name, arguments, token=given, era=era))["result"]
        if result.get("isError"):
            assert "structuredContent" not in result
            return {"error": result["_meta"][ERROR_META]}
        return dict(result["structuredContent"])

    def returns(self) -> int:
        return int(self.shop.one("SELECT count(*) FROM returns.returns"))


@contextmanager
def whole(directory: Path, *more: dict[str, Any]) -> Iterator[Whole]:
    shop = open_shop(
        directory,
        order("A-1", line(quantity=50)),
        order("A-2"),
        order("B-1", customer_id="C-2"),
        order("T-1", tenant_id="other"),
        *more,
    )
    with running(Dispatcher(shop.settings), directory / "keys") as server:
        yield Whole(server, shop)


@ERAS
def test_the_token_of_one_order_reads_no_other(tmp_path, era):
    with whole(tmp_path) as it:
        assert it.ask("get_order", {"order_id": "A-1"}, era=era)["order_id"] == "A-1"
        token = it.token("get_order", {"order_id": "A-1"})
        for other in ("A-2", "B-1", "T-1", "no-such"):
            error = it.ask("get_order", {"order_id": other}, token, era)["error"]
            assert error["code"] == "token_for_other_resource"


@ERAS
def test_what_is_another_customers_or_tenants_answers_like_what_does_not_exist(tmp_path, era):
    with whole(tmp_path) as it:
        for name, more in (("get_order", {}), ("check_return_policy", LINES), ("create_return", LINES)):
            answers = [it.ask(name, {"order_id": other, **more}, era=era) for other in ("B-1", "T-1", "no-such")]
            assert answers[0]["error"]["code"] == "not_found"
            assert all(answer == answers[0] for answer in answers)
        assert it.returns() == 0


def test_undeclared_and_coerced_arguments_are_refused_whatever_the_token_says(tmp_path):
    wrong: list[dict[str, Any]] = [
        {**LINES, "force": True},
        {**LINES, "approved": True},
        {**LINES, "amount": 1},
        {"lines": [{"line_id": "L1", "quantitiy": 1}], "reason": "other"},
        {"lines": [{"line_id": "L1", "quantity": "1"}], "reason": "other"},
        {"lines": [{"line_id": "L1", "quantity": True}], "reason": "other"},
        {"lines": '[{"line_id": "L1", "quantity": 1}]', "reason": "other"},
        {"lines": [{"line_id": "L1", "quantity": 1, "extra": {}}], "reason": "other"},
    ]
    with whole(tmp_path) as it:
        for more in wrong:
            assert it.ask("create_return", {"order_id": "A-1", **more})["error"]["code"] == "invalid_arguments"
        assert it.returns() == 0


def test_of_fifty_writes_at_once_with_one_single_use_token_one_acts(tmp_path):
    """Fifty keys, one `jti`: its use is recorded in the effect's own transaction."""
    arguments = {"order_id": "A-1", **LINES}
    with whole(tmp_path) as it:
        tokens = [
            it.token("create_return", arguments, jti="one", details={"idempotency_key": f"key-{n}"}) for n in range(50)
        ]
        with ThreadPoolExecutor(25) as pool:
            answers = list(pool.map(lambda token: it.ask("create_return", arguments, token), tokens))
        codes = Counter(answer["error"]["code"] if "error" in answer else "created" for answer in answers)
        assert codes["created"] == 1
        assert set(codes) <= {"created", "token_used", "in_progress"}
        assert it.returns() == 1


@ERAS
def test_a_write_whose_caller_gives_up_cancels_and_leaves_is_made_once_and_found_by_its_key(tmp_path, era):
    arguments, key = {"order_id": "A-1", **LINES}, {"idempotency_key": "k"}
    with whole(tmp_path) as it:
        token = it.token("create_return", arguments, details=key)
        call = {"name": "create_return", "arguments": arguments}
        body, headers = request("tools/call", call, era=era, token=token, rpc_id=7)
        lines = {"Host": f"127.0.0.1:{it.server.port}", "Content-Length": str(len(body)), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        with psycopg.connect(it.shop.database.admin) as holder:
            holder.execute(HOLD_A1)
            with socket.create_connection(("127.0.0.1", it.server.port), timeout=10) as leaving:
                leaving.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n{body}".encode())
                wait_until(lambda: it.shop.one("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0)
            cancelled = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
            said = it.server.post(cancelled, {**request("notifications/cancelled", era=LEGACY, token=token)[1]})
            left = it.server.client.delete(it.server.url, headers={"Authorization": f"Bearer {token}"})
            assert (said.status_code, left.status_code, it.returns()) == (202, 405, 0)
        asked = it.token("find_return", ORDER, details={**key, "attempt": 1})
        found = it.ask("find_return", ORDER, asked, era)
        again = it.ask(
            "create_return", arguments, it.token("create_return", arguments, details={**key, "attempt": 2}), era
        )
        assert found["record"]["return_id"] == again["return_id"]
        assert it.returns() == 1


def test_a_token_that_was_used_is_not_known_to_have_failed(tmp_path):
    arguments = {"order_id": "A-1", **LINES}
    with whole(tmp_path) as it:
        first, second = (
            it.token("create_return", arguments, jti="one", details={"idempotency_key": key}) for key in ("k1", "k2")
        )
        assert it.ask("create_return", arguments, first)["status"] == "created"
        error = it.ask("create_return", arguments, second)["error"]
        assert (error["code"], error["outcome_known"], error["retryable"]) == ("token_used", False, False)


@ERAS
def test_any_replica_answers_alike_and_what_was_done_or_used_at_one_is_so_at_the_other(tmp_path, era):
    """Nothing of a call is kept in a server: two have the database and the issuers' file in common."""
    arguments = {"order_id": "A-1", **LINES}
    with whole(tmp_path) as it:
        one, same = it.server, {"resource": it.server.issuer.resource, "issuers_file": it.server.issuer.issuers_file}
        with running(Dispatcher(it.shop.settings), tmp_path / "two", **same) as two:

            def asked(server: Server, name: str, given: dict[str, Any], token: str) -> dict[str, Any]:
                host = {"Host": f"127.0.0.1:{one.port}"}  # the balancer's one name
                return message_of(server.call(name, given, token=token, era=era, headers=host))["result"]

            reads = [asked(server, "get_order", ORDER, it.token("get_order", ORDER)) for server in (one, two, one, two)]
            first = it.token("create_return", arguments, details={"idempotency_key": "k", "attempt": 1})
            again = it.token("create_return", arguments, details={"idempotency_key": "k", "attempt": 2})
            made, used, repeated = (
                asked(server, "create_return", arguments, token)
                for server, token in ((one, first), (two, first), (two, again))
            )
        assert all(read == reads[0] for read in reads)
        assert reads[0]["structuredContent"]["order_id"] == "A-1"
        assert used["_meta"][ERROR_META]["code"] == "token_used"
        assert repeated["structuredContent"]["return_id"] == made["structuredContent"]["return_id"]
        assert it.returns() == 1


@pytest.mark.parametrize("kind", ["kid", "jti"])
def test_a_kept_token_that_is_revoked_between_two_uses_is_refused_at_the_second(tmp_path, kind):
    with whole(tmp_path) as it:
        order_a, token = {"order_id": "A-1"}, it.server.issuer.external(tenant_id="acme", jti="kept")
        assert it.ask("get_order", order_a, token)["order_id"] == "A-1"
        value = {"kid": it.server.issuer.kid, "jti": "kept"}[kind]
        assert asyncio.run(revoke(it.shop.database.owner, kind, value, "operator"))
        assert it.ask("get_order", order_a, token)["error"]["code"] == "token_revoked"


@ERAS
def test_an_outside_host_reads_for_its_customer_and_writes_by_name_alone(tmp_path, era):
    arguments = {"order_id": "A-1", **LINES}
    with whole(tmp_path) as it:
        external = it.server.issuer.external
        read = external(tenant_id="acme")
        assert it.ask("get_order", {"order_id": "A-1"}, read, era)["order_id"] == "A-1"
        assert it.ask("get_order", {"order_id": "B-1"}, read, era)["error"]["code"] == "not_found"
        assert it.server.call("create_return", arguments, token=read, era=era).status_code == 403
        bound = {"tool": "create_return", "resource": "A-1", "idempotency_key": "outside-1"}
        write = external(tenant_id="acme", scope="returns:write", details=bound)
        other = it.ask("create_return", {**arguments, "order_id": "A-2"}, write, era)
        assert other["error"]["code"] == "token_for_other_resource"
        assert it.returns() == 0


def test_every_call_refused_or_answered_is_in_the_log_with_its_token(tmp_path):
    with whole(tmp_path) as it:
        order_a = {"order_id": "A-1"}
        it.ask("get_order", order_a, it.token("get_order", order_a, jti="answered"))
        it.ask("get_order", {"order_id": "A-2"}, it.token("get_order", order_a, jti="bound"))
        forbidden = it.token("get_order", order_a, jti="forbidden", scope="returns:read")
        assert it.server.call("get_order", order_a, token=forbidden).status_code == 403
        it.server.call("no_such_tool", order_a, token=it.token("get_order", order_a, jti="unknown"))
        rows = dict(it.shop.rows("SELECT jti, outcome FROM calls.log"))
    assert rows == {
        "answered": "ok",
        "bound": "token_for_other_resource",
        "forbidden": "scope_missing",
        "unknown": "unknown_tool",
    }


def test_the_whole_server_says_that_it_is_ready(tmp_path):
    with whole(tmp_path) as it:
        ready = it.server.client.get(f"{it.server.origin}/readyz")
        assert (ready.status_code, ready.json()) == (200, {"ready": True, "reason": None, "record": "not_configured"})


def inverted(tool: Tool) -> ListedTool:
    """The tool as it is listed, with every hint the wrong way round."""
    shown = listed(tool)
    assert shown.annotations is not None
    hints = {name: not hint for name, hint in shown.annotations.model_dump(exclude={"title"}).items()}
    return shown.model_copy(update={"annotations": ToolAnnotations(**hints)})


@ERAS
def test_annotations_decide_nothing_on_the_server(tmp_path, monkeypatch, era):
    monkeypatch.setattr("tool_server.mcp_server.listed", inverted)
    arguments = {"order_id": "A-1", **LINES}
    with whole(tmp_path) as it:
        tools = message_of(it.server.rpc("tools/list", token=it.server.issuer.probe(), era=era))["result"]["tools"]
        hints = {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in tools}
        assert (hints["create_return"], hints["get_order"]) == (True, False)
        weak = it.token("create_return", arguments, scope="returns:read")
        assert it.server.call("create_return", arguments, token=weak, era=era).status_code == 403
        bare = it.token("create_return", arguments, details={"idempotency_key": DROP})
        keyless = it.server.call("create_return", arguments, token=bare, era=era)
        assert (keyless.status_code, keyless.json()["error"]["data"]["details"]) == (401, {"reason": "details"})
        assert it.returns() == 0
        once = it.token("create_return", arguments)
        assert it.ask("create_return", arguments, once, era)["status"] == "created"
        assert it.ask("create_return", arguments, once, era)["error"]["code"] == "token_used"
        twice = it.token("get_order", ORDER)
        assert [it.ask("get_order", ORDER, twice, era)["order_id"] for _ in range(2)] == ["A-1", "A-1"]
        assert it.returns() == 1


# a bell, ANSI's colour and C1's own introducer, DEL, letters turned round, isolated, of no width, and tags
UNSEEN = "\x07 \x1b[31m \x9b2J \x7f \u202e \u2066 \u200b \u2028 \U000e0041"


@ERAS
def test_what_is_not_to_be_seen_is_an_escape_in_the_text_of_a_result_and_itself_in_its_structured_part(tmp_path, era):
    """Whoever shows the text is moved and painted by nothing; whoever computes with the record has it to the letter."""
    line_of = line(name=f"湯のみ{UNSEEN}")
    with whole(tmp_path, order("U-1", line_of, note=UNSEEN)) as it:
        given = {"order_id": "U-1"}
        response = it.server.call("get_order", given, token=it.token("get_order", given), era=era)
        body = response.content.split(b"data: ")[-1]  # one event, where it comes as one
        result = json.loads(body)["result"]
    text = result["content"][0]["text"]
    assert text.isprintable()
    assert "湯のみ" in text
    assert json.loads(text) == result["structuredContent"]
    assert result["structuredContent"]["note"] == UNSEEN
    assert result["structuredContent"]["lines"][0]["name"] == f"湯のみ{UNSEEN}"
    assert not any(byte < 0x20 and byte not in b"\r\n" for byte in response.content)


@ERAS
def test_what_a_refusal_quotes_of_a_call_is_an_escape_in_its_text_too(tmp_path, era):
    given = {"order_id": f"A-1{UNSEEN}"}
    with whole(tmp_path) as it:
        response = it.server.call("get_order", given, token=it.token("get_order", ORDER), era=era)
    result = json.loads(response.content.split(b"data: ")[-1])["result"]
    text = result["content"][0]["text"]
    assert text.isprintable()
    assert json.loads(text) == {"error": result["_meta"][ERROR_META]}
    assert "\u202e" in result["_meta"][ERROR_META]["message"]  # it is quoted, so that there was something to escape
    assert not any(byte < 0x20 and byte not in b"\r\n" for byte in response.content)
