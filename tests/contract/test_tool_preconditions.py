"""What a row says of its targets and preconditions is what the server makes sure of: one scene for each of them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from shared_contracts.contract import AUDIT_ITEMS, Tool
from shared_contracts.tools import TOOLS
from tests.support.tool_orders import line, order, recipient
from tests.support.tool_prepared import ORDER, RETURN, effects_of, made_return, owner_of, prepared, with_demo
from tests.support.tool_shop import Shop, ask, code_of, open_shop
from tool_server.call import Answer, Answered
from tool_server.dispatch import Dispatcher

EVERY_TOOL = [pytest.param(tool, id=tool.name) for tool in TOOLS.values()]
Scene: TypeAlias = Callable[[Shop, Dispatcher, Tool], Awaitable[Answer]]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    late = line("L1", delivered_at="2026-05-01T10:00:00+09:00")
    made = open_shop(
        tmp_path, order("A-1", line("L1", quantity=4)), order("A-late", late), recipients=[recipient("C-1")]
    )
    with_demo(made)
    return made


async def _of_another_customer(shop: Shop, tools: Dispatcher, tool: Tool) -> Answer:
    return await ask(tools, tool.name, await prepared(tools, tool), key="K", **{**owner_of(tool), "customer": "C-2"})


async def _of_another_tenant(shop: Shop, tools: Dispatcher, tool: Tool) -> Answer:
    return await ask(tools, tool.name, await prepared(tools, tool), key="K", **{**owner_of(tool), "tenant": "other"})


async def _too_late(shop: Shop, tools: Dispatcher, tool: Tool) -> Answer:
    return await ask(tools, tool.name, {"order_id": "A-late", **RETURN}, key="K")


async def _too_many(shop: Shop, tools: Dispatcher, tool: Tool) -> Answer:
    return await ask(tools, tool.name, {**ORDER, **RETURN, "lines": [{"line_id": "L1", "quantity": 5}]}, key="K")


async def _label_used(shop: Shop, tools: Dispatcher, tool: Tool) -> Answer:
    number = await made_return(tools)
    shop.rows(
        "INSERT INTO returns.links (tenant_id, return_id, kind, reference) VALUES ('acme', %s, 'label_used', 'label')",
        number,
    )
    return await ask(tools, tool.name, {**ORDER, "return_id": number}, key="K")


async def _nobody_to_write_to(shop: Shop, tools: Dispatcher, tool: Tool) -> Answer:
    arguments = await prepared(tools, tool)
    shop.rows("DELETE FROM notices.recipients")
    return await ask(tools, tool.name, arguments, key="K")


# What a row may state · how it is broken · what the server answers then
PRECONDITIONS: dict[str, tuple[Scene, str]] = {
    "rules_allow_the_return": (_too_late, "not_eligible"),
    "units_are_left": (_too_many, "quantity_gone"),
    "label_is_unused": (_label_used, "label_used"),
    "recipient_is_known": (_nobody_to_write_to, "notice_rejected"),
}
WHOSE = re.compile(r"\w+_is_the_[a-z]+s")  # the same for every business, so one of a new business needs no scene
TARGET = re.compile(r"an? [a-z ]+ of the token's own tenant and [a-z]+")
STATED = [pytest.param(tool, name, id=f"{tool.name}-{name}") for tool in TOOLS.values() for name in tool.preconditions]


def refused(answer: Answer, tool: Tool, code: str) -> bool:
    """A look-up is no effect and tells nothing: where it finds nothing it says so."""
    if tool.looks_up and isinstance(answer, Answered):
        return answer.result["found"] is False and answer.result["record"] is None
    return code_of(answer) == code


@pytest.mark.parametrize(("tool", "name"), STATED)
def test_a_precondition_that_a_row_states_is_refused_where_it_does_not_hold(shop: Shop, tool: Tool, name: str) -> None:
    scene, code = (_of_another_customer, "not_found") if WHOSE.fullmatch(name) else PRECONDITIONS[name]
    assert refused(shop.run(lambda tools: scene(shop, tools, tool)), tool, code)
    assert effects_of(shop, "K") == 0


@pytest.mark.parametrize("tool", EVERY_TOOL)
def test_a_target_that_a_row_does_not_permit_is_as_if_it_were_not_there(shop: Shop, tool: Tool) -> None:
    assert TARGET.fullmatch(tool.targets)
    for scene in (_of_another_tenant, _of_another_customer):
        assert refused(shop.run(lambda tools, scene=scene: scene(shop, tools, tool)), tool, "not_found")
    assert effects_of(shop, "K") == 0


@pytest.mark.parametrize("tool", EVERY_TOOL)
def test_each_item_that_a_row_says_is_recorded_stands_in_the_log_of_its_call(shop: Shop, tool: Tool) -> None:
    async def scene(tools: Dispatcher) -> Any:
        return await ask(tools, tool.name, await prepared(tools, tool), key="K", **owner_of(tool))

    shop.run(scene)
    columns = {name for (name,) in shop.rows(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'calls' AND table_name = 'log'"
    )}  # fmt: skip
    assert set(tool.audit_items) == set(AUDIT_ITEMS) <= columns
    ((logged,),) = shop.rows("SELECT to_jsonb(l) FROM calls.log l WHERE tool = %s ORDER BY seq DESC LIMIT 1", tool.name)
    assert [item for item in tool.audit_items if logged[item] is None] == []
