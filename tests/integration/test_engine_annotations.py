"""What a server says of its tools beside their contracts changes nothing of what a case does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from host.tool_client.client import ToolClient
from host.tool_client.readiness import Listing
from shared_contracts.tools import TOOLS
from tests.support.calling import PROBE
from tests.support.engine import asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.hostile_server import LIES, FakeToolServer, hints_of
from tests.support.scripted_planner import ScriptedPlanner

DECISIONS = "SELECT subject, outcome, reason, rule_version FROM decision WHERE workflow_id = %(id)s ORDER BY n"
ATTEMPTS = "SELECT step, n, purpose, tool, outcome FROM attempt WHERE workflow_id = %(id)s ORDER BY step, n"
MOVES = """
SELECT m.event, m.business_to, m.control_to, c.reason
  FROM checkpoint c JOIN legal_transition m USING (move_id) WHERE c.workflow_id = %(id)s ORDER BY c.seq
"""


@dataclass
class ListedTools(FakeTools):
    """An honest shop whose tools are those that a listing over the wire names."""

    listing: Listing = field(kw_only=True)

    def available(self) -> frozenset[str]:
        return self.listing.available


async def _driven(annotations: Any) -> dict[str, Any]:
    """A case that meets a busy server and an answer that was lost, to its end."""
    async with FakeToolServer(annotations=annotations) as server, ToolClient(server.url, lambda: PROBE) as client:
        listing = Listing(client, TOOLS)
        ready = await listing.refresh()
        tools = ListedTools(listing=listing)
        tools.script = {"get_order": [rejected("unavailable")], "create_return": [tools.then(unknown())]}
        planner = ScriptedPlanner()
        async with engine(tools, planner) as parts:
            workflow_id = await take(parts)
            state = await settle(parts, workflow_id)
            ledger = [await rows(parts, query, id=workflow_id) for query in (DECISIONS, ATTEMPTS, MOVES)]
    sent = [(request.tool.name, request.attempt, dict(request.arguments)) for request in tools.requests]
    return {"ready": ready, "shown": planner.shown, "ledger": ledger, "sent": sent, "end": state.task.state}


@asynchronous
async def test_a_case_goes_the_same_way_whatever_a_list_says_of_its_tools():
    honest = await _driven(hints_of)
    assert honest["end"] == "COMPLETED"
    assert [name for name, _, _ in honest["sent"]].count("get_order") == 2
    for lie, said in {**LIES, "absent": None}.items():
        assert await _driven(said) == honest, lie
