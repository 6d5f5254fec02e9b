"""The demo's claims over a real engine and the tool server's real inner half, with faults where a test wants them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from host.commands.lookup import record_of
from host.domain.outcome import Outcome, Rejected, Success
from host.domain.principals import Principal
from host.domain.proposals import Planner
from host.engine.accept import Origin, Taken, accept, read_case
from host.engine.parts import Parts, Request
from host.workflows.claims import CLAIMS
from shared_contracts.contract import Scope
from shared_contracts.record import Record
from shared_contracts.tools import TOOLS
from tests.support.engine import KINDS, PINS, engine, no_wake
from tests.support.fake_tools import Answer, failure
from tests.support.tool_shop import Shop, ask, open_shop
from tool_server import load_cases
from tool_server.call import Answered
from tool_server.demo.generate import SHOP
from tool_server.dispatch import Dispatcher

EXAMPLES = Path(__file__).parents[2] / "examples" / "claims"
DEMO = SHOP.with_name("claims.json")
CLAIMS_DESK = Principal(
    name="claims-desk@anshin-jp",
    tenant_id="anshin-jp",
    roles=("claims_agent",),
    scopes=frozenset({Scope.DOCUMENT_READ, Scope.DOCUMENT_RESOLVE}),
    tools=frozenset(name for name in TOOLS if name.startswith("caseops_")),
)


@dataclass
class DocumentTools:
    """Every request goes to the real dispatcher, unless `script` has something else for the next one of its tool."""

    dispatcher: Dispatcher
    script: dict[str, list[Answer | None]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    async def turn(self, tenant_id: str, principal: str) -> None:
        """Nobody waits."""

    def available(self) -> frozenset[str]:
        return frozenset(TOOLS)

    def sent(self, tool: str) -> int:
        return sum(request.tool.name == tool for request in self.requests)

    async def call(self, request: Request) -> Outcome:
        self.requests.append(request)
        planned = self.script.get(request.tool.name, [])
        answer = planned.pop(0) if planned else None
        if answer is not None:
            said = answer(request)
            assert not asyncio.iscoroutine(said)
            return said  # type: ignore[return-value]
        found = await ask(
            self.dispatcher, request.tool.name, request.arguments, tenant=request.tenant_id, customer=request.customer,
            resource=request.resource, requested_at=request.requested_at.isoformat(),
        )  # fmt: skip
        return Success(found.result) if isinstance(found, Answered) else Rejected(failure(found.code))


def claims_shop(directory: Path, seed: load_cases.SeedCases | None = None) -> Shop:
    """The tool server's database with the demo's claims, or with other ones."""
    shop = open_shop(directory)
    with_claims(shop, seed)
    return shop


def with_claims(shop: Shop, seed: load_cases.SeedCases | None = None) -> None:
    """Give the claims to a shop that has orders already."""
    asyncio.run(load_cases.load(shop.database.owner, load_cases.read_seed(DEMO) if seed is None else seed))


@asynccontextmanager
async def desk(shop: Shop, planner: Planner | None = None) -> AsyncIterator[tuple[Parts, DocumentTools]]:
    """An engine for the claims desk."""
    async with Dispatcher(shop.settings) as dispatcher:
        tools = DocumentTools(dispatcher)
        async with engine(tools, planner, principal=CLAIMS_DESK, workflow=CLAIMS) as parts:
            yield parts, tools


def example(name: str) -> dict[str, Any]:
    return dict(json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8")))


async def submit(parts: Parts, document: dict[str, Any]) -> Taken:
    """Take a claim in."""
    workflow, case = read_case(document, KINDS)
    kind = parts.kinds[workflow.kind, workflow.release]
    return await accept(parts.pool, kind, case, Origin(parts.authorization.principals[0]), PINS, no_wake)


async def recorded(parts: Parts, workflow_id: UUID) -> Record:
    return await record_of(parts.pool, workflow_id)
