"""The claims investigation as a user has it: real programs, real tokens over HTTP, the shop's own stack beside it."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any, LiteralString

import pytest

from tests.integration.test_claims_runs import ACCEPTED, BRANCHES, FOUR
from tests.support.claims import EXAMPLES
from tests.support.cli import ROOT, Cli, Said
from tests.support.pages import blocks
from tests.support.worker_process import until

pytestmark = pytest.mark.xdist_group("cli")

EXITS = {"COMPLETED": 0, "REJECTED": 0, "NEEDS_REVIEW": 11}


def run(stack: Cli, name: str, *more: str) -> tuple[int, dict[str, Any]]:
    said = stack("run", str(EXAMPLES / f"{name}.json"), "--json", *more)
    return said.code, dict(said.json())


def test_one_run_and_its_repetition_answer_as_accepted_and_call_four_times_in_all(stack: Cli) -> None:
    code, record = run(stack, "C-102")
    again, same = run(stack, "C-102")
    with stack.owner("tools") as tools:
        logged = tools.execute(
            "SELECT tool, outcome FROM calls.log WHERE task_id = %s ORDER BY seq", (record["run_id"],)
        ).fetchall()
    assert (code, again) == (0, 0)
    assert {name: record[name] for name in ACCEPTED} == ACCEPTED
    assert record["run_id"] == same["run_id"] == record["workflow_id"]
    assert len(record["checkpoints"]) == 23
    assert logged == [(tool, "ok") for tool in FOUR]


def test_an_installation_is_accepted_by_the_runbooks_own_commands(stack: Cli, tmp_path: Path) -> None:
    (block,) = [one for one in blocks((ROOT / "RUNBOOK.md").read_text("utf-8"), "sh") if "cmp first.json" in one]
    *lines, ledger = block.splitlines()
    first, again = [said for line in lines if (said := typed(stack, tmp_path, line)) is not None]
    record = first.json()
    assert (first.code, again.code) == (0, 0)
    assert {name: record[name] for name in ACCEPTED} == ACCEPTED
    assert ("already known" in first.err, "already known" in again.err) == (False, True)
    shown = stack(*shlex.split(ledger.replace(" ID ", f" {record['workflow_id']} "), comments=True)[1:], "--json")
    called = [(call["tool"], call["execution_state"]) for call in reversed(shown.json()["calls"])]  # newest first
    assert called == [(tool, "verified") for tool in FOUR]


def typed(stack: Cli, folder: Path, line: str) -> Said | None:
    """One line as it stands there, with the files that it makes in a folder; another program's has to end with 0."""
    words, _, to = line.partition("  #")[0].partition(" > ")
    command = [
        str(folder / word) if word.count("/") == 0 and word.endswith(".json") else word for word in shlex.split(words)
    ]
    if command[0] == "kessai":
        said, out = (done := stack(*command[1:])), done.out
    else:
        said, out = None, subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    if to:
        (folder / to.strip()).write_text(out, encoding="utf-8")
    return said


@pytest.mark.parametrize("name", BRANCHES)
def test_an_example_ends_with_its_code(name: str, stack: Cli) -> None:
    code, record = run(stack, name)
    state, reason, outcome, tools = BRANCHES[name]
    assert (code, record["state"], record["reason"], record["result"]["outcome"]) == (
        EXITS[state], state, reason, outcome,
    )  # fmt: skip
    assert record["step_count"] == len(tools)


def test_the_baseline_compares_codes_alone_and_leaves_a_draft(stack: Cli) -> None:
    before = len(stack("list", "--json").json()["workflows"])
    said = stack("baseline", str(EXAMPLES / "C-102.json"), "--json")
    judged = said.json()
    assert said.code == 0
    assert {name: judged[name] for name in ("decision", "missing", "rule_version")} == {
        "decision": "MISSING_REQUIRED_DOCUMENTS",
        "missing": ["ACCIDENT_CERTIFICATE"],
        "rule_version": "motor-claim-standard@2026.1",
    }
    assert "ACCIDENT_CERTIFICATE" in judged["notification"]["ja"]
    assert "ACCIDENT_CERTIFICATE" in judged["notification"]["en"]
    assert len(stack("list", "--json").json()["workflows"]) == before, "a baseline is no case"


def test_every_read_of_a_baseline_stands_in_the_record_under_its_tokens_id(stack: Cli) -> None:
    assert stack("baseline", str(EXAMPLES / "complete.json"), "--json").json()["decision"] == "DOCUMENTS_COMPLETE"
    registered = {task["jti"] for task in stack("token", "list", "--json").json()["tokens"]}
    with stack.owner("tools") as tools:
        newest = tools.execute("SELECT jti FROM calls.log ORDER BY seq DESC LIMIT 2").fetchall()
    assert {jti for (jti,) in newest} <= registered


def test_a_kind_without_a_baseline_says_so(stack: Cli) -> None:
    said = stack("baseline", str(EXAMPLES.parent / "returns" / "normal.json"))
    assert (said.code, "no baseline" in said.err) == (2, True)


def test_a_baseline_is_not_read_by_somebody_who_may_not(stack: Cli) -> None:
    said = stack("baseline", str(EXAMPLES / "C-102.json"), "--principal", "returns-desk@acme-jp")
    assert (said.code, "may not call" in said.err) == (15, True)


def test_the_three_closing_questions_are_answered_for_a_business_without_effects(stack: Cli) -> None:
    _, record = run(stack, "C-102")
    said = stack("explain", record["run_id"])
    assert said.code == 0
    for words in ("yes, 4 requests", "COMPLETED (documents_complete_after_normalization)", "checked by code"):
        assert words in said.out


@pytest.mark.long
def test_a_run_that_is_killed_under_a_read_reads_again(stack: Cli, tmp_path: Path) -> None:
    tries = (killed_under_a_read(stack, tmp_path / f"killed-{n}.json") for n in range(5))
    file = next(file for file, was_its_own in tries if was_its_own)  # the stack's worker may be quicker
    said = stack("run", str(file), "--json")
    record = said.json()
    sent = [(call["tool"], [attempt["outcome"] for attempt in call["attempts"]]) for call in record["calls"]]
    assert (said.code, record["status"], record["result"]) == (0, "completed", ACCEPTED["result"])
    assert sent == [(FOUR[0], ["cut_off"]), *((tool, ["success"]) for tool in FOUR)]


def killed_under_a_read(stack: Cli, file: Path) -> tuple[Path, bool]:
    """Kill a run while its case waits for a read; tells whether it was the run that drove the case."""
    document = json.loads((EXAMPLES / "C-102.json").read_text(encoding="utf-8"))
    file.write_text(json.dumps({**document, "request_id": file.stem}), encoding="utf-8")
    with stack.owner("tools") as tools, stack.owner("host") as host:
        tools.autocommit = False
        tools.execute("LOCK TABLE document.documents IN ACCESS EXCLUSIVE MODE")  # no read of this family ends now
        with stack.start("run", str(file)) as process:
            until(lambda: host.execute(UNDER_WAY, (file.stem,)).fetchone() is not None)
            driver = host.execute(UNDER_WAY, (file.stem,)).fetchone()
            process.kill()
        tools.rollback()
    return file, driver is not None and str(driver[0]).endswith(f":{process.pid}")


UNDER_WAY: LiteralString = """
SELECT lease_owner FROM workflow
 WHERE request_id = %s AND control_state = 'tool_running' AND lease_owner IS NOT NULL
"""


@pytest.mark.parametrize("name", ["no-alias", "other-rule-version"])
def test_what_a_person_has_is_handed_over_and_can_be_closed(name: str, stack: Cli) -> None:
    _, record = run(stack, name)
    sheet = stack("handover", record["run_id"])
    closed = stack("review", record["run_id"], "close", "--as", "sato", "--reason", "asked the claimant")
    assert (sheet.code, closed.code) == (0, 0), sheet.err + closed.err
    assert record["run_id"] in sheet.out
