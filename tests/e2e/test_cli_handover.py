"""`kessai handover` as a user has it: three forms of one sheet, and a clear refusal where nobody takes a case over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import EXAMPLES, Cli, case, written
from tests.support.records import fits

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture
def dangerous(stack: Cli) -> str:
    """A case that a person has."""
    return str(stack("run", str(EXAMPLES / "dangerous.json"), "--json").json()["workflow_id"])


def test_a_sheet_comes_as_markdown_as_html_and_as_a_document(stack: Cli, dangerous: str):
    said = [stack("handover", dangerous, *form) for form in ((), ("--html",), ("--json",))]
    assert [(one.code, one.err) for one in said] == [(0, "")] * 3
    sheet = fits(said[2].json(), "handover.json")
    assert said[0].out.startswith(f"# Handover of returns {dangerous}\n")
    assert said[1].out.startswith("<!DOCTYPE html>")
    for page in (said[0].out, said[1].out):
        for word in (sheet["why"]["sentence"], "rule_exception", sheet["customer"], sheet["resource"], "get_order"):
            assert word in page
        assert all(call["step_id"] in page for call in sheet["calls"])
    assert f"kessai show {dangerous}" in said[0].out


def test_nobody_reads_on_the_sheet_what_the_customer_wrote(stack: Cli, tmp_path: Path):
    words = "Sato Hanako, sato@example.com, 1-2-3 Nowhere"
    record = stack("run", written(tmp_path, case("dangerous", message=words, request_id="words")), "--json").json()
    pages = [stack("handover", record["workflow_id"], *form).out for form in ((), ("--html",), ("--json",))]
    assert [part for page in pages for part in ("Hanako", "sato@", "Nowhere") if part in page] == []


def test_a_case_that_has_its_answer_or_waits_for_one_is_refused_with_what_is_possible(stack: Cli, tmp_path: Path):
    done = stack("run", str(EXAMPLES / "normal.json"), "--json").json()
    waiting = stack("run", written(tmp_path, case("high-value", request_id="not-handed-over")), "--json").json()
    for record, named in ((done, "COMPLETED"), (waiting, "withdraw")):
        before = stack("show", record["workflow_id"], "--json").json()
        said = stack("handover", record["workflow_id"])
        assert (said.code, said.out) == (2, "")
        assert named in said.err
        assert f"show {record['workflow_id']}" in said.err
        assert stack("show", record["workflow_id"], "--json").json() == before


def test_an_open_case_has_a_sheet_while_work_is_stopped(stack: Cli, tmp_path: Path):
    waiting = stack("run", written(tmp_path, case("high-value", request_id="waits-under-a-stop")), "--json").json()
    with stack.owner("host") as sql:
        sql.execute("UPDATE stop SET engaged = true, actor = 'ito', reason = 'a drill' WHERE scope = 'updates'")
        try:
            said = stack("handover", waiting["workflow_id"])
        finally:
            sql.execute("UPDATE stop SET engaged = false WHERE scope = 'updates'")
    assert said.code == 0
    for word in ("`ito`", "`a drill`", "kessai approve", "kessai withdraw"):
        assert word in said.out


def test_a_run_and_the_record_name_the_sheet_of_a_case_that_a_person_has(stack: Cli, dangerous: str):
    for said in (stack("run", dangerous), stack("show", dangerous)):
        assert f"handover {dangerous}" in said.out
    done: dict[str, Any] = stack("run", str(EXAMPLES / "normal.json"), "--json").json()
    assert "handover" not in stack("show", done["workflow_id"]).out


def test_a_sheet_is_read_with_no_stack_running(nowhere: Cli):
    record = nowhere("run", str(EXAMPLES / "dangerous.json"), "--json").json()
    try:
        assert nowhere.status()["mode"] == "down"
        sheet = json.loads(nowhere("handover", record["workflow_id"], "--json").out)
        assert sheet["why"]["code"] == record["reason"]
        assert nowhere.status()["mode"] == "down"
    finally:
        assert nowhere("empty", "--yes").code == 0
