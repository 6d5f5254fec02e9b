"""A person's yes or no from the command line, on a real stack: it is shown, asked, signed, and the case goes on."""

from __future__ import annotations

import json
import re
import signal
import stat
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli
from tests.support.deciding import (
    END_OF_INPUT,
    SECRET,
    approvers,
    authorization_with,
    digest_of,
    high_value,
    made,
    typed,
)
from tests.support.records import fits

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture(scope="module")
def desk(stack: Cli, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """The running stack, as tanaka's own machine sees it."""
    return approvers(stack, tmp_path_factory.mktemp("tanaka"), "tanaka")


@pytest.fixture(scope="module")
def waiting(stack: Cli, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A case that nobody in this file gets decided."""
    return high_value(stack, tmp_path_factory.mktemp("waiting"), "A-1112", "C-2041", "L4")


def test_a_key_is_its_owners_alone_and_counts_on_both_sides_by_two_audited_acts(stack: Cli, desk: Cli):
    folder = Path(desk.settings["KESSAI_APPROVERS"])
    private = folder / "tanaka.pem"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, private)] == [0o700, 0o600]
    assert private.read_text("utf-8").startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    kid = json.loads((folder / "tanaka.json").read_text("utf-8"))["key"]["kid"]
    listed = fits(desk("approver", "list", "--json").json(), "command.approver_list.json")["approvers"]
    (mine,) = (row for row in listed if row["kid"] == kid)
    assert (mine["name"], mine["limit"]["amount"], mine["revoked_at"]) == ("tanaka", 500_000, None)
    assert "no key: kessai approver add mori" in desk("approver", "list").out
    with stack.owner("host") as host, stack.owner("tools") as tools:
        audited = host.execute("SELECT action, actor FROM audit WHERE details ->> 'kid' = %s", (kid,)).fetchall()
        trusted = tools.execute("SELECT trusted_by FROM returns.approvers WHERE kid = %s", (kid,)).fetchall()
    assert audited == [("approver_trusted", mine["added_by"])]
    assert trusted == [(mine["added_by"],)]


def test_an_approver_is_told_what_to_do_where_no_key_can_be_made(desk: Cli, tmp_path: Path):
    again = desk("approver", "add", "tanaka")
    assert (again.code, again.out) == (2, "")
    assert "approver trust" in again.err
    assert "approver revoke tanaka" in again.err
    unknown = desk("approver", "add", "hanako")
    assert unknown.code == 2
    assert "mori, novak, suzuki, tanaka" in unknown.err
    bare = desk.with_settings(KESSAI_APPROVERS=str(tmp_path / "keys"), KESSAI_APPROVER_PASSPHRASE_FILE="")
    without = bare("approver", "add", "suzuki")
    assert without.code == 2
    assert "KESSAI_APPROVER_PASSPHRASE_FILE" in without.err
    inside = desk.with_settings(KESSAI_APPROVERS=str(desk.home / "keys"))
    assert inside("approver", "add", "suzuki").code == 2
    assert not (tmp_path / "keys").exists()
    assert not (desk.home / "keys" / "suzuki.pem").exists()


def test_a_second_key_of_one_person_is_refused_and_a_revoked_one_never_comes_back(desk: Cli, tmp_path: Path):
    first = approvers(desk, tmp_path, "mori")
    (tmp_path / "other").mkdir()
    second = first.with_settings(KESSAI_APPROVERS=str(tmp_path / "other" / "keys"))
    refused = second("approver", "add", "mori")
    assert refused.code == 2
    assert "one key at a time" in refused.err
    assert first("approver", "revoke", "mori").code == 0
    back = first("approver", "trust", str(tmp_path / "keys" / "mori.json"))
    assert back.code == 2
    assert "revoked" in back.err
    assert second("approver", "trust", str(tmp_path / "other" / "keys" / "mori.json")).code == 0
    assert second("approver", "revoke", "mori").code == 0


def test_a_yes_under_a_running_worker_takes_effect_at_once_and_makes_one_return_and_one_notice(
    desk: Cli, tmp_path: Path
):
    record = high_value(desk, tmp_path, "A-1142", "C-2031", "L4")
    name = record["calls"][-1]["step_id"]
    said = desk("approve", name, "--as", "tanaka", "--yes", "--digest", digest_of(record), "--json")
    taken = fits(said.json(), "command.approve.json")
    assert (said.code, taken["approver"], taken["decision"]) == (0, "tanaka", "approve")
    ended = desk("run", record["workflow_id"], "--json")
    after = fits(ended.json(), "record.json")
    assert (ended.code, after["state"]) == (0, "COMPLETED")
    times = {point["event"]: datetime.fromisoformat(point["at"]) for point in after["checkpoints"]}
    assert 0 <= (times["return_verified"] - times["approved"]).total_seconds() < 5
    assert made(desk, "A-1142") == (1, 1)
    (kept,) = after["approvals"]
    assert (kept["event_id"], kept["action_digest"]) == (taken["event_id"], digest_of(record))
    late = desk("approve", name, "--as", "tanaka", "--yes", "--digest", digest_of(record))
    assert late.code == 2
    assert "tanaka decided: approve" in late.err


def test_what_is_decided_on_is_shown_from_the_database(desk: Cli, waiting: dict[str, Any]):
    shown = desk("approve", waiting["workflow_id"], "--as", "tanaka")
    assert shown.code == 2
    for word in (
        "A-1112", "policy-v12", "address://acme-jp/C-2041@1", "returns-desk@acme-jp",
        "create_return, then send_return_notice",
        "with cancel_return until 24 h after it", '"line_id":"L4"', "JPY", digest_of(waiting),
    ):  # fmt: skip
        assert word in shown.out, word
    amount = waiting["approvals"][-1]["action"]["amount"]["amount"]
    assert re.search(f"^amount +{amount:,} JPY$", shown.out, re.MULTILINE)
    assert "--yes --digest" in shown.err
    run = desk("run", waiting["workflow_id"])
    assert (run.code, f"approve {waiting['workflow_id']} --as NAME" in run.out) == (10, True)


def test_a_no_ends_the_case_with_its_reason_and_nothing_is_made(desk: Cli, tmp_path: Path):
    record = high_value(desk, tmp_path, "A-1208", "C-2041", "L5")
    given = ("--as", "tanaka", "--reason", "It was never ours.", "--yes", "--digest", digest_of(record))
    said = desk("deny", record["workflow_id"], *given)
    assert (said.code, "ended as REJECTED" in said.err, "worker" in said.err) == (0, True, False), said.err
    after = desk("show", record["workflow_id"], "--json").json()
    assert (after["state"], after["reason"], after["effects"]) == ("REJECTED", "approval_denied", [])
    assert after["approvals"][0]["reason"] == "It was never ours."
    assert made(desk, "A-1208") == (0, 0)


def test_on_a_terminal_a_person_is_asked_and_how_long_they_looked_is_recorded(desk: Cli, tmp_path: Path):
    record = high_value(desk, tmp_path, "A-1160", "C-2059", "L2")
    arguments = ("approve", record["workflow_id"], "--as", "tanaka")
    code, seen = typed(desk, [("Approve this?", "n")], *arguments)
    assert code == 2
    assert "Nothing was decided" in seen
    code, seen = typed(desk, [("Approve this?", "y"), ("Passphrase of tanaka", SECRET)], *arguments)
    assert code == 0, seen
    assert SECRET not in seen
    (kept,) = desk("run", record["workflow_id"], "--json").json()["approvals"]
    assert kept["approval_seconds"] > 0
    assert made(desk, "A-1160") == (1, 1)


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "no such case": (("approve", "no-such-case", "--as", "tanaka"), "nothing is known"),
    "no approver": (("approve", "ID", "--as", "hanako"), "mori, novak, suzuki, tanaka"),
    "no key here": (("approve", "ID", "--as", "suzuki", "--yes", "--digest", "DIGEST"), "approver add suzuki"),
    "no digest": (("approve", "ID", "--as", "tanaka", "--yes"), "--digest"),
    "another digest": (("approve", "ID", "--as", "tanaka", "--yes", "--digest", "0" * 64), "something else"),
    "no terminal": (("approve", "ID", "--as", "tanaka"), "no terminal"),
    "no reason": (("deny", "ID", "--as", "tanaka", "--reason", " "), "needs its reason"),
    "too long a reason": (
        ("deny", "ID", "--as", "tanaka", "--yes", "--digest", "DIGEST", "--reason", "x" * 5000), "reason",
    ),
}  # fmt: skip


def position(cli: Cli, record: dict[str, Any]) -> Any:
    with cli.owner("host") as host:
        return host.execute(
            "SELECT version, state, (SELECT count(*) FROM approval a WHERE a.workflow_id = w.workflow_id) "
            "FROM workflow w WHERE workflow_id = %s",
            (record["workflow_id"],),
        ).fetchone()


def refused(cli: Cli, record: dict[str, Any], *arguments: str) -> str:
    """Do what has to be refused; gives the words."""
    given = {"ID": record["workflow_id"], "DIGEST": digest_of(record)}
    before = position(cli, record)
    said = cli(*(given.get(argument, argument) for argument in arguments))
    assert said.code == 2, said.err
    assert position(cli, record) == before
    return said.err


@pytest.mark.parametrize("what", REFUSED)
def test_a_decision_that_cannot_be_taken_says_why_and_changes_nothing(desk: Cli, waiting: dict[str, Any], what: str):
    arguments, said = REFUSED[what]
    assert said in refused(desk, waiting, *arguments)


def test_a_wrong_passphrase_changes_nothing(desk: Cli, waiting: dict[str, Any], tmp_path: Path):
    file = tmp_path / "wrong"
    file.write_text("another passphrase", encoding="utf-8")
    file.chmod(0o600)
    other = desk.with_settings(KESSAI_APPROVER_PASSPHRASE_FILE=str(file))
    said = refused(other, waiting, "approve", "ID", "--as", "tanaka", "--yes", "--digest", "DIGEST")
    assert "the passphrase is wrong" in said


UNDECIDED: dict[str, tuple[list[tuple[str, str | signal.Signals]], int, str]] = {
    "Ctrl-C at the question": ([("this?", signal.SIGINT)], 130, ""),
    "Ctrl-D at the question": ([("this?", END_OF_INPUT)], 2, "Nothing was decided."),
    "no letter at the question": ([("this?", "\udcff")], 2, "Nothing was decided."),
    "Ctrl-C at the passphrase": ([("this?", "y"), ("Passphrase", signal.SIGINT)], 130, ""),
    "Ctrl-D at the passphrase": ([("this?", "y"), ("Passphrase", END_OF_INPUT)], 2, "no passphrase was given"),
    "no letter in the passphrase": ([("this?", "y"), ("Passphrase", "\udcff" * 9)], 2, "this is no passphrase"),
}


@pytest.mark.parametrize("what", UNDECIDED)
def test_a_person_who_breaks_off_decides_nothing_and_gets_the_terminal_back(
    stack: Cli, desk: Cli, waiting: dict[str, Any], what: str
):
    answers, code, said = UNDECIDED[what]
    ended, seen = typed(desk, answers, "approve", waiting["workflow_id"], "--as", "tanaka")
    assert ended == code, seen
    assert said in seen
    assert "Traceback" not in seen
    assert stack("show", waiting["workflow_id"], "--json").json()["version"] == waiting["version"]


def test_nobody_decides_on_what_they_asked_for_themselves(stack: Cli, waiting: dict[str, Any], tmp_path: Path):
    requester = "returns-desk@acme-jp"
    both = stack.with_settings(KESSAI_AUTHZ_FILE=str(authorization_with(tmp_path, requester)))
    theirs = approvers(both, tmp_path, requester)
    said = refused(theirs, waiting, "approve", "ID", "--as", requester, "--yes", "--digest", "DIGEST")
    assert "asked for themselves" in said


def test_a_case_in_another_state_says_in_which(stack: Cli, desk: Cli):
    done = stack("run", "examples/returns/normal.json", "--json").json()
    said = desk("approve", done["workflow_id"], "--as", "tanaka", "--yes", "--digest", "0" * 64)
    assert said.code == 2
    assert "COMPLETED" in said.err


def test_with_a_tool_server_elsewhere_its_operator_gets_the_command_and_the_owner_alone_tells_the_host(
    stack: Cli, desk: Cli, tmp_path: Path
):
    engines = {"KESSAI_DSN": stack.dsn("host", "host_rt"), "KESSAI_APPROVERS": str(tmp_path / "keys")}
    theirs = desk.with_settings(**engines, KESSAI_AUTHZ_FILE=str(authorization_with(tmp_path, "kimura")))
    added = theirs("approver", "add", "kimura")
    assert added.code == 0
    assert "the host does not trust it yet" in added.err
    assert not trusted_at_tools(stack, "kimura")
    assert theirs("approver", "revoke", "kimura").code == 2
    owners = theirs.with_settings(KESSAI_MIGRATE_DSN=stack.dsn("host", "host_owner"))
    file = str(tmp_path / "keys" / "kimura.json")
    told = owners("approver", "trust", file)
    assert (told.code, f"kessai-tools approver trust {file}" in told.err) == (0, True)
    assert any(
        one["name"] == "kimura" and one["kid"] for one in theirs("approver", "list", "--json").json()["approvers"]
    )
    assert not trusted_at_tools(stack, "kimura")
    assert owners("approver", "revoke", "kimura").code == 0


def trusted_at_tools(stack: Cli, name: str) -> bool:
    with stack.owner("tools") as tools:
        return tools.execute("SELECT FROM returns.approvers WHERE approver = %s", (name,)).fetchone() is not None


def test_without_the_hosts_database_it_is_not_ready(desk: Cli, tmp_path: Path):
    remote = desk.with_settings(KESSAI_DSN="host=127.0.0.1 port=1 dbname=host user=host_rt")
    assert remote("approve", "A", "--as", "tanaka").code == 15
    added = remote.with_settings(KESSAI_APPROVERS=str(tmp_path / "keys"))("approver", "add", "suzuki")
    assert added.code == 0
    assert "kessai-tools approver trust" in added.err
    assert "KESSAI_MIGRATE_DSN" in added.err
