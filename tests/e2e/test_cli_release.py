"""`kessai release`, `rollout` and `check` where no rollout runs: what is recorded, what is refused, what is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from host.evaluation.codes import Code
from shared_contracts.base import dump
from shared_contracts.evaluation_report import EvaluationReport
from tests.support.cli import Cli, case
from tests.support.cli import written as written_case
from tests.support.evaluations import conditions, raw, report
from tests.support.planted import planted
from tests.support.recordable import recordable
from tests.support.records import fits
from tests.support.signed_reports import believing, written

pytestmark = pytest.mark.xdist_group("cli")


def test_a_release_is_recorded_by_its_passing_report_once_and_shown_with_who_and_by_what(stack: Cli, tmp_path: Path):
    good, keys = written(tmp_path, "good.json", recordable()), believing(tmp_path)
    said = stack("release", "record", good, "--as", "sato", "--json", *keys)
    view = fits(said.json(), "command.release_list.json")
    (act,) = view["history"]
    assert (act["act"], act["kind"], act["release"]) == ("record", "returns", "returns-1")
    assert (act["by"]["name"], len(act["report_sha256"])) == ("sato", 64)
    assert act["by"]["os_user"]
    assert act["by"]["authz"].startswith("sha256:")
    again = stack("release", "record", good, "--as", "sato", *keys)
    assert (again.code, again.out) == (2, "")
    assert "was recorded by this very report" in again.err
    (tmp_path / "good.json").write_text(json.dumps(json.loads(Path(good).read_text("utf-8")), indent=3), "utf-8")
    spaced = stack("release", "record", good, "--as", "sato", *keys)
    assert (spaced.code, spaced.out) == (2, ""), "other bytes make no other evaluation of it"
    assert "was recorded by this very report" in spaced.err
    back = stack("release", "rollback", "--as", "sato", "--reason", "worse")
    assert (back.code, back.out) == (2, "")
    assert "no other release that this program carries has passed" in back.err
    assert "new cases of returns begin under returns-1 (recorded)" in stack("release", "list").out


@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("severe", report([raw("one"), planted(Code.DUPLICATE_NOTICE)]), 1, "duplicate_notice"),
        ("few", report([raw("one")]), 1, "too_few_cases"),
        ("other", report(conditions=conditions(workflow_release="returns-9")), 2, "does not carry"),
        ("build", report(), 2, "it is of build 0.1.0"),
        ("untested", recordable(contract_tests=[]), 2, "lacks the contract tests of create_return, cancel_return"),
    ],
)
def test_what_the_gate_does_not_let_through_is_not_recorded(
    stack: Cli, tmp_path: Path, name: str, content: EvaluationReport, code: int, said: str
):
    before = stack("release", "list", "--json").json()
    file, keys = written(tmp_path, f"{name}.json", content), believing(tmp_path)
    told = stack("release", "record", file, "--as", "sato", *keys)
    assert (told.code, told.out) == (code, "")
    assert said in told.err
    assert stack("release", "list", "--json").json() == before


def test_a_report_is_not_recorded_by_its_own_word(stack: Cli, tmp_path: Path):
    before = stack("release", "list", "--json").json()
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(dump(recordable(seconds=32.0))), "utf-8")
    for keys in (believing(tmp_path), ()):
        told = stack("release", "record", str(file), "--as", "sato", *keys)
        assert (told.code, told.out) == (1, "")
        assert "not_signed: who made it is not shown" in told.err
    assert stack("release", "list", "--json").json() == before


def test_only_who_may_records_opens_and_checks(stack: Cli, tmp_path: Path):
    good = written(tmp_path, "good.json", recordable(seconds=31.0))
    for command in (
        ("release", "record", good), ("release", "rollback", "--reason", "x"), ("rollout", "open", "1"),
        ("rollout", "close", "1", "--reason", "x"), ("rollout", "waive", "--reason", "x"), ("check", "x", "ok"),
    ):  # fmt: skip
        told = stack(*command, "--as", "ito")
        assert (told.code, told.out) == (2, ""), command
        assert "ito may not" in told.err


def test_where_no_rollout_runs_that_is_what_the_status_says_and_the_form_is_written_once(stack: Cli, tmp_path: Path):
    form = tmp_path / "migration.md"
    said = stack("rollout", "status", "--form", str(form), "--json")
    view = fits(said.json(), "command.rollout.json")
    assert (said.code, view["status"], view["stage"], view["several_at_a_time"]) == (0, "waived", None, True)
    assert view["history"][0]["by"]["reason"] == "for trying out and for tests: said when the database was made"
    page = form.read_text("utf-8")
    assert page.startswith("# Production migration evaluation form\n")
    assert "no rollout runs" in page
    assert stack("rollout", "status", "--form", str(form)).code == 2
    assert form.read_text("utf-8") == page
    closed = stack("rollout", "close", "1", "--as", "sato", "--reason", "done")
    assert (closed.code, closed.out) == (2, "")
    assert "stage 1 is not open" in closed.err


def test_a_person_checks_a_case_that_has_ended_and_says_what_is_wrong(stack: Cli, tmp_path: Path):
    file = written_case(tmp_path, case("normal", request_id="checked-1", order_id="A-404404"))
    workflow = stack("run", file, "--json").json()["workflow_id"]
    lacking = stack("check", workflow, "wrong", "--as", "sato")
    assert (lacking.code, lacking.out) == (2, "")
    assert "what is wrong with the case has to be said" in lacking.err
    said = stack("check", workflow, "wrong", "--as", "sato", "--reason", "another order", "--json")
    view = fits(said.json(), "command.check.json")
    assert (view["workflow_id"], view["verdict"], view["by"]) == (workflow, "wrong", "sato")
    long = stack("check", workflow, "ok", "--as", "sato", "--reason", "x" * 2001)
    assert (long.code, "2001 characters" in long.err) == (2, True)
    again = stack("check", "checked-1", "ok", "--as", "sato")
    assert (again.code, again.out) == (2, "")
    assert "what was found stays" in again.err
