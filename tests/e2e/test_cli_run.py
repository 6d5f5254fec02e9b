"""`kessai run` as a person has it: every example, its exit code, its timeline, and the same case again."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import EXAMPLES, ROOT, Cli, case, written
from tests.support.records import fits

pytestmark = pytest.mark.xdist_group("cli")

ENDS = {
    "normal": ("COMPLETED", 0),
    "defective": ("COMPLETED", 0),
    "duplicate": ("COMPLETED", 0),
    "steering": ("COMPLETED", 0),
    "high-value": ("WAITING_APPROVAL", 10),
    "splitting": ("WAITING_APPROVAL", 10),
    "out-of-period": ("REJECTED", 0),
    "already-returned": ("REJECTED", 0),
    "final-sale": ("REJECTED", 0),
    "missing-order": ("REJECTED", 0),
    "other-customer": ("REJECTED", 0),
    "dangerous": ("NEEDS_REVIEW", 11),
    "unknown-category": ("NEEDS_REVIEW", 11),
    "out-of-scope": ("NEEDS_REVIEW", 11),
    "fault-429": ("COMPLETED", 0),
    "fault-timeout": ("COMPLETED", 0),
    "fault-disconnect": ("COMPLETED", 0),
    "fault-version-conflict": ("COMPLETED", 0),
    "fault-notification": ("COMPLETED", 0),
    "fault-approval-expiry": ("WAITING_APPROVAL", 10),
}


def test_every_example_is_run_here():
    assert {file.stem for file in EXAMPLES.glob("*.json")} == set(ENDS)


@pytest.mark.parametrize("name", ENDS)
def test_an_example_ends_where_its_page_says_with_its_exit_code_and_a_record_that_fits_the_schema(
    stack: Cli, name: str
):
    state, code = ENDS[name]
    said = stack("run", str(EXAMPLES / f"{name}.json"), "--json")
    record = fits(said.json(), "record.json")
    assert (record["state"], said.code) == (state, code)
    assert len(record["effects"]) == (2 if state == "COMPLETED" else 0)
    assert all(effect["verified_at"] for effect in record["effects"])
    message = case(name)["message"]
    assert message == "" or message not in said.out
    assert (record["handover_reason"] is not None) == (state == "NEEDS_REVIEW")
    page = re.search(
        rf"^\| `{name}.json` \|.*\| `(\w+)` \|$", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert page is None or page[1] == state


def test_the_timeline_shows_states_tools_attempts_evidence_time_and_both_processes(stack: Cli):
    said = stack("run", str(EXAMPLES / "normal.json"))
    server = stack.part("tool_server")["pid"]
    assert said.code == 0, said.err
    assert re.search(rf"host pid \d+ · tool server pid {server} at http://127", said.out)
    lines = [line for line in said.out.splitlines() if re.match(r"\d\d:\d\d:\d\d\.\d{3}  ", line)]
    workflow_id = re.search(r"^workflow (\S+)$", said.out, re.MULTILINE)
    assert workflow_id is not None
    record = stack("show", workflow_id[1], "--json").json()
    assert len(lines) == len(record["checkpoints"])
    for line, point in zip(lines, record["checkpoints"], strict=True):
        assert point["to"]["state"] in line
        assert point["to"]["control_state"] in line
        assert all(reference in line for reference in point["evidence"])
    assert len(lines) == 23
    assert all(any(f"{tool} #1" in line for line in lines) for tool in ("get_order", "create_return"))


def test_it_ends_with_return_number_message_id_mail_and_a_command_that_shows_the_record(stack: Cli):
    said = stack("run", str(EXAMPLES / "defective.json"))
    told = dict(re.findall(r"^(return|message|mail|record) +(.+)$", said.out, re.MULTILINE))
    assert set(told) == {"return", "message", "mail", "record"}
    mail = Path(told["mail"]).read_text(encoding="utf-8")
    assert told["message"] in mail
    shown = subprocess.run(  # noqa: S602  # the very line that a person would copy
        told["record"] + " --json", shell=True, cwd=ROOT, env=stack.environment(), capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    assert told["return"] in shown.stdout
    assert shlex.split(told["record"])[-2] == "show"


def test_the_same_case_again_answers_with_the_same_workflow_calls_nothing_and_says_so(stack: Cli):
    file = str(EXAMPLES / "duplicate.json")
    first = stack("run", file, "--json").json()
    again = stack("run", file, "--json")
    shown = stack("run", file)
    assert again.code == shown.code == 0
    assert again.json() == first
    assert "already known" in again.err
    assert "already known" in shown.out
    with stack.owner("tools") as tools:
        made = tools.execute(
            "SELECT count(DISTINCT jti) FROM calls.log WHERE task_id = %s", (first["workflow_id"],)
        ).fetchone()
    sent = sum(len(call["attempts"]) + len(call["engine_reads"]) for call in first["calls"])
    assert made == (sent,)


def test_another_body_under_the_same_request_is_a_conflict_that_names_the_workflow(stack: Cli, tmp_path: Path):
    first = stack("run", str(EXAMPLES / "duplicate.json"), "--json").json()
    said = stack("run", written(tmp_path, case("duplicate", message="something else")))
    assert (said.code, said.out) == (2, "")
    assert first["workflow_id"] in said.err


def test_a_time_on_the_command_line_overrides_the_cases_own(stack: Cli, tmp_path: Path):
    file = written(tmp_path, case("out-of-period", request_id="as-of"))
    said = stack("run", file, "--as-of", "2026-06-01T09:00:00+09:00", "--json")
    assert (said.json()["state"], said.code) == ("COMPLETED", 0)


def test_another_principal_sees_only_its_own_tenants_orders_and_needs_its_scopes(stack: Cli, tmp_path: Path):
    other = stack("run", written(tmp_path, case("fault-429")), "--principal", "returns-desk@hoshi-jp", "--json")
    untouched = written(tmp_path, case("high-value", request_id="reader"))  # by other tests, in whatever order they run
    reader = stack("run", untouched, "--principal", "returns-reader@acme-jp", "--json")
    assert (other.json()["reason"], other.code) == ("order_not_found", 0)
    assert (reader.json()["state"], reader.json()["handover_reason"], reader.code) == ("NEEDS_REVIEW", "permission", 11)


def test_a_workflow_that_rests_answers_with_its_code_and_is_not_moved(stack: Cli):
    for name, code in (("high-value", 10), ("dangerous", 11), ("normal", 0)):
        record = stack("run", str(EXAMPLES / f"{name}.json"), "--json").json()
        again = stack("run", record["workflow_id"], "--json")
        assert (again.code, again.json()) == (code, record)


def test_a_case_comes_in_from_standard_input_too(stack: Cli):
    file = EXAMPLES / "normal.json"
    piped = stack("run", "-", "--json", given=file.read_text(encoding="utf-8"))
    assert piped.code == 0
    assert piped.json() == stack("run", str(file), "--json").json()
