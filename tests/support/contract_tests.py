"""The contract tests over a tool server of the test's own, with one defect in it, and what they find."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from host.engine.parts import Tools
from host.evaluation.contract_bench import Place, opened
from host.evaluation.contract_checklist import tested
from host.evaluation.contract_documents import ToolTested
from host.evaluation.contract_shop import seed
from host.stack.keys import thumbprint
from host.stack.links import Links
from shared_contracts.contract import Scope, Tool
from shared_contracts.digest import digest
from shared_contracts.tools import TOOLS
from tests.support.cluster import database_name, drop_database, dsn_of
from tests.support.engine import host_database
from tests.support.server import running
from tests.support.tokens import Issuer, b64
from tests.support.tool_shop import open_shop
from tool_server.auth import Verifier
from tool_server.call import Answer, Answered, Caller
from tool_server.dispatch import Dispatcher
from tool_server.jws import Reason
from tool_server.seed import Seed


@contextmanager
def place(directory: Path, server: type[Dispatcher] = Dispatcher) -> Iterator[Place]:
    """Databases of the test's own with the tests' orders, and this tool server over them, by real HTTP."""
    shop = open_shop(directory)
    shop.load(Seed.model_validate_json(json.dumps(seed())))
    host = host_database()
    try:
        with running(server(shop.settings), directory / "keys") as served:
            links = Links(host, served.url, served.url, served.issuer.name, _key_file(served.issuer))
            yield Place(links, dsn_of(database_name(host)), shop.database.dsn("tools_auditor"))
    finally:
        drop_database(host)


def found(
    where: Place, name: str, tools: Mapping[str, Tool] = TOOLS, around: Callable[[Tools], Tools] | None = None
) -> ToolTested:
    """Test one tool; `around` stands between the engine and its way out."""

    async def run() -> ToolTested:
        async with opened(where, tools) as bench:
            parts = bench.parts if around is None else replace(bench.parts, tools=around(bench.parts.tools))
            return (await tested(replace(bench, parts=parts), (name,), lambda _: None)).tools[0]

    return asyncio.run(asyncio.wait_for(run(), 120))


def failing(seen: ToolTested) -> tuple[list[str], list[int]]:
    """Name the tests and the items that did not hold."""
    return [one.name for one in seen.trials if not one.held], [one.number for one in seen.items if not one.held]


def _key_file(issuer: Issuer) -> Path:
    """Publish the issuer's key under the name that a host gives it, and write its private half down."""
    named = replace(issuer, kid=thumbprint(issuer.jwk()["x"]))
    named.publish(named.jwk())
    file = issuer.directory / "signing.json"
    raw = issuer.private.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as written:
        json.dump({**named.jwk(), "d": b64(raw)}, written)
    return file


def _bound(caller: Caller, **details: Any) -> Caller:
    """The same caller, of whom the token says something else."""
    (one,) = caller.claims.authorization_details
    claims = caller.claims.model_copy(update={"authorization_details": (one.model_copy(update=details),)})
    return replace(caller, claims=claims)


class TakesUndeclared(Dispatcher):
    """Leaves out what the contract does not declare, and works on the rest."""

    async def dispatch(self, caller: Caller, name: str, arguments: Mapping[str, Any] | None) -> Answer:
        declared = {key: value for key, value in (arguments or {}).items() if key in TOOLS[name].arguments.model_fields}
        return await super().dispatch(_bound(caller, arguments_sha256=digest(declared)), name, declared)


class AsksForNoScope(Verifier):
    """Takes every token for one that may do everything."""

    def verify(self, token: str) -> Caller | Reason:
        caller = super().verify(token)
        every = frozenset(scope.value for scope in Scope)
        return replace(caller, scopes=every) if isinstance(caller, Caller) else caller


class MakesAnew(Dispatcher):
    """Takes every further attempt of an intention for another intention."""

    async def dispatch(self, caller: Caller, name: str, arguments: Mapping[str, Any] | None) -> Answer:
        (one,) = caller.claims.authorization_details
        if TOOLS[name].writes and one.attempt is not None and one.attempt > 1:
            caller = _bound(caller, idempotency_key=f"{one.idempotency_key}:{one.attempt}")
        return await super().dispatch(caller, name, arguments)


class FindsNothing(Dispatcher):
    """Says of every key that it has made nothing."""

    async def dispatch(self, caller: Caller, name: str, arguments: Mapping[str, Any] | None) -> Answer:
        answer = await super().dispatch(caller, name, arguments)
        if not TOOLS[name].looks_up or not isinstance(answer, Answered):
            return answer
        (one,) = caller.claims.authorization_details
        return Answered({**answer.result, "found": False, "record": None, "closed_through": one.attempt})
