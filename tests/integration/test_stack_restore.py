"""A restored home holds what was backed up, with the same rights, begins stopped, and is there whole or not at all."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from host.stack import assembly
from host.stack.assembly import StackParts
from host.stack.errors import StackError, StackProblem
from host.stack.home import begin_home, finish_home, open_home
from host.stack.initialise import password_in
from host.stack.manifest import copy_dump, read_backup
from host.stack.mode import Mode
from host.stack.removal import empty_home
from host.stack.roles import LIMITED, Side, dsn
from host.stack.serving import ADMIN
from host.stack.status import status
from tests.support.backups import backed_up, replaced, restored, rewritten, text_of, told, with_parts
from tool_server.store.migrate import MIGRATIONS, Migration

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("stack-restore")]  # one set-up serves all

ROLES = """SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls,
    rolconnlimit FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1"""
DATABASE = "SELECT datacl::text, pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()"
SETTINGS = """SELECT coalesce(rolname, ''), setconfig FROM pg_db_role_setting LEFT JOIN pg_roles r ON r.oid = setrole
    WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1"""
NOTICES = """INSERT INTO notices.outbox (tenant_id, idempotency_key, customer_id, order_id, return_id, kind, message_id,
    channel, destination_ref, status, content, sent_at)
    SELECT 't', s, 'c', 'o', 'R-' || s, 'return', '<' || s || '@shop.example>', 'smtp', 'd', s,
    CASE WHEN s <> 'sent' THEN 'mail'::bytea END, CASE WHEN s = 'sent' THEN now() END
    FROM unnest(ARRAY['pending', 'sending', 'sent', 'rejected', 'unknown']) AS s"""
LEFT = """SELECT DISTINCT defaclrole::regrole::text FROM pg_default_acl
    UNION ALL SELECT 'large object' FROM pg_largeobject_metadata"""
COMMITTED = "SELECT pg_current_xact_id()::text::numeric / 4294967296 > 1"
STOPS = "SELECT scope, engaged FROM stop ORDER BY scope"
OLDER = 12  # migrations: a release from the time before approvals
RUNS_WHEN_FILLED = """CREATE FUNCTION made(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'mine') THEN CREATE ROLE mine LOGIN; END IF;
    RETURN true; END $$;
    CREATE TABLE filled (x int CHECK (public.made(x)));
    CREATE ROLE mine; INSERT INTO filled VALUES (1)"""
NO_STOP = """CREATE FUNCTION never_stop() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN NEW.engaged := false; RETURN NEW; END $$;
    CREATE TRIGGER never_stop BEFORE UPDATE ON stop FOR EACH ROW EXECUTE FUNCTION never_stop()"""
ALL_STOPPED = [("new_work", True), ("parallel", True), ("reads", True), ("updates", True)]
BROKEN = {
    "it has no manifest.json": lambda copy: (copy / "manifest.json").unlink(),
    "is no JSON": lambda copy: (copy / "manifest.json").write_text("{"),
    "a newer program wrote it": lambda copy: rewritten(copy, format=2, what="ever"),
    "does not hold what it should": lambda copy: rewritten(copy, epoch="x"),
    "tools.dump is not there": lambda copy: (copy / "tools.dump").unlink(),
    "host.dump has": lambda copy: (copy / "host.dump").write_bytes((copy / "host.dump").read_bytes()[:-1]),
    "tools.dump has another content": lambda copy: (copy / "tools.dump").write_bytes(
        (copy / "tools.dump").read_bytes()[:-1] + b"!"
    ),
    "and the data of PostgreSQL 17": lambda copy: rewritten(copy, postgresql_major=17),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home's backup, with notices of every status; the home beside it is down."""
    folder = tmp_path_factory.mktemp("original")
    with_parts(folder / "home", lambda parts: told(parts, Side.TOOLS, NOTICES))
    backed_up(folder / "home", folder / "copy")
    yield folder / "copy"
    asyncio.run(empty_home(folder / "home"))


@pytest.fixture(scope="module")
def made(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home that was restored from it."""
    root = tmp_path_factory.mktemp("made") / "home"
    restored(root, original)
    yield root
    asyncio.run(empty_home(root))


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    """To be spoilt."""
    return Path(shutil.copytree(original, tmp_path / "copy"))


def left_behind(parts: StackParts) -> None:
    """What each role may make of its own, wherever it may connect; none of it is the product's."""
    for side in Side:
        for role in LIMITED[side]:
            with psycopg.connect(dsn(parts.home, parts.server, side, role), autocommit=True) as connection:
                connection.execute("SELECT lo_create(0)")
                connection.execute("ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC")


def refused(root: Path, directory: Path) -> StackError:
    with pytest.raises(StackError) as caught:
        restored(root, directory)
    return caught.value


def test_a_backup_of_the_restored_home_says_the_same_but_for_the_stop(original: Path, made: Path, tmp_path: Path):
    backed_up(made, tmp_path / "again")
    changed = {Side.HOST: {"new_work", "updates", "reads", "parallel"}, Side.TOOLS: {"pending", "sending"}}
    for side in Side:
        files = [directory / f"{side}.dump" for directory in (original, tmp_path / "again")]
        before, after = (text_of(file, "schema") for file in files)
        assert len([line for line in before if line.startswith(("GRANT", "REVOKE"))]) > 20
        assert before == after
        before, after = (text_of(file, "data") for file in files)
        lost = [line for line in before if line not in set(after) and "setval" not in line]
        assert {set(line.split("\t")[:2]) & changed[side] != set() for line in lost} == {True}
        assert len(lost) == len(changed[side])


def test_roles_and_databases_have_the_rights_and_bounds_of_a_new_home(original: Path, made: Path):
    def rights(parts: StackParts) -> dict[str, Any]:
        return {
            f"{side} {query}": told(parts, side, query) for side in Side for query in (ROLES, DATABASE, SETTINGS)
        }  # fmt: skip

    assert with_parts(made, rights) == with_parts(original.parent / "home", rights)


def test_the_runtime_role_can_do_no_more_than_it_may(made: Path):
    def tried(parts: StackParts) -> None:
        with psycopg.connect(assembly.host_dsn(parts), autocommit=True) as runtime:
            runtime.execute("SELECT count(*) FROM workflow")
            for statement in (
                "UPDATE stop SET engaged = false", "DELETE FROM stop", "UPDATE workflow SET state = 'COMPLETED'",
                "DELETE FROM audit", "TRUNCATE checkpoint", "CREATE TABLE public.mine (x int)",
                "CREATE TEMP TABLE mine (x int)", "SELECT stop_lock_key()", "ALTER TABLE effect DISABLE TRIGGER ALL",
            ):  # fmt: skip
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    runtime.execute(statement)

    with_parts(made, tried)


def test_passwords_keys_and_the_name_of_the_issuer_are_the_homes_own(original: Path, made: Path):
    source, found = open_home(original.parent / "home"), open_home(made)
    assert source.id != found.id
    for name in ("passwords/host/host_rt", "passwords/owner/tools_owner", "keys/signing.jwk"):
        assert (source.root / name).read_text() != (found.root / name).read_text()
    assert {path.name for path in (made / "passwords").rglob("*") if path.is_file()} >= {
        role for side in Side for role in LIMITED[side]
    }


def test_everything_is_stopped_and_nothing_runs(made: Path):
    assert with_parts(made, lambda parts: told(parts, Side.HOST, STOPS)) == ALL_STOPPED
    seen = asyncio.run(status(made))
    assert (seen.mode, seen.well) == (Mode.DOWN, True)


def test_what_waited_to_be_sent_is_unknown_and_what_had_its_end_keeps_it(made: Path):
    query = "SELECT idempotency_key, status, reason, content IS NULL FROM notices.outbox ORDER BY 1"
    assert with_parts(made, lambda parts: told(parts, Side.TOOLS, query)) == [
        ("pending", "unknown", "restored", True), ("rejected", "rejected", None, False),
        ("sending", "unknown", "restored", True), ("sent", "sent", None, True), ("unknown", "unknown", None, False),
    ]  # fmt: skip


def test_no_transaction_of_the_restored_home_has_the_number_of_an_earlier_one(made: Path, tmp_path: Path):
    assert with_parts(made, lambda parts: told(parts, Side.HOST, COMMITTED)) == [(True,)]
    again = backed_up(made, tmp_path / "copy")
    assert again.manifest.epoch == 1
    root = tmp_path / "home"
    restored(root, tmp_path / "copy")
    try:
        query = "SELECT (pg_current_xact_id()::text::numeric / 4294967296)::int"
        assert with_parts(root, lambda parts: told(parts, Side.HOST, query)) == [(2,)]
    finally:
        asyncio.run(empty_home(root))


@pytest.mark.parametrize("why", BROKEN)
def test_what_is_no_whole_backup_for_these_programs_makes_nothing(copy: Path, tmp_path: Path, why: str):
    BROKEN[why](copy)
    found = refused(tmp_path / "home", copy)
    assert why in found.what
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_directory_that_is_none_makes_nothing(tmp_path: Path, name: str):
    (tmp_path / "file").write_text("mine")
    found = refused(tmp_path / "home", tmp_path / name)
    assert found.problem is StackProblem.BACKUP_UNUSABLE
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("step", ["list", "fill"])
@pytest.mark.parametrize("side", Side)
def test_a_dump_that_cannot_be_loaded_leaves_nothing(copy: Path, tmp_path: Path, side: Side, step: str):
    whole = (copy / f"{side}.dump").read_bytes()
    replaced(copy, side, b"PGDMP and then nothing that makes sense" if step == "list" else whole[:-100])
    found = refused(tmp_path / "home", copy)
    assert f"{step} {side} ended with exit code 1" in found.what
    assert "pg_restore: error" in found.mend  # and not where it stood: that has gone
    assert str(tmp_path) not in found.mend
    assert not (tmp_path / "home").exists()


def test_a_backup_that_brings_a_function_of_its_own_is_refused_with_its_name_and_leaves_nothing(tmp_path: Path):
    source = tmp_path / "source"
    try:
        with_parts(source, lambda parts: told(parts, Side.HOST, NO_STOP))
        backed_up(source, tmp_path / "copy")
        found = refused(tmp_path / "home", tmp_path / "copy")
    finally:
        asyncio.run(empty_home(source))
    assert found.problem is StackProblem.BACKUP_UNUSABLE
    assert "host: FUNCTION public.never_stop() is not ours" in found.mend
    assert "host: TRIGGER public.stop never_stop is not ours" in found.mend
    assert not (tmp_path / "home").exists()


def test_what_roles_leave_behind_of_their_own_keeps_no_backup_from_being_made_or_restored(tmp_path: Path):
    with_parts(tmp_path / "home", left_behind)
    backed_up(tmp_path / "home", tmp_path / "copy")
    restored(tmp_path / "again", tmp_path / "copy")

    def found(parts: StackParts) -> list[list[tuple[Any, ...]]]:
        return [told(parts, side, LEFT) for side in Side]

    assert with_parts(tmp_path / "again", found) == [[], [("tools_owner",)]]
    for name in ("home", "again"):
        asyncio.run(empty_home(tmp_path / name))


def test_code_of_a_dump_that_runs_while_it_is_filled_in_makes_no_role(tmp_path: Path):
    source = tmp_path / "source"
    try:
        with_parts(source, lambda parts: told(parts, Side.HOST, RUNS_WHEN_FILLED))
        backed_up(source, tmp_path / "copy")
        found = refused(tmp_path / "home", tmp_path / "copy")
    finally:
        asyncio.run(empty_home(source))
    assert "fill host ended with exit code 1" in found.what
    assert "permission denied to create role" in found.mend


def test_what_is_restored_is_what_was_checked_whatever_is_written_to_the_backup_meanwhile(copy: Path, tmp_path: Path):
    found = read_backup(copy)
    good = (copy / "host.dump").read_bytes()
    asyncio.run(copy_dump(found, Side.HOST, tmp_path / "host.dump"))
    assert (tmp_path / "host.dump").read_bytes() == good
    for number, other in enumerate((good[:-1] + b"!", good + b"!", good[:-1])):
        (copy / "host.dump").write_bytes(other)
        with pytest.raises(StackError) as caught:
            asyncio.run(copy_dump(found, Side.HOST, tmp_path / f"{number}.dump"))
        assert caught.value.problem is StackProblem.BACKUP_UNUSABLE


@pytest.mark.parametrize("name", ["manifest.json", "host.dump"])
def test_a_pipe_or_a_device_in_the_place_of_a_file_of_a_backup_is_refused_at_once(
    copy: Path, tmp_path: Path, name: str
):
    (copy / name).unlink()
    os.mkfifo(copy / name)
    assert f"{name} cannot be read: it is a pipe" in refused(tmp_path / "home", copy).what
    (copy / name).unlink()
    (copy / name).symlink_to("/dev/zero")
    assert f"{name} cannot be read: it is a device" in refused(tmp_path / "home", copy).what
    assert not (tmp_path / "home").exists()


def test_a_home_that_is_there_is_refused_and_left_as_it_is(original: Path, made: Path, tmp_path: Path):
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*")}
    assert refused(made, original).problem is StackProblem.HOME_TAKEN
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*")} == before
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").write_text("mine")
    assert refused(tmp_path / "theirs", original).problem is StackProblem.HOME_FOREIGN
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["file"]


def test_an_unfinished_home_is_opened_by_nobody_and_emptied_by_anybody(original: Path, tmp_path: Path):
    root = tmp_path / "home"
    begin_home(root)
    for attempt in (
        lambda: open_home(root), lambda: begin_home(root), lambda: backed_up(root, tmp_path / "copy"),
        lambda: restored(root, original), lambda: with_parts(root, lambda _: None),
    ):  # fmt: skip
        with pytest.raises(StackError) as caught:
            attempt()
        assert caught.value.problem is StackProblem.HOME_UNFINISHED
    seen = asyncio.run(status(root))
    assert (seen.well, "did not come to its end" in seen.why) == (False, True)
    assert asyncio.run(empty_home(root)) is True
    finish_home(begin_home(root))
    assert open_home(root).root == root
    asyncio.run(empty_home(root))


def test_a_backup_of_an_older_schema_goes_on_to_this_one_and_of_a_newer_one_makes_nothing(tmp_path: Path):
    source, root = tmp_path / "source", tmp_path / "home"
    versions = "SELECT name, sha256 FROM schema_version ORDER BY name"
    known = with_parts(source, lambda parts: told(parts, Side.TOOLS, versions))
    try:
        with_parts(source, lambda parts: made_of(parts, MIGRATIONS[:OLDER]))
        backed_up(source, tmp_path / "older")
        restored(root, tmp_path / "older")
        assert with_parts(root, lambda parts: told(parts, Side.TOOLS, versions)) == known
        asyncio.run(empty_home(root))
        newer = replace(MIGRATIONS[-1], version=9999, name="9999_come_later.sql", sql="SELECT 1")
        with_parts(source, lambda parts: made_of(parts, (*MIGRATIONS, newer)))
        backed_up(source, tmp_path / "newer")
        assert "migrate tools ended with exit code" in refused(root, tmp_path / "newer").what
        assert list(root.iterdir()) == []
    finally:
        asyncio.run(empty_home(root))
        asyncio.run(empty_home(source))


def made_of(parts: StackParts, migrations: tuple[Migration, ...]) -> None:
    """The tools' database as a release with these migrations makes it."""
    admin = parts.server.conninfo("postgres", ADMIN, password=password_in(parts.home.passwords / "owner" / ADMIN))
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("DROP DATABASE tools")
        connection.execute("CREATE DATABASE tools TEMPLATE template0 OWNER tools_owner")
    with psycopg.connect(assembly.owner_dsn(parts, Side.TOOLS)) as owner:
        owner.execute(
            "CREATE TABLE public.schema_version (version integer PRIMARY KEY, name text NOT NULL, sha256 text NOT NULL,"
            " applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
        for migration in migrations:
            owner.execute(migration.sql)
            row = (migration.version, migration.name, migration.sha256)
            owner.execute("INSERT INTO public.schema_version VALUES (%s, %s, %s)", row)
