"""Write what not even the owner may: the state that a disaster, or a moment which no test can hold, would leave."""

from __future__ import annotations

import asyncio

from host.stack.home import open_home
from host.stack.postgres import cluster_of, find
from tests.support.cli import Cli
from tests.support.embedded import PLAIN
from tests.support.embedded import admin as admin_of


def unguarded(cli: Cli, *statements: str) -> None:
    """Run them past every trigger of the running stack's host database."""
    cluster = cluster_of(open_home(cli.home), PLAIN)
    server = asyncio.run(find(cluster))
    assert server is not None
    with admin_of(cluster, server, "host") as admin:
        admin.execute("SET session_replication_role = replica")
        for one in statements:
            admin.execute(one.encode())
