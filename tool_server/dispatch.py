"""One call from its verified token to its answer.

    contract → scope → schema → binding to the token → handler (gate, idempotency, business rules, log) → output schema

Invariant: a handler sees only a call that passed every step before it, with its own family's connections; what it
answers has passed the output schema. Every call, answered or refused, has its row in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from time import perf_counter
from typing import Any, Self, TypeVar

import psycopg
import structlog
from pydantic import SecretStr

from shared_contracts.contract import FAMILIES, Tool, offerable
from shared_contracts.tools import TOOLS
from tool_server import relay
from tool_server.binding import bind
from tool_server.call import Answer, Answered, Call, Caller, Refused, refused
from tool_server.errors import SettingsError, ToolServerError
from tool_server.log import exception_fields
from tool_server.post import open_post
from tool_server.settings import Settings
from tool_server.store import calls
from tool_server.store.health import Away, Health, Lookout, Slow, Works, WrongRole
from tool_server.store.migrate import NEWEST, NewerSchemaError
from tool_server.store.pool import BusyError, Pool, UnavailableError
from tool_server.tools.catalogue import handlers
from tool_server.validation import Checked, check_arguments, fault_of_output

DRAIN_SECONDS = 18.0  # above the longest tool's timeout, below what a supervisor waits
log = structlog.get_logger()
T = TypeVar("T")


class RoleError(ToolServerError):
    """A connection string names a role that is not its family's alone."""


class Dispatcher:
    """Runs calls; opened once per process, before the first call."""

    def __init__(self, settings: Settings) -> None:
        self._post = open_post(settings)
        self._pools = {family: _pool(family, settings.dsn_of(family)) for family in FAMILIES}
        self._lookouts = {family: Lookout(pool) for family, pool in self._pools.items()}
        self._handlers = handlers(self._post)
        self._exit = AsyncExitStack()
        self._working: set[asyncio.Task[Any]] = set()
        self._relaying: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        for family, pool in self._pools.items():
            await self._exit.enter_async_context(pool)
            self._exit.push_async_callback(self._lookouts[family].close)
        await self._refuse_what_waiting_cannot_mend()
        stop = asyncio.Event()
        self._relaying = asyncio.create_task(relay.run(self._pools["notices"], self._post.channel, stop))
        self._exit.push_async_callback(_end, self._relaying, stop)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Finish the calls in hand, as far as the drain's time goes, then close."""
        if self._working:
            await asyncio.wait(self._working, timeout=DRAIN_SECONDS)
        await self._exit.aclose()

    async def dispatch(self, caller: Caller, name: str, arguments: Mapping[str, Any] | None) -> Answer:
        """Answer one call. A caller that goes away does not stop it: what has begun is finished and recorded."""
        return await self._to_its_end(self._dispatch(caller, name, arguments, perf_counter()))

    async def log_refusal(self, caller: Caller, name: str, code: str) -> None:
        """Log a call that was refused before it came here."""
        early = self._refuse_early(caller, name, TOOLS.get(name), None, refused(code), perf_counter())
        await self._to_its_end(early)

    async def token_fault(self, caller: Caller) -> str | None:
        """Give the code for which a token is refused that asks for no call; None where it is not."""
        try:
            return await self._to_its_end(calls.token_fault(self._pools["orders"], caller))
        except (UnavailableError, BusyError, psycopg.Error) as error:
            log.warning("token_not_looked_up", **exception_fields(error))
            return "unavailable"

    async def disabled(self) -> frozenset[str]:
        """Name the tools that an operator has removed; raises UnavailableError."""
        return await self._to_its_end(calls.disabled(self._pools["orders"]))

    async def ready(self) -> str | None:
        """Say why calls cannot be served now; None when they can. It names no file, no host and no person."""
        for family, health in (await self._look_at_all()).items():
            if (reason := self._reason(family, health)) is not None:
                return reason
        if self._relaying is None or self._relaying.done():
            return "relay_ended"
        return await self._post.channel.fault()

    async def _look_at_all(self) -> dict[str, Health]:
        """Look at all families at once: one that is slow must not hide what another has to say."""
        found = await asyncio.gather(*(lookout.health() for lookout in self._lookouts.values()))
        return dict(zip(self._lookouts, found, strict=True))

    def _reason(self, family: str, health: Health) -> str | None:
        """Give the reason that anybody may read; what nobody else should goes to the log."""
        known: dict[str, str] = {}
        say = log.warning
        match health:
            case Works(schema=schema):
                return None if schema == NEWEST else f"schema_mismatch: {schema}, not {NEWEST}"
            case WrongRole(error=error):
                code, known, say = "wrong_role", {"role": error.why}, log.error
            case Away(why=why):
                code, known = "database_unavailable", {"why": why}
            case Slow():
                code = "database_slow"
        say(code, family=family, **known)
        return f"{code}: {family}"

    async def _refuse_what_waiting_cannot_mend(self) -> None:
        """Stop before the first call; a database that is away, or older, is a matter of readiness."""
        found = await self._look_at_all()
        for family, health in found.items():
            self._reason(family, health)  # for the log: nobody may ever ask
        newest = max((health.schema for health in found.values() if isinstance(health, Works)), default=NEWEST)
        wrong = [str(health.error) for health in found.values() if isinstance(health, WrongRole)]
        if newest > NEWEST or wrong:
            await self._exit.aclose()
        if wrong:
            raise RoleError("\n".join(wrong))
        if newest > NEWEST:
            raise NewerSchemaError(newest, NEWEST)

    async def _to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Shield the work from its caller's cancellation, which may come again at every await.

        A connection that is given back half-way would be a connection lost.
        """
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return await asyncio.shield(task)

    async def _dispatch(self, caller: Caller, name: str, arguments: Mapping[str, Any] | None, started: float) -> Answer:
        tool = TOOLS.get(name)
        if tool is None or not offerable(tool):
            return await self._refuse_early(caller, name, None, None, refused("unknown_tool"), started)
        if tool.scope.value not in caller.scopes:
            return await self._refuse_early(caller, name, tool, None, refused("scope_missing"), started)
        checked = check_arguments(tool, arguments)
        if isinstance(checked, Refused):
            return await self._refuse_early(caller, name, tool, None, checked, started)
        bound = bind(caller.claims, tool, checked.arguments, checked.sha256)
        if isinstance(bound, Refused):
            return await self._refuse_early(caller, name, tool, checked, bound, started)
        return await self._work(Call(caller, bound, tool, checked.arguments, checked.sha256, started))

    async def _work(self, call: Call) -> Answer:
        """Run the handler: the one place where what a database does becomes an answer."""
        try:
            answer = await self._handlers[call.tool.name](self._pools[call.tool.family], call)
        except UnavailableError as error:
            log.warning("database_unavailable", family=call.tool.family, **exception_fields(error))
            return refused("unavailable")
        except BusyError:
            return await self._refuse(call, refused("in_progress"))
        except Exception as error:  # noqa: BLE001 — the outermost place: a bug, or a COMMIT whose answer was lost
            fields = exception_fields(error)
            log.error("handler_failed", tool=call.tool.name, jti=call.caller.claims.jti, **fields)
            return await self._refuse(call, refused("internal_error", {"cause": type(error).__name__}))
        return await self._checked(call, answer)

    async def _checked(self, call: Call, answer: Answer) -> Answer:
        if isinstance(answer, Answered) and (fault := fault_of_output(call.tool, answer.result)) is not None:
            log.error("bad_output", tool=call.tool.name, jti=call.caller.claims.jti, fault=fault)
            return await self._refuse(call, refused("bad_output"))
        return answer

    async def _refuse(self, call: Call, refusal: Refused) -> Refused:
        """Log a refusal of a call that had its chance; the log being away changes nothing of it."""
        try:
            await calls.refuse(self._pools[call.tool.family], call, refusal.code)
        except (UnavailableError, BusyError, psycopg.Error) as error:
            log.warning("refusal_not_logged", code=refusal.code, **exception_fields(error))
        return refusal

    async def _refuse_early(
        self, caller: Caller, name: str, tool: Tool | None, checked: Checked | None, refusal: Refused, started: float
    ) -> Refused:
        pool = self._pools["orders" if tool is None else tool.family]
        version = None if tool is None else tool.version
        sha256 = None if checked is None else checked.sha256
        try:
            code = await calls.refuse_early(pool, caller, name, version, sha256, refusal.code, started)
        except (UnavailableError, BusyError, psycopg.Error) as error:
            log.warning("refusal_not_logged", code=refusal.code, **exception_fields(error))
            return refusal
        return refusal if code == refusal.code else refused(code)


def _pool(family: str, dsn: SecretStr) -> Pool:
    try:
        return Pool(family, dsn.get_secret_value())
    except psycopg.ProgrammingError:  # its text quotes the string, which may hold a password
        name = f"KESSAI_TOOLS_{family.upper()}_DSN"
        raise SettingsError(f"{name} is no connection string of PostgreSQL; write host=… dbname=… user=…") from None


async def _end(relaying: asyncio.Task[None], stop: asyncio.Event) -> None:
    stop.set()
    await asyncio.wait([relaying])
