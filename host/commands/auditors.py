"""Where both sides are compared: with the auditors' connections of the settings, or of this machine's own stack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from host.commands.workplace import choice
from host.evaluation.audit import Auditors
from host.settings import Settings, SettingsError, elsewhere, home_root, lacks, not_owners_alone
from host.stack.assembly import auditor_dsn
from host.stack.roles import Side
from host.stack.stack import temporary_parts


@asynccontextmanager
async def auditing(settings: Settings) -> AsyncIterator[Auditors]:
    """Give both connections; this machine's database is started where nobody keeps it up. Raises SettingsError."""
    host, tools = settings.audit_host_dsn, settings.audit_tools_dsn
    if host is not None and tools is not None:
        yield Auditors(host.get_secret_value(), tools.get_secret_value())
        return
    if host is not None or tools is not None or elsewhere(settings) is not None:
        both = {"AUDIT_HOST_DSN": host, "AUDIT_TOOLS_DSN": tools}
        raise SettingsError("\n".join(lacks(name) for name, value in both.items() if value is None))
    not_owners_alone(settings)
    async with temporary_parts(home_root(settings), choice(settings)) as parts:
        yield Auditors(auditor_dsn(parts, Side.HOST), auditor_dsn(parts, Side.TOOLS))
