"""A diagnosis of a case that an engine drove against tools of the test's own, with both sides to be spoiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from host.domain.books import Logged, Made, Served, Stands
from host.engine.parts import Parts
from host.evaluation.diagnose import diagnose
from host.evaluation.reconcile import compare
from host.record import assemble
from host.store import audit
from host.workflows.returns import RETURNS
from shared_contracts.base import dump
from tests.support.fake_tools import FakeTools
from tests.support.records import fits, rows_of

TENANT = "acme-jp"
Spoil = Callable[[Served], Served]


def unspoilt(served: Served) -> Served:
    """What the tool server has to say."""
    return served


async def diagnosis_of(parts: Parts, tools: FakeTools, workflow_id: UUID, spoil: Spoil = unspoilt) -> dict[str, Any]:
    """Diagnose as the command does; the tool server's side is what these tools were asked and made."""
    async with parts.pool.connection() as connection:
        ledger = await audit.ledger(connection)
    outcomes = {attempt.jti: attempt.outcome for attempt in ledger.attempts}
    log = tuple(
        Logged(
            request.jti, "call", str(request.workflow_id), TENANT, request.tool.name, request.idempotency_key,
            "ok" if outcomes[request.jti] == "success" else str(outcomes[request.jti]),
        )
        for request in tools.requests
    )  # fmt: skip
    served = spoil(Served(log, tuple(_made(tools))))
    row = await rows_of(parts, workflow_id)
    found = diagnose(assemble(row, RETURNS), row, RETURNS, compare(served, ledger))
    return fits(dump(found), "command.diagnose.json")


def _made(tools: FakeTools) -> list[Made]:
    kinds = (("create_return", tools.returns, "return_id"), ("send_return_notice", tools.notices, "message_id"))
    return [
        Made(tool, TENANT, key, made[name], Stands.DONE, made["order_id"])
        for tool, table, name in kinds
        for key, made in table.items()
    ]


def made_again(number: str, key: str | None) -> Spoil:
    """The first thing that was made stands there a second time."""
    return lambda served: replace(served, made=(*served.made, replace(served.made[0], id=number, idempotency_key=key)))


def lost(tool: str) -> Spoil:
    """What was made by it does not stand there."""
    return lambda served: replace(served, made=tuple(row for row in served.made if row.tool != tool))
