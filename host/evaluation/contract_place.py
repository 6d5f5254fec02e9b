"""A home of the contract tests alone, beside the user's: made for one run as an evaluation's is, and removed after it.

    <home>                  what is real; nothing here opens it
    <home>-contract-test    a stack with the packaged data and the tests' own orders

Invariant: nothing that a person set for the real stack, such as a mail server, reaches this one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from host.evaluation import place
from host.evaluation.contract_bench import Place
from host.evaluation.contract_shop import seed
from host.stack import assembly, processes
from host.stack.assembly import StackParts
from host.stack.bring_up import MIGRATION_SECONDS_MAX, READY_SECONDS_MAX
from host.stack.files import write_whole
from host.stack.postgres import PostgresChoice
from host.stack.roles import Side

SEED_MODE = 0o600


def home_of(root: Path) -> Path:
    """Name the tests' home by the user's."""
    return root.with_name(f"{root.name}-contract-test")


@asynccontextmanager
async def contract_place(root: Path, choice: PostgresChoice) -> AsyncIterator[Place]:
    """Bring a stack up in `root` with a tool server over its own data, and remove all of it. Raises StackError."""
    try:
        async with place.databases(root, choice) as parts:
            file = parts.home.run / "contract-test-seed.json"
            write_whole(file, json.dumps(seed(), ensure_ascii=False), SEED_MODE)
            await processes.run_to_end(parts.home, assembly.load_file(parts, file), MIGRATION_SECONDS_MAX)
            port = place.free_port(parts)
            running = processes.start(parts.home, assembly.tool_server(parts, port))
            await processes.wait_ready(parts.home, running, READY_SECONDS_MAX)
            yield _place(parts, port)
    finally:
        await place.drop(root)


def _place(parts: StackParts, port: int) -> Place:
    return Place(
        links=assembly.links_of(parts, port),
        owner_dsn=assembly.host_owner_dsn(parts),
        auditor_dsn=assembly.auditor_dsn(parts, Side.TOOLS),
    )
