"""The contract tests hold over the real tool server, and one planted defect makes the item fail that is about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from host.domain.outcome import Outcome, Unknown
from host.engine.parts import Request, Tools, new_jti
from host.evaluation.contract_shop import MADE_BY, arguments
from shared_contracts.tools import TOOLS
from tests.support.contract_tests import (
    AsksForNoScope,
    FindsNothing,
    MakesAnew,
    TakesUndeclared,
    failing,
    found,
    place,
)
from tool_server.dispatch import Dispatcher

WRITES = [tool.name for tool in TOOLS.values() if tool.writes]


@pytest.mark.parametrize("name", WRITES)
def test_every_item_of_an_update_tool_holds_over_the_real_tool_server(tmp_path: Path, name: str) -> None:
    with place(tmp_path) as where:
        seen = found(where, name)
    assert failing(seen) == ([], []), seen
    assert seen.passed
    assert all(one.said for one in seen.trials)
    assert all(one.said for one in seen.items)


@pytest.mark.parametrize(
    ("server", "test", "item"),
    [
        (TakesUndeclared, "extra_field", 3),
        (MakesAnew, "duplicate_execution", 5),
        (FindsNothing, "ambiguous_failure", 6),
    ],
)
def test_a_tool_server_with_one_defect_fails_the_item_that_is_about_it_and_no_other(
    tmp_path: Path, server: type[Dispatcher], test: str, item: int
) -> None:
    with place(tmp_path, server) as where:
        seen = found(where, "create_return")
    assert failing(seen) == ([test], [item, 9]), seen
    assert not seen.passed


def test_a_tool_server_that_asks_for_no_scope_fails_the_items_about_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tool_server.app.Verifier", AsksForNoScope)
    with place(tmp_path) as where:
        seen = found(where, "create_return")
    assert failing(seen) == (["permission_violation"], [4, 9]), seen


def test_a_contract_that_waits_for_what_was_rejected_fails_the_post_condition_alone(tmp_path: Path) -> None:
    tool = replace(TOOLS["create_return"], pending_values=("rejected",))
    with place(tmp_path) as where:
        seen = found(where, tool.name, {**TOOLS, tool.name: tool})
    assert failing(seen) == (["post_condition"], [7, 9]), seen


@dataclass
class SendsAgain:
    """A way out that repeats a write of which nobody knows what it has done."""

    inner: Tools

    async def turn(self, tenant_id: str, principal: str) -> None:
        await self.inner.turn(tenant_id, principal)

    def available(self) -> frozenset[str]:
        return self.inner.available()

    async def call(self, request: Request) -> Outcome:
        outcome = await self.inner.call(request)
        again = isinstance(outcome, Unknown) and request.tool.writes
        return await self.inner.call(replace(request, jti=new_jti())) if again else outcome


def test_a_host_that_sends_again_what_nobody_knows_fails_the_items_about_doubt(tmp_path: Path) -> None:
    with place(tmp_path) as where:
        seen = found(where, "create_return", around=SendsAgain)
    assert failing(seen) == (["ambiguous_failure"], [6, 8, 9]), seen


def test_every_argument_of_an_update_tool_has_a_value() -> None:
    made = dict.fromkeys(MADE_BY, "R-1")
    for name in WRITES:
        assert set(arguments(TOOLS[name], "CT-1", made)) == set(TOOLS[name].arguments.model_fields)
