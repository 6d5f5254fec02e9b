"""Read-and-draft mode as an operator meets it: what `kessai status` says, and what becomes of cases meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import EXAMPLES, ROOT, Cli
from tests.support.records import fits

pytestmark = pytest.mark.xdist_group("cli-mistakes")
AUTHZ = json.loads((ROOT / "host" / "data" / "authz-v7.json").read_text("utf-8"))
LACKS = "The authorization set authz-v8 has no approver."
LEFT = ["create_return", "send_return_notice"]


def without_approvers(folder: Path) -> str:
    file = folder / "authz-v8.json"
    file.write_text(json.dumps({**AUTHZ, "version": "authz-v8", "approvers": []}), encoding="utf-8")
    return str(file)


@pytest.fixture(scope="module")
def drafting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A stack that is up, with a worker, under an authorization set in which nobody may approve."""
    folder = tmp_path_factory.mktemp("drafting")
    cli = Cli(folder / "home", {"KESSAI_AUTHZ_FILE": without_approvers(folder)})
    said = cli("up")
    assert said.code == 0, said.err
    assert "read and draft" in said.out
    yield cli
    assert cli("empty", "--yes").code == 0


def test_status_says_that_a_kind_acts_by_itself_and_makes_nothing(nowhere: Cli):
    said = nowhere("status")
    assert said.code == 0
    assert "returns (returns-1)  full: it acts by itself" in said.out.splitlines()
    kinds = fits(nowhere.status(), "command.status.json")["kinds"]
    kind = next(one for one in kinds if one["kind"] == "returns")
    assert kind == {"kind": "returns", "release": "returns-1", "mode": "full", "failing": []}
    assert not nowhere.home.exists()


def test_status_says_which_condition_fails_of_which_kind_and_what_it_lacks(nowhere: Cli, tmp_path: Path):
    lacking = nowhere.with_settings(KESSAI_AUTHZ_FILE=without_approvers(tmp_path))
    said = lacking("status")
    assert said.code == 0  # a mode to work in, and no fault of the stack
    for words in ("returns (returns-1)  read and draft: nobody is offered", "  approval_not_kept: A person's", LACKS):
        assert words in said.out
    kinds = fits(lacking.status(), "command.status.json")["kinds"]
    kind = next(one for one in kinds if one["kind"] == "returns")
    assert kind["mode"] == "read_and_draft"
    assert [(one["condition"], one["missing"]) for one in kind["failing"]] == [("approval_not_kept", [LACKS])]
    assert not nowhere.home.exists()


@pytest.mark.parametrize("text", [None, "{", '{"version": "v"}'], ids=["missing", "no JSON", "incomplete"])
def test_status_says_so_where_the_authorization_set_cannot_be_used(nowhere: Cli, tmp_path: Path, text: str | None):
    file = tmp_path / "authz.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    broken = nowhere.with_settings(KESSAI_AUTHZ_FILE=str(file))
    said = broken("status")
    assert said.code == 0
    assert f"kinds: the authorization set {file} cannot be" in said.out
    seen = fits(broken.status(), "command.status.json")
    assert seen["kinds"] == []
    assert str(file) in seen["kinds_unknown"]


def written_to(cli: Cli, workflow: str) -> list[tuple[Any, ...]]:
    """The tool server's own log of a case: what was called, and what came of it."""
    with cli.owner("tools") as owner:
        query = "SELECT tool, outcome FROM calls.log WHERE task_id = %s AND outcome <> 'begun' ORDER BY seq"
        return owner.execute(query, (workflow,)).fetchall()


@pytest.mark.parametrize("example", ["normal", "high-value"])
def test_a_case_ends_with_a_person_a_draft_and_no_call_that_changes_anything(drafting: Cli, example: str):
    ran = drafting("run", str(EXAMPLES / f"{example}.json"))
    assert ran.code == 11, ran.err
    newest = drafting("list", "--json").json()["workflows"][0]["workflow_id"]
    record = fits(drafting("show", newest, "--json").json(), "record.json")
    assert (record["state"], record["reason"], record["effects"]) == ("NEEDS_REVIEW", "draft_only", [])
    order = json.loads((EXAMPLES / f"{example}.json").read_text("utf-8"))["order_id"]
    assert [(call["tool"], call["arguments"]["order_id"]) for call in record["draft"]["calls"]] == [
        (tool, order) for tool in LEFT
    ]
    assert [call["needs_approval"] for call in record["draft"]["calls"]] == [example == "high-value", False]
    assert record["approvals"] == []
    assert written_to(drafting, newest) == [("get_order", "ok"), ("check_return_policy", "ok")]
    for said in (ran.out, drafting("show", newest).out, drafting("explain", newest).out):
        assert f"create_return order_id={order}" in said
        assert f"send_return_notice order_id={order} return_id=(still open)" in said


def test_no_outside_host_gets_a_token_for_an_update_and_every_one_may_read(drafting: Cli):
    asked = ("token", "issue", "--customer", "C-2001", "--resource", "A-1001")
    said = drafting(*asked, "--allow-write", "create_return")
    assert (said.code, said.out) == (2, "")
    assert "create_return is offered to nobody: returns is in read-and-draft mode" in said.err
    with drafting.owner("host") as owner:
        assert owner.execute("SELECT count(*) FROM external_task").fetchone() == (0,)
    assert drafting(*asked).code == 0


def test_the_worker_says_in_its_log_that_it_only_drafts(drafting: Cli):
    said = Path(drafting.part("worker")["log"]).read_text("utf-8")
    assert f"returns is in read-and-draft mode: approval_not_kept. {LACKS}" in said


def test_with_an_approver_again_the_next_case_is_done(drafting: Cli, tmp_path: Path):
    whole = tmp_path / "authz-v9.json"
    whole.write_text(json.dumps({**AUTHZ, "version": "authz-v9"}), encoding="utf-8")
    again = drafting.with_settings(KESSAI_AUTHZ_FILE=str(whole))
    said = again("run", str(EXAMPLES / "defective.json"), "--json")
    assert said.code == 0, said.err
    assert (said.json()["state"], said.json()["draft"]) == ("COMPLETED", None)
