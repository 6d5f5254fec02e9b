"""What is not ready ends with exit 15 and says what, where and how it is mended; no password is ever repeated."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from host.store.migrate import migrate
from host.workflows.catalogue import WORKFLOWS
from tests.support.cli import EXAMPLES, ROOT, Cli
from tests.support.cluster import create_database, drop_database

pytestmark = pytest.mark.xdist_group("cli-mistakes")
NORMAL = str(EXAMPLES / "normal.json")
AUTHZ = ROOT / "host" / "data" / "authz-v7.json"
SECRET = "s3cr3t-of-nobody"


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def links(cli: Cli, dsn: str, url: str = "http://127.0.0.1:9/mcp") -> dict[str, str]:
    key = cli.home / "keys" / "signing.jwk"
    return {
        "KESSAI_DSN": dsn, "KESSAI_SERVER_URL": url, "KESSAI_ISSUER": "https://issuer.example",
        "KESSAI_SIGNING_KEY_FILE": str(key),
    }  # fmt: skip


def test_a_worker_without_what_seals_the_record_says_so_before_anything_else(stack: Cli, closed_port: int):
    dsn = f"host=127.0.0.1 port={closed_port} dbname=host user=host_rt"
    said = stack("worker", **links(stack, dsn))
    assert said.code == 15
    assert said.err.count("record_not_sealed") == 1
    assert "KESSAI_SEALER_DSN" in said.err


@pytest.mark.parametrize("command", [("list",), ("show", "R-1"), ("run", NORMAL)])
def test_a_database_that_does_not_answer(stack: Cli, closed_port: int, command: tuple[str, ...]):
    dsn = f"host=127.0.0.1 port={closed_port} dbname=host user=host_rt password={SECRET}"
    said = stack(*command, **links(stack, dsn))
    assert (said.code, said.out) == (15, "")
    assert f"port={closed_port}" in said.err
    assert "KESSAI_DSN" in said.err
    assert SECRET not in said.err


def test_a_migration_without_its_database_names_its_own_setting(nowhere: Cli, closed_port: int):
    said = nowhere("migrate", KESSAI_MIGRATE_DSN=f"host=127.0.0.1 port={closed_port} dbname=host user=host_owner")
    assert (said.code, said.out) == (15, "")
    assert "KESSAI_MIGRATE_DSN" in said.err


@pytest.mark.parametrize("dsn", [f"nonsense {SECRET}", f"hots=127.0.0.1 password={SECRET}"])
def test_a_connection_string_that_is_none(stack: Cli, dsn: str):
    said = stack("list", KESSAI_DSN=dsn)
    assert (said.code, said.out) == (15, "")
    assert "KESSAI_DSN" in said.err
    assert SECRET not in said.err


def test_a_password_that_is_wrong(stack: Cli):
    port = stack.part("postgres")["port"]
    said = stack("list", KESSAI_DSN=f"host=127.0.0.1 port={port} dbname=host user=host_rt password={SECRET}")
    assert (said.code, said.out) == (15, "")
    assert "the database refuses the connection" in said.err
    assert "password authentication failed" in said.err
    assert SECRET not in said.err


@pytest.mark.parametrize("command", [("list",), ("run", NORMAL), ("migrate",), ("doctor",)])
def test_a_password_that_is_missing(stack: Cli, command: tuple[str, ...]):
    role, setting = ("host_owner", "KESSAI_MIGRATE_DSN") if command == ("migrate",) else ("host_rt", "KESSAI_DSN")
    dsn = make_conninfo(stack.dsn("host", role), passfile="/dev/null")
    said = stack(*command, **{**links(stack, dsn), setting: dsn})
    assert said.code == 15
    assert "wants a password and got none" in said.out + said.err
    assert setting in said.out + said.err
    assert "does not answer" not in said.err


def test_a_migration_whose_connection_string_is_none(nowhere: Cli):
    said = nowhere("migrate", KESSAI_MIGRATE_DSN=f"nonsense {SECRET}")
    assert (said.code, said.out) == (2, "")
    assert "KESSAI_MIGRATE_DSN is no connection string" in said.err
    assert SECRET not in said.err


def test_links_that_are_set_in_part_are_told_with_what_each_is_and_an_example(nowhere: Cli):
    said = nowhere("run", NORMAL, KESSAI_DSN="host=db.example")
    lines = said.err.splitlines()
    assert (said.code, said.out, len(lines)) == (2, "", 4)
    for line, name in zip(lines, ("SERVER_URL", "ISSUER", "SIGNING_KEY_FILE"), strict=False):
        assert f"KESSAI_{name} is missing: the " in line
        assert f"such as KESSAI_{name}=" in line
    assert "unset KESSAI_DSN" in lines[3]


def test_a_tool_server_that_does_not_answer(stack: Cli, closed_port: int):
    dsn = stack.dsn("host", "host_rt")
    said = stack("run", NORMAL, **links(stack, dsn, f"http://127.0.0.1:{closed_port}/mcp"))
    assert (said.code, said.out) == (15, "")
    assert said.err.startswith("kessai: The tool server cannot be asked")


def test_a_tool_server_that_does_not_trust_our_issuer(stack: Cli):
    url = f"http://127.0.0.1:{stack.part('tool_server')['port']}/mcp"
    said = stack("run", NORMAL, **links(stack, stack.dsn("host", "host_rt"), url))
    assert (said.code, said.out) == (15, "")
    assert said.err.startswith("kessai: The tool server refused our probe token")


def test_a_port_that_is_in_use(nowhere: Cli):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = nowhere("run", NORMAL, KESSAI_TOOL_SERVER_PORT=str(port))
    assert (said.code, said.out) == (15, "")
    assert f"Port {port}" in said.err
    assert "KESSAI_TOOL_SERVER_PORT" in said.err
    assert nowhere.status()["mode"] == "down"
    nowhere("empty", "--yes")


def test_a_key_file_that_others_can_read(stack: Cli, tmp_path: Path):
    key = shutil.copy(stack.home / "keys" / "signing.jwk", tmp_path / "signing.jwk")
    Path(key).chmod(0o644)
    said = stack("run", NORMAL, **{**links(stack, stack.dsn("host", "host_rt")), "KESSAI_SIGNING_KEY_FILE": str(key)})
    assert (said.code, said.out) == (15, "")
    assert str(key) in said.err
    assert "chmod 600" in said.err


def test_a_key_file_that_is_no_key(stack: Cli, tmp_path: Path):
    key = tmp_path / "signing.jwk"
    key.write_text('{"kty": "oct"}', encoding="utf-8")
    key.chmod(0o600)
    said = stack("run", NORMAL, **{**links(stack, stack.dsn("host", "host_rt")), "KESSAI_SIGNING_KEY_FILE": str(key)})
    assert (said.code, said.out) == (15, "")
    assert str(key) in said.err


def test_a_home_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    cli = Cli(tmp_path / "file" / "home", {})
    for command in (("run", NORMAL), ("list",), ("up",)):
        said = cli(*command)
        assert (said.code, said.out) == (15, ""), command
        assert "KESSAI_HOME" in said.err


def test_a_home_that_belongs_to_something_else(tmp_path: Path):
    (tmp_path / "letters.txt").write_text("dear diary", encoding="utf-8")
    cli = Cli(tmp_path, {})
    for command in (("run", NORMAL), ("run", NORMAL, "--fresh"), ("empty", "--yes")):
        assert cli(*command).code == 15
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("INSERT INTO schema_version (name, sha256) VALUES ('9999_later.sql', '-')", "newer"),
        ("DELETE FROM schema_version WHERE name LIKE '0004%%'", "older"),
        ("DROP TABLE schema_version", "no schema"),
    ],
)
def test_a_database_of_another_schema(stack: Cli, change: str, said: str):
    dsn = create_database()
    migrate(dsn, WORKFLOWS)
    with psycopg.connect(dsn) as owner:
        owner.execute(change, ())
    for command in (("list",), ("run", NORMAL)):
        told = stack(*command, **links(stack, dsn))
        assert (told.code, told.out) == (15, "")
        assert said in told.err
    if said == "newer":
        assert stack("migrate", KESSAI_MIGRATE_DSN=dsn).code == 15
    drop_database(dsn)


def test_an_authorization_set_that_cannot_be_used(stack: Cli, tmp_path: Path):
    bad = tmp_path / "authz.json"
    broken = json.loads(AUTHZ.read_text("utf-8"))
    broken["principals"][0]["scopes"].append("orders:all")
    broken["approvers"][0]["limit"]["amount"] = -1
    for content, told in (
        ("{}", ("  principals: is missing; write it",)),
        (
            '{"version": "v", "principals": [], "approvers": [], "operators": [], "admin": true}',
            ("  admin: is not known here; correct the name, or remove it",),
        ),
        (json.dumps(broken), ("  principals[0].scopes[6]: must be 'orders:read'", "  approvers[0].limit.amount: ")),
        ("\0", ("  the file: Invalid JSON",)),
        ("[]", ("  the file: ",)),
    ):
        bad.write_text(content, encoding="utf-8")
        said = stack("run", NORMAL, KESSAI_AUTHZ_FILE=str(bad))
        assert (said.code, said.out) == (15, "")
        assert said.err.startswith(f"kessai: the authorization set {bad} cannot be used")
        assert all(f"\n{line}" in said.err for line in told), said.err
        assert "pydantic" not in said.err


def test_a_token_that_no_server_runs_to_take(nowhere: Cli):
    said = nowhere("token", "issue", "--customer", "C-2001")
    assert (said.code, said.out) == (15, "")
    assert "kessai up" in said.err
    assert not nowhere.home.exists()


@pytest.mark.parametrize(
    "command", [("stop", "--as", "ito", "--reason", "x"), ("list",), ("run", NORMAL), ("reconcile",)]
)
def test_an_owners_connection_alone_sends_nothing_to_this_machines_own_stack(nowhere: Cli, command: tuple[str, ...]):
    said = nowhere(*command, KESSAI_MIGRATE_DSN="host=db.example dbname=host user=host_owner")
    assert (said.code, said.out) == (2, "")
    assert "KESSAI_DSN is missing" in said.err
    assert "Or unset KESSAI_MIGRATE_DSN to use this machine's own stack." in said.err
    assert not nowhere.home.exists()
