"""What the contract tests work with: the engine over a wire that can lose answers, and the auditor's counters.

Invariant: what is counted was read in the tool server's database as its auditor, or seen on the wire; never taken from
an answer.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from host.database import NotReadyError, database
from host.domain.books import Stands
from host.domain.outcome import Outcome, Success
from host.domain.principals import AuthorizationSet, Principal
from host.domain.step import key_of
from host.engine.accept import Origin, Pins, accept
from host.engine.drive import drive
from host.engine.parts import Kind, Parts, Request, new_jti
from host.evaluation import contract_shop as shop
from host.evaluation.contract_kind import KIND, ContractCase, alone, contract_kind
from host.evaluation.contract_wire import Wire, wire
from host.planner.conformance import ConformancePlanner
from host.stack.keys import read_signing_key
from host.stack.links import Links
from host.store import audit, audit_tools, ledger, record
from host.store.migrate import migrate
from host.tool_client.client import ToolClient
from host.tool_client.gateway import Gateway
from host.tool_client.mint import Minter, SigningKey
from host.tool_client.pace import Pace, Rates
from host.tool_client.readiness import Listing, NotReady
from shared_contracts.contract import READING, Scope, Tool

POOL_SIZE = 4
RATES = Rates(principal=15.0, tenant=80.0)  # below what a tool server takes
CASE_SECONDS_MAX = 45.0
QUEUE_MAX = 1000
PINS = Pins(order_snapshot="2026-07-30T00:00:00+09:00", policy="policy-v12", authz="contract-test")
READER = "contract-test-reader"


@dataclass(frozen=True, slots=True)
class Place:
    """Databases and a tool server that are of the tests alone."""

    links: Links
    owner_dsn: str
    auditor_dsn: str


@dataclass(frozen=True, slots=True)
class Counted:
    """Of one tool: requests on the wire, rows of the tool server's log, those that it worked on, and what stands."""

    sent: int
    logged: int
    worked: int
    made: int

    def since(self, before: Counted) -> Counted:
        """Count what has come since."""
        return Counted(
            self.sent - before.sent, self.logged - before.logged, self.worked - before.worked, self.made - before.made
        )

    def __str__(self) -> str:
        return f"sent {self.sent}, logged {self.logged}, worked on {self.worked}, made {self.made}"


@dataclass(frozen=True, slots=True)
class Ran:
    """A case at its rest: where, why, how often it was sent and looked up, and what the ledger has of the effect."""

    workflow_id: UUID
    state: str
    reason: str
    sends: int
    looks: int
    effect: str | None
    external_id: str | None
    queued: bool
    due: bool


@dataclass(frozen=True)
class Bench:
    """Open while the tests run."""

    tools: Mapping[str, Tool]  # the contracts as they are
    parts: Parts
    wire: Wire
    auditor_dsn: str
    shelf: shop.Shelf = field(default_factory=shop.Shelf)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def arguments(self, tool: Tool) -> dict[str, Any]:
        """Give arguments that are good now: what has to be made first is made, on an order of its own."""
        order_id, made = self.shelf.order(), dict[str, str]()
        for name in tool.arguments.model_fields:
            if name in shop.MADE_BY:
                maker = self.tools[shop.MADE_BY[name]]
                made[name] = await self._made(maker, shop.arguments(maker, order_id, made))
        return shop.arguments(tool, order_id, made)

    async def _made(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        ran = await self.run(tool, arguments)
        if ran.external_id is None:
            raise PreparationError(f"{tool.name} has made nothing ({ran.state}, {ran.reason})")
        return ran.external_id

    async def ask(self, tool: Tool, arguments: Mapping[str, Any], task: UUID, attempt: int = 1) -> Outcome:
        """Make one call past the engine, under a real token of the task."""
        await self.parts.tools.turn(shop.TENANT, shop.PRINCIPAL)
        return await self.parts.tools.call(
            Request(
                tool=tool, arguments=arguments, jti=new_jti(), workflow_id=task, tenant_id=shop.TENANT,
                subject=shop.PRINCIPAL, customer=shop.CUSTOMER, resource=str(arguments[tool.resource_argument]),
                idempotency_key=key_of(task, tool.name), attempt=attempt, requested_at=shop.ASKED_AT,
                timeout_seconds=float(tool.timeout_seconds), correlation={}, approval=None, approved_version=None,
            )
        )  # fmt: skip

    async def settled(self, tool: Tool, arguments: Mapping[str, Any], task: UUID, outcome: Outcome) -> Outcome:
        """Ask again under the same key while the answer says that the work is still being done."""
        until = asyncio.get_running_loop().time() + CASE_SECONDS_MAX
        for attempt in itertools.count(2):
            if not isinstance(outcome, Success) or not tool.pending(outcome.result):
                break
            if asyncio.get_running_loop().time() > until:
                break
            await asyncio.sleep(0.1)
            outcome = await self.ask(tool, arguments, task, attempt)
        return outcome

    async def run(self, tool: Tool, arguments: Mapping[str, Any], principal: str = shop.PRINCIPAL) -> Ran:
        """Take a case of the tool alone in, and drive it to its end."""
        kind = self.parts.kinds[KIND, f"{tool.name}-{tool.version}"]
        case = ContractCase(number=f"n{next(self.numbers)}", customer_id=shop.CUSTOMER, arguments=dict(arguments))
        origin = Origin(self.parts.authorization.by_name()[principal], shop.ASKED_AT)
        taken = await accept(self.parts.pool, kind, case, origin, PINS, _nobody_wakes)
        planner = ConformancePlanner([kind.workflow])
        return await self.drive(replace(self.parts, planner=planner), tool, taken.workflow_id)

    async def drive(self, parts: Parts, tool: Tool, workflow_id: UUID) -> Ran:
        """Drive on through every wait that a clock ends, within a bound."""
        until = asyncio.get_running_loop().time() + CASE_SECONDS_MAX
        while True:
            state = await drive(parts, workflow_id)
            ran = await self._ran(tool, workflow_id)
            async with parts.pool.connection() as connection:
                position = await record.position(connection, workflow_id)
            due = None if position is None else position.due_in_seconds
            if state.ended() or due is None or asyncio.get_running_loop().time() + due > until:
                return ran
            await asyncio.sleep(max(0.0, due) + 0.01)

    async def again(self, tool: Tool, ran: Ran) -> Ran:
        """Drive a case once more that is at its end, as a scheduler that does not look would."""
        kind = self.parts.kinds[KIND, f"{tool.name}-{tool.version}"]
        planner = ConformancePlanner([kind.workflow])
        return await self.drive(replace(self.parts, planner=planner), tool, ran.workflow_id)

    async def _ran(self, tool: Tool, workflow_id: UUID) -> Ran:
        async with self.parts.pool.connection() as connection:
            read = await record.read(connection, workflow_id)
            queue = await record.exceptions(connection, QUEUE_MAX)
            due = await ledger.due(connection, QUEUE_MAX)
        if read is None:
            raise AssertionError("a case that was taken in is there")
        sent = [one for one in read["attempts"] if one["tool"] in {tool.name, tool.reconcile_with}]
        effects = read["effects"]
        last = effects[-1] if effects else {}
        return Ran(
            workflow_id=workflow_id,
            state=read["workflow"]["state"],
            reason=read["workflow"]["reason"],
            sends=sum(one["purpose"] == "call" for one in sent),
            looks=sum(one["purpose"] == "reconciliation" for one in sent),
            effect=last.get("outcome"),
            external_id=last.get("external_id"),
            queued=any(one.workflow_id == workflow_id for one in queue),
            due=workflow_id in due,
        )

    async def counted(self, tool: Tool) -> Counted:
        """Count as the auditor, and on the wire."""
        async with audit.snapshot(self.auditor_dsn) as connection:
            log, made = await audit_tools.log(connection), await audit_tools.made(connection)
        calls = [row for row in log if (row.tool, row.tenant_id) == (tool.name, shop.TENANT)]
        things = [row for row in made if (row.tool, row.tenant_id) == (tool.name, shop.TENANT)]
        return Counted(
            sent=self.wire.asked[tool.name],
            logged=len(calls),
            worked=sum(row.outcome == "ok" for row in calls),
            made=sum(row.stands is not Stands.NOTHING for row in things),
        )

    def reading(self, tool: Tool) -> Tool:
        """The same tool for a token with the scope of its look-up: what somebody who may only read has."""
        return replace(tool, scope=self.tools[tool.reconcile_with].scope)


class PreparationError(Exception):
    """What a trial needs could not be made; the tool that makes it has trials of its own."""


@asynccontextmanager
async def opened(place: Place, tools: Mapping[str, Tool]) -> AsyncIterator[Bench]:
    """Open everything over a place of the tests alone. Raises NotReadyError."""
    writes = [tool for tool in tools.values() if tool.writes]
    workflows = tuple(contract_kind(tool, tools) for tool in writes)
    await asyncio.to_thread(migrate, place.owner_dsn, workflows)
    minter = Minter(
        SigningKey.from_jwk(read_signing_key(place.links.signing_key_file)), place.links.issuer, place.links.audience
    )
    async with (
        wire(place.links.server_url) as between,
        database(place.links.dsn, POOL_SIZE) as pool,
        ToolClient(between.url, minter.probe) as client,
    ):
        listing = Listing(client, tools)
        if isinstance(found := await listing.refresh(), NotReady):
            raise NotReadyError(f"{found.what} {found.mend}")
        async with pool.connection() as connection:
            kinds = {
                (one.kind, one.release): Kind(one, await ledger.moves(connection, one.kind, one.release))
                for one in workflows
            }
        parts = Parts(
            pool=pool,
            tools=Gateway(client, minter, listing, Pace(RATES)),
            planner=ConformancePlanner(()),
            kinds=kinds,
            registry=alone(tools),
            authorization=_authorization(tools),
            owner="contract-test",
            lease_seconds=15.0,
        )
        yield Bench(tools, parts, between, place.auditor_dsn)


def _authorization(tools: Mapping[str, Tool]) -> AuthorizationSet:
    """One who may call everything, and one who may only read."""
    names = frozenset(tools)
    allowed = {shop.PRINCIPAL: frozenset(Scope), READER: READING}
    principals = tuple(
        Principal(name=name, tenant_id=shop.TENANT, roles=(), scopes=scopes, tools=names)
        for name, scopes in allowed.items()
    )
    return AuthorizationSet(version=PINS.authz, principals=principals, approvers=(), operators=())


async def _nobody_wakes(connection: AsyncConnection[Any], workflow_id: UUID) -> None:
    """The tests drive by themselves."""
