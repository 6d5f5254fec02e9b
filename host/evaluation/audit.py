"""Reads both sides as the two auditors and compares them; what `reconcile`, an evaluation and a diagnosis share.

    tool server, one instant ──► ledger, one later instant ──► what differs, asked of the tool server once more

A request is in the ledger before it leaves, so the older instant of the tool server holds no call that the ledger does
not know yet. What the ledger has got an answer to since that instant is written at the tool server by then: it is found
when its rows are read again. So no clock of either side is trusted, and nobody has to stop working.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection, errors
from psycopg.conninfo import conninfo_to_dict

from host.database import NO_CONNECTION_STRING, NotReadyError
from host.domain.books import Served
from host.evaluation.reconcile import Comparison, compare, looked_at_again, of_one
from host.store import audit, audit_tools
from shared_contracts.told import unconnected


@dataclass(frozen=True, slots=True)
class Auditors:
    """The two connection strings, each of a role that may only SELECT."""

    host: str
    tools: str


async def reconciled(auditors: Auditors) -> Comparison:
    """Read and compare. Raises NotReadyError."""
    async with reading("KESSAI_AUDIT_TOOLS_DSN", auditors.tools) as tools:
        served = Served(await audit_tools.log(tools), await audit_tools.made(tools))
    async with reading("KESSAI_AUDIT_HOST_DSN", auditors.host) as host:
        ledger = await audit.ledger(host)
    found = compare(served, ledger)
    if found.findings == ():
        return found
    return compare(await _again(auditors, served, found), ledger)


async def reconciled_case(auditors: Auditors, case: str) -> Comparison:
    """Read and compare one workflow: what is its own, what claims to be, and the like of what it made. As above."""
    async with reading("KESSAI_AUDIT_TOOLS_DSN", auditors.tools) as tools:
        log = await audit_tools.log(tools, [], case)
        made = of_one(await audit_tools.made(tools), case, {row.idempotency_key for row in log})
    keys = {row.idempotency_key for row in made if row.idempotency_key is not None}
    async with reading("KESSAI_AUDIT_HOST_DSN", auditors.host) as host:
        ledger = await audit.ledger(host, audit.Only(case, [row.jti for row in log], sorted(keys)))
    tokens = {row.jti for row in ledger.attempts if row.workflow_id == case}
    keys = {row.idempotency_key for row in ledger.effects if row.workflow_id == case}
    async with reading("KESSAI_AUDIT_TOOLS_DSN", auditors.tools) as tools:
        again = Served(await audit_tools.log(tools, sorted(tokens)), await audit_tools.made(tools, sorted(keys)))
    return compare(looked_at_again(Served(log, made), again, tokens, keys), ledger)


async def _again(auditors: Auditors, served: Served, found: Comparison) -> Served:
    """Read what was suspected once more, and what stands under the key of each call that is found by then."""
    tokens = {finding.id for finding in found.findings}
    keys = {finding.key for finding in found.findings if finding.key is not None}
    async with reading("KESSAI_AUDIT_TOOLS_DSN", auditors.tools) as tools:
        log = await audit_tools.log(tools, sorted(tokens))
        keys |= {row.idempotency_key for row in log if row.idempotency_key is not None}
        again = Served(log, await audit_tools.made(tools, sorted(keys)))
    return looked_at_again(served, again, tokens, keys)


@asynccontextmanager
async def reading(setting: str, dsn: str) -> AsyncIterator[AsyncConnection[Any]]:
    """Turn what keeps an auditor from reading into words; none of them is secret."""
    try:
        async with audit.snapshot(dsn) as connection:
            yield connection
    except audit.NotAnAuditorError as error:
        role = conninfo_to_dict(dsn).get("user")
        mend = "Let it name host_auditor or tools_auditor, which may SELECT and nothing else."
        raise NotReadyError(f"{setting}: the role {role} can write, so it compares nothing\n{mend}") from error
    except (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName) as error:
        what = f"{setting}: this is no database of this release: {error.diag.message_primary}"
        raise NotReadyError(
            f"{what}\nName the right one, or run `kessai migrate` and `kessai-tools migrate`."
        ) from error
    except errors.InsufficientPrivilege as error:
        what = f"{setting}: the role may not read what is compared: {error.diag.message_primary}"
        raise NotReadyError(f"{what}\nLet it name host_auditor or tools_auditor; then migrate.") from error
    except psycopg.OperationalError as error:
        asks = error.pgconn is not None and error.pgconn.needs_password
        what, mend = unconnected(str(error), wants_password=asks, setting=setting)
        raise NotReadyError(f"{what}\n{mend}") from error
    except psycopg.ProgrammingError as error:  # its text quotes the string, which may hold a password
        if error.sqlstate is not None:
            raise
        raise NotReadyError(f"{setting} {NO_CONNECTION_STRING}") from None
