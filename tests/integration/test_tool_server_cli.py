"""`kessai-tools`: help that teaches, exit codes that hold, and no traceback for anybody's mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from shared_contracts.contract import FAMILIES
from shared_contracts.tools import TOOLS
from tests.support.tokens import Issuer
from tests.support.tool_orders import line, order, seed
from tests.support.tool_shop import AUDIENCE, Shop, ask, open_shop
from tool_server import cli
from tool_server.store.migrate import NEWEST

COMMANDS = [
    ["serve"], ["migrate"], ["restored"], ["load"], ["disable"], ["enable"], ["revoke"], ["tools"], ["tools", "list"],
    ["approver"], ["approver", "trust"], ["approver", "list"], ["approver", "revoke"],
]  # fmt: skip


class Run:
    """Runs the command line in this process, with the owner's settings."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch
        for name in [name for name in os.environ if name.startswith("KESSAI_TOOLS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("COLUMNS", "200")
        self.out, self.err = "", ""

    def settings(self, **values: object) -> None:
        for name, value in values.items():
            self._monkeypatch.setenv(f"KESSAI_TOOLS_{name.upper()}", str(value))

    def __call__(self, *arguments: str) -> int:
        self._monkeypatch.setattr(sys, "argv", ["kessai-tools", *arguments])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        self.out, self.err = self._capsys.readouterr()
        assert "Traceback" not in self.out + self.err
        return int(ended.value.code or 0)

    def json(self, *arguments: str) -> Any:
        assert self(*arguments, "--json") == 0
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, monkeypatch)


@pytest.fixture
def shop(tmp_path: Path, run: Run) -> Shop:
    shop = open_shop(tmp_path, order("A-1"))
    run.settings(migrate_dsn=shop.database.owner, role_passwords=shop.database.passwords)
    return shop


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(run: Run, command: list[str]) -> None:
    assert run(*command, "--help") == 0
    assert len(run.out) > 200
    if command not in (["tools"], ["approver"]):
        assert "Exit codes: 0 done · 2 bad input · 15 not ready" in run.out


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    assert run() == 2
    assert all(command[0] in run.out + run.err for command in COMMANDS)


def test_migrating_tells_what_it_did(shop: Shop, run: Run) -> None:
    assert run("migrate") == 0
    assert run.out == f"schema {NEWEST}, 0 migrations applied\n"
    assert run.json("migrate")["version"] == NEWEST


def test_loading_tells_what_changed(shop: Shop, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "seed.json"
    file.write_text(seed(order("A-1"), order("A-2")).model_dump_json())
    assert run.json("load", str(file)) == {
        "policies": 0, "orders_new": 1, "orders_updated": 0, "orders_unchanged": 1, "returns": 0, "recipients": 0,
    }  # fmt: skip
    assert run("load", str(file)) == 0
    assert run.out.startswith("orders: 0 new, 0 updated, 2 unchanged")


def test_a_tool_is_removed_and_given_back_by_name(shop: Shop, run: Run) -> None:
    assert run("disable", "create_return") == 0
    listed = {row["name"]: row for row in run.json("tools", "list")}
    assert list(listed) == list(TOOLS)
    assert (listed["create_return"]["enabled"], listed["get_order"]["enabled"]) == (False, True)
    assert listed["create_return"]["switched_by"]
    assert run("tools", "list") == 0
    assert "removed by" in run.out
    assert run("enable", "create_return") == 0
    assert all(row["enabled"] for row in run.json("tools", "list"))
    assert shop.one("SELECT count(*) FROM calls.tool_switch") == 2


REVOKED = "SELECT kind, value FROM calls.revocation ORDER BY kind"


def test_a_key_and_a_token_are_revoked_for_good(shop: Shop, run: Run, tmp_path: Path) -> None:
    run.settings(issuers_file=Issuer.at(tmp_path, kid="k-1").issuers_file)
    assert run("revoke", "--kid", "k-1") == 0
    assert "revoked kid k-1" in run.out
    assert run("revoke", "--kid", "k-1") == 0
    assert "was revoked before" in run.out
    assert run("revoke", "--jti", "j-1") == 0
    assert shop.rows(REVOKED) == [("jti", "j-1"), ("kid", "k-1")]


@pytest.mark.parametrize(
    ("file", "told"),
    [("issuers.json", "known are k-1"), (None, "KESSAI_TOOLS_ISSUERS_FILE"), ("none.json", "none.json cannot be read")],
)
def test_a_key_that_nobody_knows_is_not_revoked_and_the_known_ones_are_named(
    shop: Shop, run: Run, tmp_path: Path, file: str | None, told: str
) -> None:
    Issuer.at(tmp_path, kid="k-1")
    if file is not None:
        run.settings(issuers_file=tmp_path / file)
    assert run("revoke", "--kid", "k-l") == 2
    assert run.out == ""
    assert "no key 'k-l' is published" in run.err
    assert told in run.err
    assert shop.rows(REVOKED) == []


def test_a_key_that_has_called_is_revoked_although_it_is_published_no_more(shop: Shop, run: Run) -> None:
    shop.run(lambda tools: ask(tools, "get_order", {"order_id": "A-1"}, kid="k-old"))
    assert run("revoke", "--kid", "k-old") == 0
    assert shop.rows(REVOKED) == [("kid", "k-old")]


def test_a_tokens_id_is_revoked_as_it_is_written_and_what_the_log_knows_of_it_is_told(shop: Shop, run: Run) -> None:
    shop.run(lambda tools: ask(tools, "get_order", {"order_id": "A-1"}, jti="j-seen"))
    assert run("revoke", "--jti", "j-seen") == 0
    assert "the call log has a call of it" in run.out
    assert run("revoke", "--jti", "j-typo") == 0
    assert "no call of it is in the log" in run.out


def test_help_is_given_by_its_short_name_too(run: Run) -> None:
    for command in ([], *COMMANDS):
        assert run(*command, "--help") == 0
        long = run.out
        if command != ["approver", "revoke"]:  # a key's id may begin so
            assert run(*command, "-h") == 0
            assert run.out == long


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["disable", "nope"], "there is no tool 'nope'"),
        (["disable"], "Missing argument"),
        (["revoke"], "name one of --kid and --jti"),
        (["revoke", "--kid", "a", "--jti", "b"], "name one of --kid and --jti"),
        (["load", "/nowhere/seed.json"], "/nowhere/seed.json: cannot be read: No such file or directory"),
        (["load", "/"], "cannot be read: Is a directory"),
        (["fly"], "No such command 'fly'"),
        (["migrate", "--force"], "No such option"),
    ],
)
def test_bad_input_ends_with_2_and_says_what_to_mend(shop: Shop, run: Run, arguments: list[str], told: str) -> None:
    assert run(*arguments) == 2
    assert told in run.err


def test_what_was_typed_moves_no_cursor(shop: Shop, run: Run) -> None:
    name = "\x1b[31mred\x9b2J\u202e"
    for arguments in (["load", f"/nowhere/{name}"], ["disable", name], ["revoke", "--jti", name], [name]):
        run(*arguments)
        assert all(letter.isprintable() or letter == "\n" for letter in run.out + run.err), arguments
        assert "red" in run.out + run.err


def test_no_name_that_is_typed_again_is_cut_short(shop: Shop, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run("tools", "list") == 0
    assert all(name in run.out for name in TOOLS)


def test_a_seed_file_with_mistakes_ends_with_2_and_names_their_places(shop: Shop, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "seed.json"
    data = json.loads(seed(order("B-1")).model_dump_json())
    data["orders"] = [order("B-1", line(delivered_quantity=2)), order("B-2", discount=10**6, captured=0)]
    file.write_text(json.dumps(data))
    assert run("load", str(file)) == 2
    assert f"{file} cannot be loaded" in run.err
    assert "orders[0].lines[0].delivered_quantity" in run.err
    assert "orders[1].discount" in run.err
    assert shop.one("SELECT count(*) FROM orders.orders") == 1


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "KESSAI_TOOLS_MIGRATE_DSN is missing: the connection of the owner of the database, such as KESSAI_TOOLS_"),
        ({"migrate_dsn": "host=127.0.0.1 port=1 dbname=x"}, "the database does not answer"),
        ({"migrate_dsn": "host=127.0.0.1 port=1 dbname=x"}, "Check host and port in KESSAI_TOOLS_MIGRATE_DSN"),
        ({"migrate_dsn": "postgres//me:hunter2@host"}, "KESSAI_TOOLS_MIGRATE_DSN is no connection string"),
        (
            {"migrate_dsn": "host=127.0.0.1", "migrate_dsm": "typo"},
            "KESSAI_TOOLS_MIGRATE_DSM: no setting has this name",
        ),
    ],
)
def test_what_is_not_ready_ends_with_15_and_names_the_setting(run: Run, settings: dict[str, str], told: str) -> None:
    run.settings(**settings)
    for command in (["migrate"], ["disable", "create_return"], ["tools", "list"]):
        assert run(*command) == 15
        assert told in run.err
        assert "hunter2" not in run.err


@pytest.mark.parametrize(
    ("password", "told"),
    [(None, "wants a password and got none"), ("hunter2", "the database refuses the connection")],
)
def test_a_password_that_is_missing_or_wrong_is_told_as_that(
    shop: Shop, run: Run, password: str | None, told: str
) -> None:
    plain = {name: value for name, value in conninfo_to_dict(shop.database.owner).items() if name != "password"}
    run.settings(migrate_dsn=make_conninfo("", **plain, password=password, passfile="/dev/null"))
    for command in (["migrate"], ["revoke", "--jti", "j-1"], ["tools", "list"]):
        assert run(*command) == 15
        assert told in run.err
        assert "KESSAI_TOOLS_MIGRATE_DSN" in run.err
        assert "does not answer" not in run.err
        assert "hunter2" not in run.err


def test_a_newer_database_ends_with_15(shop: Shop, run: Run) -> None:
    shop.rows("INSERT INTO schema_version (version, name, sha256) VALUES (%s, 'later', 'x')", NEWEST + 1)
    try:
        assert run("migrate") == 15
    finally:
        shop.rows("DELETE FROM schema_version WHERE version = %s", NEWEST + 1)
    assert f"the database has schema {NEWEST + 1}, this release knows {NEWEST}" in run.err


def test_a_role_that_is_not_the_owner_is_told_so(shop: Shop, run: Run) -> None:
    run.settings(migrate_dsn=shop.database.dsn("tools_orders"))
    assert run("disable", "create_return") == 15
    assert "must name the owner of the database" in run.err


def test_a_database_before_its_first_migration_is_told_to_be_migrated(shop: Shop, run: Run) -> None:
    with psycopg.connect(shop.database.admin) as admin:
        name = admin.execute("SELECT current_database()").fetchone()
    run.settings(migrate_dsn=shop.database.admin.replace(str(name[0] if name else ""), "postgres"))
    assert run("tools", "list") == 15
    assert "run `kessai-tools migrate`" in run.err


def test_serving_without_settings_ends_with_15_and_names_them_all(run: Run) -> None:
    assert run("serve") == 15
    assert all(f"KESSAI_TOOLS_{name}" in run.err for name in ("RESOURCE", "ISSUERS_FILE", "ORDERS_DSN", "NOTICES_DSN"))


def test_settings_are_looked_at_before_anything_is_served(run: Run, tmp_path: Path) -> None:
    families = {f"{family}_dsn": "host=db.example" for family in FAMILIES}
    run.settings(resource=AUDIENCE, issuers_file=tmp_path / "issuers.json", maildir=tmp_path / "mail", **families)
    assert run("serve", "--check") == 0
    assert list(tmp_path.iterdir()) == []
    run.settings(smtp_host="mail.example")
    assert run("serve", "--check") == 15
    assert "KESSAI_TOOLS_MAIL_FROM is missing" in run.err
    run.settings(smtp_prot="25")
    assert run("serve", "--check") == 15
    assert "KESSAI_TOOLS_SMTP_PROT: no setting has this name" in run.err


def completed(*words: str, **settings: str) -> set[str]:
    environment = {**os.environ, "_KESSAI_TOOLS_COMPLETE": "complete_bash", "COMP_CWORD": str(len(words)), **settings}
    program = "import sys; sys.argv[0] = 'kessai-tools'; from tool_server.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment | {"COMP_WORDS": " ".join(["kessai-tools", *words])},
        capture_output=True, text=True, timeout=60, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stderr == ""
    return set(done.stdout.split())


def test_the_shell_completes_the_names_of_tools_and_of_published_keys(tmp_path: Path) -> None:
    assert completed("disable", "send_") == {"send_return_notice", "send_correction_notice"}
    file = Issuer.at(tmp_path, kid="k-1").issuers_file
    known = {"KESSAI_TOOLS_MIGRATE_DSN": "host=db.example", "KESSAI_TOOLS_ISSUERS_FILE": str(file)}
    assert completed("revoke", "--kid", "k", **known) == {"k-1"}
    assert completed("revoke", "--kid", "k", **{**known, "KESSAI_TOOLS_ISSUERS_FILE": "/nowhere"}) == set()
    assert completed("revoke", "--kid", "k") == set()
