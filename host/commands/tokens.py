"""`token issue`: decide what the token is good for, register it, then mint it; and `token list`.

Invariant: nothing is granted that the principal does not hold, a write only by name on one order under one key, and
no token exists that was not registered first.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from host.commands import sheets
from host.commands.exits import CommandError, Exit
from host.commands.output import console, say, write_json
from host.commands.workplace import reading, working
from host.database import database
from host.domain.principals import AuthorizationSet, Principal
from host.domain.suitability import failing, updates
from host.engine.parts import new_id, new_jti
from host.settings import Settings, home_root, links
from host.stack.assembly import TOOL_SERVER
from host.stack.keys import read_signing_key
from host.stack.links import Links
from host.stack.status import PartState, status
from host.store import external
from host.store.errors import ReadsStoppedError, StoppedError
from host.tool_client.mint import ExternalGrant, Minter, SigningKey
from host.views import ExternalTask, TokenList
from host.workflows.catalogue import WORKFLOWS
from shared_contracts.base import dump
from shared_contracts.contract import FROM_TOKEN, READING, offerable
from shared_contracts.operator import operator
from shared_contracts.task_token import CallDetails
from shared_contracts.tools import TOOLS


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """What was asked for; None was left to us."""

    customer: str
    principal: str | None
    scopes: frozenset[str] | None
    resource: str | None
    allow_write: str | None
    minutes: int
    issued_by: str | None


async def issue(settings: Settings, wanted: TokenRequest) -> None:
    """Issue it on standard output."""
    await _refuse_without_server(settings)
    async with working(settings) as place:
        from host.rights import read_authorization

        authorization = read_authorization(settings.authz_file)
        principals = authorization.by_name()
        principal = principals.get(settings.principal if wanted.principal is None else wanted.principal)
        if principal is None:
            raise _refused("there is no such principal", f"The principals are: {', '.join(sorted(principals))}.")
        grant = _grant(wanted, principal, new_id())
        _refuse_what_is_drafted(grant.tool, authorization)
        _check(grant)
        key = SigningKey.from_jwk(read_signing_key(place.links.signing_key_file))
        await _register(place.links, _task(grant, wanted))
        token = Minter(key, place.links.issuer, place.links.audience).external(grant)
    sys.stdout.write(token + "\n")
    scopes = " ".join(sorted(grant.scopes))
    say(f"task {grant.task_id}, token id {grant.jti}, {wanted.minutes} minutes, {scopes}, for {place.links.audience}")


async def _register(at: Links, task: dict[str, Any]) -> None:
    """Write it down; raises CommandError where a stop is engaged."""
    try:
        async with database(at.dsn, 1) as pool, pool.connection() as connection:
            await external.register(connection, task)
    except StoppedError as error:
        what = "reading is stopped too" if isinstance(error, ReadsStoppedError) else "updates are stopped"
        mend = "No token was issued. kessai status says by whom and why; try again when the stop is lifted."
        raise CommandError(Exit.STOPPED, what, mend) from error


async def _refuse_without_server(settings: Settings) -> None:
    """A stack that was brought up for this command alone would be gone before its token is used."""
    if links(settings) is not None:
        return
    parts = (await status(home_root(settings))).parts
    if not any(part.name == TOOL_SERVER and part.state is PartState.RUNNING for part in parts):
        raise CommandError(Exit.NOT_READY, "no tool server runs that would take the token", "Start it: kessai up")


def _refused(what: str, mend: str) -> CommandError:
    return CommandError(Exit.BAD_INPUT, what, mend)


def _grant(wanted: TokenRequest, principal: Principal, task_id: UUID) -> ExternalGrant:
    tool = wanted.allow_write
    scopes = _read_scopes(wanted, principal) if tool is None else _write_scope(wanted, principal, tool)
    return ExternalGrant(
        jti=new_jti(),
        task_id=str(task_id),
        tenant_id=principal.tenant_id,
        principal=principal.name,
        customer=wanted.customer,
        scopes=scopes,
        tool=tool,
        resource=wanted.resource,
        idempotency_key=None if tool is None else f"external:{task_id}:{tool}",
        seconds=60 * wanted.minutes,
    )


def _refuse_what_is_drafted(tool: str | None, authorization: AuthorizationSet) -> None:
    """What the kinds that use it may only draft is nobody's to do over the wire."""
    for workflow in WORKFLOWS:
        if tool in updates(workflow, TOOLS) and failing(workflow, TOOLS, authorization):
            what = f"{tool} is offered to nobody: {workflow.kind} is in read-and-draft mode"
            raise _refused(what, "kessai status says what it lacks.")


def _check(grant: ExternalGrant) -> None:
    """Hold the words of the command line against the token's own types, before anything is written."""
    try:
        CallDetails(type="kessai_call", tool=grant.tool, resource=grant.resource, customer=grant.customer)
    except ValidationError as error:
        named = ", ".join(str(problem["loc"][0]) for problem in error.errors())
        raise _refused(f"--{named} is no identifier", "Letters, digits, and . _ - are allowed, at most 80.") from error


def _read_scopes(wanted: TokenRequest, principal: Principal) -> frozenset[str]:
    held = frozenset(scope.value for scope in principal.scopes & READING)
    scopes = held if wanted.scopes is None else wanted.scopes
    if beyond := scopes - held:
        named = ", ".join(sorted(beyond))
        mend = f"It may read: {' '.join(sorted(held))}. A write is allowed by its name: --allow-write TOOL."
        raise _refused(f"{named} is no read of {principal.name}", mend)
    if scopes == frozenset():
        raise _refused(f"{principal.name} may read nothing", "Name another principal.")
    return scopes


def _write_scope(wanted: TokenRequest, principal: Principal, name: str) -> frozenset[str]:
    tool = TOOLS.get(name)
    if tool is None or not tool.writes or tool.idempotency_key != FROM_TOKEN or not offerable(tool):
        writes = ", ".join(one.name for one in TOOLS.values() if one.writes)
        raise _refused(f"{name!r} is no write", f"The writes are: {writes}.")
    if wanted.resource is None:
        raise _refused("a write needs one order", "Name it with --resource.")
    if wanted.scopes is not None:
        raise _refused("a token for a write has that write's scope alone", "Leave --scope out.")
    if name not in principal.tools or tool.scope not in principal.scopes:
        raise _refused(f"{principal.name} may not call {name}", "Name another principal.")
    return frozenset({tool.scope.value})


def _task(grant: ExternalGrant, wanted: TokenRequest) -> dict[str, Any]:
    issued_by = operator() if wanted.issued_by is None else wanted.issued_by
    return asdict(grant) | {"scopes": sorted(grant.scopes), "issued_by": issued_by}


async def listed(settings: Settings, most: int, *, as_json: bool) -> None:
    """List what tokens of outside hosts were issued for."""
    async with reading(settings) as pool, pool.connection() as connection:
        rows = await external.tasks(connection, most)
    page = TokenList(tokens=tuple(ExternalTask(**{**row, "scopes": tuple(row["scopes"])}) for row in rows))
    if as_json:
        write_json(dump(page))
    else:
        sheets.tokens(console(), page)
