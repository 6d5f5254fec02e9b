"""Whatever a restored database holds beside rows that our migrations do not make is seen, and named."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import LiteralString

import psycopg
import pytest

from host.stack import postgres
from host.stack.assembly import StackParts, migrate_host, migrate_tools, owner_dsn
from host.stack.binaries import find_program
from host.stack.build import installed_build
from host.stack.catalogue import Catalogue, catalogue, differences
from host.stack.initialise import password_in
from host.stack.keys import ensure_keys
from host.stack.postgres import Cluster
from host.stack.processes import run_to_end
from host.stack.provision import provision
from host.stack.roles import Side, write_passwords
from host.stack.serving import ADMIN
from tests.support.backups import CHOICE
from tests.support.embedded import embedded

pytestmark = pytest.mark.xdist_group("stack-catalogue")

# what the owner does · how it is undone · what is named
Change = tuple[Side, LiteralString, LiteralString, str]
CHANGES: dict[str, Change] = {
    "another body": (
        Side.HOST,
        ("ALTER FUNCTION clock_now() RENAME TO kept; "
        "CREATE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() - interval '1 day' $$"),
        "DROP FUNCTION clock_now(); ALTER FUNCTION kept() RENAME TO clock_now",
        "FUNCTION public.clock_now() is another",
    ),
    "the owner's rights": (
        Side.HOST, "ALTER FUNCTION clock_now() SECURITY DEFINER", "ALTER FUNCTION clock_now() SECURITY INVOKER",
        "FUNCTION public.clock_now() is another",
    ),
    "another setting": (
        Side.HOST, "ALTER FUNCTION clock_now() SET search_path TO public",
        "ALTER FUNCTION clock_now() RESET search_path", "FUNCTION public.clock_now() is another",
    ),
    "a function of its own": (
        Side.TOOLS, "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$", "DROP FUNCTION mine()",
        "FUNCTION public.mine() is not ours",
    ),
    "a trigger that sleeps": (
        Side.HOST, "ALTER TABLE audit DISABLE TRIGGER USER", "ALTER TABLE audit ENABLE TRIGGER USER", "audit",
    ),
    "a right": (
        Side.HOST, "GRANT UPDATE ON stop TO host_rt", "REVOKE UPDATE ON stop FROM host_rt",
        "ACL public.TABLE stop is another",
    ),
    "a right of a column": (
        Side.HOST, "GRANT UPDATE (engaged) ON stop TO host_rt", "REVOKE UPDATE (engaged) ON stop FROM host_rt",
        "stop.engaged is not ours",
    ),
    "a right by default": (
        Side.HOST, "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO host_rt",
        "ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM host_rt", "DEFAULT ACL",
    ),
    "a policy": (
        Side.HOST, "CREATE POLICY mine ON stop USING (true)", "DROP POLICY mine ON stop",
        "POLICY public.stop mine is not ours",
    ),
    "a rule": (
        Side.HOST, "CREATE RULE mine AS ON INSERT TO audit DO INSTEAD NOTHING", "DROP RULE mine ON audit",
        "RULE public.audit mine is not ours",
    ),
    "a default": (
        Side.HOST, "ALTER TABLE stop ALTER COLUMN engaged SET DEFAULT false",
        "ALTER TABLE stop ALTER COLUMN engaged DROP DEFAULT", "TABLE public.stop is another",
    ),
    "a condition": (
        Side.TOOLS, "ALTER TABLE returns.returns ADD CONSTRAINT mine CHECK (true) NOT VALID",
        "ALTER TABLE returns.returns DROP CONSTRAINT mine", "returns",
    ),
    "a schema before ours": (Side.TOOLS, "CREATE SCHEMA before", "DROP SCHEMA before", "SCHEMA -.before is not ours"),
    "an operator": (
        Side.TOOLS, "CREATE OPERATOR === (FUNCTION = int4eq, LEFTARG = int, RIGHTARG = int)",
        "DROP OPERATOR === (int, int)", "OPERATOR public.=== is not ours",
    ),
    "a role": (Side.HOST, "CREATE ROLE mine LOGIN", "DROP ROLE mine", "ROLE mine is not ours"),
    "a role's setting": (
        Side.HOST, "ALTER ROLE host_owner SET search_path = before", "ALTER ROLE host_owner RESET search_path",
        "ROLE host_owner is another",
    ),
    "a database's setting": (
        Side.HOST, "ALTER DATABASE host SET row_security = off", "ALTER DATABASE host RESET row_security",
        "SETTINGS of role any in database host is another",
    ),
    "a member": (
        Side.HOST, "GRANT host_auditor TO host_rt", "REVOKE host_auditor FROM host_rt",
        "MEMBERSHIP of host_rt in host_auditor",
    ),
    "a right to connect": (
        Side.TOOLS, "GRANT TEMPORARY ON DATABASE tools TO PUBLIC", "REVOKE TEMPORARY ON DATABASE tools FROM PUBLIC",
        "DATABASE tools is another",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, StackParts, Catalogue]]:
    """A cluster with both databases as a new home has them, and what they hold; once all changes are undone, again."""
    with embedded(tmp_path_factory.mktemp("catalogue") / "home") as cluster:
        parts = asyncio.run(_migrated(cluster))
        wanted = seen(parts)
        yield cluster, parts, wanted
        assert differences(wanted, seen(parts)) == ()


async def _migrated(cluster: Cluster) -> StackParts:
    write_passwords(cluster.home)
    server = await postgres.start(cluster)
    await provision(cluster, server)
    parts = StackParts(cluster.home, server, ensure_keys(cluster.home), installed_build(), CHOICE)
    for program in (migrate_host, migrate_tools):
        await run_to_end(cluster.home, program(parts), 60)
    return parts


def seen(parts: StackParts) -> Catalogue:
    password = password_in(parts.home.passwords / "owner" / ADMIN)
    return asyncio.run(catalogue(parts, password, find_program("pg_dump", CHOICE.postgres.bin, 18)))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen_and_named(ours: tuple[Cluster, StackParts, Catalogue], name: str):
    _, parts, wanted = ours
    side, change, undo, named = CHANGES[name]
    with ExitStack() as undone:
        with psycopg.connect(owner_dsn(parts, side), autocommit=True) as owner:
            owner.execute(change)

        def take_back() -> None:
            with psycopg.connect(owner_dsn(parts, side), autocommit=True) as owner:
                owner.execute(undo)

        undone.callback(take_back)
        found = differences(wanted, seen(parts))
        assert any(named in one for one in found), found


def test_rows_are_no_difference(ours: tuple[Cluster, StackParts, Catalogue]):
    _, parts, wanted = ours
    with psycopg.connect(owner_dsn(parts, Side.TOOLS)) as owner:
        owner.execute("SELECT nextval(oid) FROM pg_class WHERE relkind = 'S'")
    assert differences(wanted, seen(parts)) == ()


def test_more_than_a_screen_of_differences_is_counted():
    wanted = Catalogue({}, dict.fromkeys(Side, ""))
    found = Catalogue({f"ROLE r{number:02}": "" for number in range(20)}, dict.fromkeys(Side, ""))
    said = differences(wanted, found)
    assert (len(said), said[0], said[-1]) == (13, "ROLE r00 is not ours", "… and 8 more")


def test_the_same_in_another_order_is_a_difference_too():
    one, two = (f"-- Name: {name}; Type: TABLE; Schema: public; Owner: x\n" for name in "ab")
    wanted, found = (Catalogue({}, {Side.HOST: text, Side.TOOLS: ""}) for text in (one + two, two + one))
    assert differences(wanted, found) == ("host: the same things in another order",)
