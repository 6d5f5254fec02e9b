"""A call sees its own tenant's and customer's order, and is what its token was minted for, to the last byte."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared_contracts.base import Contract
from shared_contracts.contract import Scope
from shared_contracts.digest import digest
from shared_contracts.task_token import Purpose, Use
from shared_contracts.tools import TOOLS
from tests.support.tool_orders import line, order
from tests.support.tool_prepared import ORDER, RETURN, effects_of, made_return, prepared
from tests.support.tool_shop import Shop, ask, caller, code_of, given, open_shop
from tool_server.call import Answer, Refused
from tool_server.dispatch import Dispatcher

ALL = [pytest.param(tool, id=tool.name) for tool in TOOLS.values()]
NOTHING_MADE = "SELECT (SELECT count(*) FROM calls.key) + (SELECT count(*) FROM calls.key_closed)"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return open_shop(
        tmp_path,
        order("A-1", line("L1", quantity=4)),
        order("A-2", line("L1"), customer_id="C-2"),
        order("A-3", line("L1"), tenant_id="other"),
    )


def wire(answer: Answer) -> bytes:
    assert isinstance(answer, Refused)
    return json.dumps([answer.code, answer.message, answer.details]).encode()


@pytest.mark.parametrize("tool", [tool for tool in TOOLS.values() if tool.resource_argument == "order_id"])
def test_an_order_of_nobody_of_another_and_of_another_tenant_answer_alike(shop: Shop, tool: Any) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        arguments = await prepared(tools, tool)
        foreign = ("A-2", "A-3", "A-nobody")
        return [await ask(tools, tool.name, arguments | {"order_id": name}, key=f"K{name}") for name in foreign]

    answers = shop.run(scene)
    assert {code_of(answer) for answer in answers} == {"not_found"}
    assert len({wire(answer) for answer in answers}) == 1
    assert sum(effects_of(shop, f"KA-{name}") for name in ("2", "3", "nobody")) == 0
    assert shop.one("SELECT count(*) FROM calls.key_closed") == 0


@pytest.mark.parametrize("tool", [tool for tool in TOOLS.values() if "return_id" in tool.arguments.model_fields])
def test_a_return_of_another_order_answers_like_one_that_does_not_exist(shop: Shop, tool: Any) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        arguments = await prepared(tools, tool)
        foreign = given(await ask(tools, "create_return", {"order_id": "A-2", **RETURN}, key="F", customer="C-2"))
        return [
            await ask(tools, tool.name, arguments | {"return_id": name}, key=f"K{name}")
            for name in (foreign["return_id"], "R-nobody")
        ]

    foreign, nobody = shop.run(scene)
    assert wire(foreign) == wire(nobody)


def test_a_key_of_another_customer_tells_nothing_and_answers_nothing(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        await made_return(tools, key="K")
        theirs = await ask(tools, "find_return", {"order_id": "A-2"}, key="K", customer="C-2")
        stolen = await ask(tools, "create_return", {**ORDER, **RETURN}, key="K", customer="C-2")
        return [theirs, stolen]

    theirs, stolen = shop.run(scene)
    assert (given(theirs)["found"], given(theirs)["record"]) == (False, None)
    assert code_of(stolen) == "not_found"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"tool": "get_return"}, "token_for_other_tool"),
        ({"tool": None}, "token_for_other_tool"),
        ({"resource": "A-2"}, "token_for_other_resource"),
        ({"resource": None}, "token_for_other_resource"),
        ({"arguments_sha256": "0" * 64}, "token_for_other_arguments"),
        ({"arguments_sha256": None}, "token_for_other_arguments"),
        ({"use": Use.PROBE}, "token_for_other_tool"),
        ({"authorization_details": ()}, "token_for_other_tool"),
        ({"idempotency_key": None}, "key_missing"),
        ({"attempt": None}, "key_missing"),
    ],
)
def test_a_token_for_another_call_is_refused_and_logged(shop: Shop, change: dict[str, Any], code: str) -> None:
    arguments = {**ORDER, **RETURN}

    async def scene(tools: Dispatcher) -> Answer:
        return await ask(tools, "create_return", arguments, **({"idempotency_key": "K"} | change))

    assert code_of(shop.run(scene)) == code
    assert shop.one(NOTHING_MADE) == 0
    logged = shop.rows("SELECT tool, outcome, arguments_sha256 FROM calls.log")
    assert logged == [("create_return", code, digest(arguments))]  # what was sent, whatever the token was for


def test_an_outside_hosts_reading_token_needs_no_digest_and_no_resource(shop: Shop) -> None:
    bare = {"tool": None, "resource": None, "arguments_sha256": None, "attempt": None, "use": Use.EXTERNAL}

    async def scene(tools: Dispatcher) -> list[Answer]:
        read = await ask(tools, "get_order", ORDER, **bare)
        foreign = await ask(tools, "get_order", {"order_id": "A-2"}, **bare)
        other_tool = await ask(tools, "get_order", ORDER, **(bare | {"tool": "get_return"}))
        return [read, foreign, other_tool]

    read, foreign, other_tool = shop.run(scene)
    assert given(read)["order_id"] == "A-1"
    assert code_of(foreign) == "not_found"
    assert code_of(other_tool) == "token_for_other_tool"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, None),
        ({"tool": None}, "token_for_other_tool"),
        ({"resource": None}, "token_for_other_resource"),
        ({"idempotency_key": None}, "key_missing"),
    ],
)
def test_an_outside_hosts_write_names_its_tool_its_resource_and_its_key(
    shop: Shop, change: dict[str, Any], code: str | None
) -> None:
    outside = {"arguments_sha256": None, "attempt": None, "use": Use.EXTERNAL, "idempotency_key": "K"}

    async def scene(tools: Dispatcher) -> Answer:
        return await ask(tools, "create_return", {**ORDER, **RETURN}, **(outside | change))

    answer = shop.run(scene)
    assert (None if code is None else code_of(answer)) == code
    assert effects_of(shop, "K") == (1 if code is None else 0)
    assert shop.rows("SELECT use, attempt FROM calls.log")[0][0] == "external"


@pytest.mark.parametrize("tool", ALL)
def test_a_tool_is_refused_without_its_own_scope(shop: Shop, tool: Any) -> None:
    others = " ".join(scope.value for scope in Scope if scope is not tool.scope)

    async def scene(tools: Dispatcher) -> list[Answer]:
        arguments = await prepared(tools, tool)
        return [await ask(tools, tool.name, arguments, key="K", scope=scope) for scope in (others, "")]

    assert [code_of(answer) for answer in shop.run(scene)] == ["scope_missing"] * 2


@pytest.mark.parametrize(
    "name", ["refund_create", "Get_order", "get_order ", "get_order\u200b", "", "x" * 300, "a\x00b", "\ud800"]
)
def test_a_name_that_is_no_tools_is_refused_and_logged(shop: Shop, name: str) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        return await tools.dispatch(caller("get_order", ORDER), name, ORDER)

    assert code_of(shop.run(scene)) == "unknown_tool"
    ((logged, outcome, version),) = shop.rows("SELECT tool, outcome, version FROM calls.log")
    assert (outcome, version) == ("unknown_tool", None)
    assert len(logged) <= 80


def test_an_update_tool_with_a_blank_is_nobodys_tool(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, "create_return", replace(TOOLS["create_return"], compensate_with=""))

    async def scene(tools: Dispatcher) -> Answer:
        return await ask(tools, "create_return", {**ORDER, **RETURN}, key="K")

    assert code_of(shop.run(scene)) == "unknown_tool"


BAD: list[tuple[str, Any]] = [
    ("quantity", 0), ("quantity", -1), ("quantity", 2.0), ("quantity", 2.5), ("quantity", True), ("quantity", "2"),
    ("quantity", 2_147_483_648), ("quantity", 9_223_372_036_854_775_808), ("quantity", 10**30), ("quantity", 1e400),
    ("quantity", None), ("quantity", "٢"), ("quantity", "２"), ("quantity", "1.234,56"), ("quantity", {"a": 1}),
    ("line_id", ""), ("line_id", "L1\x00"), ("line_id", "L1\n"), ("line_id", "x" * 81), ("line_id", 1),
    ("line_id", "\ud800"), ("line_id", "L1\\u0000"), ("line_id", "L 1"), ("line_id", "' OR 1=1--"),
]  # fmt: skip


@pytest.mark.parametrize(("member", "value"), BAD, ids=lambda part: repr(part)[:24])
def test_a_line_that_is_not_exactly_a_line_is_refused_before_sql(shop: Shop, member: str, value: Any) -> None:
    lines = [{"line_id": "L1", "quantity": 1} | {member: value}]
    assert refused(shop, {**ORDER, **RETURN, "lines": lines}) == "invalid_arguments"


@pytest.mark.parametrize(
    "change",
    [
        {"lines": []},
        {"lines": [{"line_id": "L1", "quantity": 1}] * 2},
        {"lines": [{"line_id": f"L{at}", "quantity": 1} for at in range(101)]},
        {"lines": '[{"line_id": "L1", "quantity": 1}]'},
        {"lines": {"line_id": "L1", "quantity": 1}},
        {"lines": [{"line_id": "L1", "quantity": 1, "force": True}]},
        {"reason": "because"},
        {"reason": None},
        {"amount": 100},
        {"approved": True},
        {"order_id": "A-1\x00"},
        {"\x00": 1},
        {"order_id": ["A-1"]},
        {"note": {"deep": [[[[[1]]]]]}},
    ],
    ids=lambda change: repr(change)[:40],
)
def test_arguments_that_are_not_exactly_the_tools_are_refused_before_sql(shop: Shop, change: dict[str, Any]) -> None:
    assert refused(shop, {**ORDER, **RETURN, **change}) == "invalid_arguments"


@pytest.mark.parametrize("arguments", [None, {}])
def test_no_arguments_are_refused_like_missing_ones(shop: Shop, arguments: dict[str, Any] | None) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        return await tools.dispatch(caller("get_order", {}), "get_order", arguments)

    answer = shop.run(scene)
    assert code_of(answer) == "invalid_arguments"
    assert "order_id" in answer.message


def refused(shop: Shop, arguments: dict[str, Any]) -> str:
    """Ask with a token that would fit, were the arguments good; nothing may be made and the refusal is logged."""

    async def scene(tools: Dispatcher) -> Answer:
        token = caller("create_return", {**ORDER, **RETURN}, idempotency_key="K")
        return await tools.dispatch(token, "create_return", arguments)

    answer = shop.run(scene)
    assert shop.one(NOTHING_MADE) == 0
    assert shop.rows("SELECT outcome FROM calls.log") == [("invalid_arguments",)]
    assert len(answer.message) <= 300
    return code_of(answer)


def test_identifiers_that_look_like_other_values_stay_strings(tmp_path: Path) -> None:
    names = ["00123", "1e5", "123456789012345678901", "true", "null"]
    shop = open_shop(tmp_path, *(order(name) for name in names))

    async def scene(tools: Dispatcher) -> list[str]:
        return [given(await ask(tools, "get_order", {"order_id": name}))["order_id"] for name in names]

    assert shop.run(scene) == names
    assert [name for (name,) in shop.rows("SELECT resource FROM calls.log ORDER BY seq")] == names


def test_every_argument_model_is_closed() -> None:
    assert all(
        issubclass(tool.arguments, Contract) and tool.input_schema["additionalProperties"] is False
        for tool in TOOLS.values()
    )


def test_a_removed_tool_is_refused_from_its_next_call_on_and_comes_back(shop: Shop) -> None:
    switch = "INSERT INTO calls.tool_switch (tool, enabled, actor) VALUES ('create_return', %s, 'operator')"

    async def scene(tools: Dispatcher) -> None:
        shop.rows(switch, False)
        assert await tools.disabled() == {"create_return"}
        assert code_of(await ask(tools, "create_return", {**ORDER, **RETURN}, key="K")) == "tool_disabled"
        assert (
            code_of(await ask(tools, "create_return", {**ORDER, "lines": [], "reason": "other"}, key="K"))
            == "tool_disabled"
        )
        given(await ask(tools, "get_order", ORDER))
        shop.rows(switch, True)
        assert await tools.disabled() == frozenset()
        given(await ask(tools, "create_return", {**ORDER, **RETURN}, key="K"))

    shop.run(scene)


@pytest.mark.parametrize("tool", ALL)
@pytest.mark.parametrize("kind", ["kid", "jti"])
def test_a_revoked_key_or_token_is_refused_by_every_tool(shop: Shop, tool: Any, kind: str) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        arguments = await prepared(tools, tool)
        shop.rows("INSERT INTO calls.revocation (kind, value, actor) VALUES (%s, 'gone', 'operator')", kind)
        return await ask(tools, tool.name, arguments, key="K", **{kind: "gone"})

    assert code_of(shop.run(scene)) == "token_revoked"
    assert effects_of(shop, "K") == 0
    assert shop.one("SELECT count(*) FROM calls.key_closed") == 0


def test_every_call_has_its_row_with_all_that_names_it(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> None:
        await ask(tools, "create_return", {**ORDER, **RETURN}, key="K", jti="the-jti", attempt=1)
        await ask(tools, "find_return", ORDER, key="K", jti="look-up", purpose=Purpose.RECONCILIATION)

    shop.run(scene)
    made, looked_up = shop.rows(
        "SELECT iss, sub, client_id, kid, jti, use, purpose, tenant_id, task_id, tool, version, resource,"
        " arguments_sha256 IS NOT NULL, idempotency_key, attempt, outcome, duration_us > 0 FROM calls.log ORDER BY seq"
    )
    assert made == (
        "https://host.example", "desk@example.com", "host", "k-1", "the-jti", "call", None, "acme", "W-1",
        "create_return", "1", "A-1", True, "K", 1, "ok", True,
    )  # fmt: skip
    assert (looked_up[4], looked_up[6], looked_up[9]) == ("look-up", "reconciliation", "find_return")
