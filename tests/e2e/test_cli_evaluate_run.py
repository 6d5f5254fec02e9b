"""`kessai eval` as a user has it: some cases of each kind, and what becomes of a run that is cut short."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest

from host.evaluation import place
from host.evaluation.contract_documents import Test
from host.evaluation.gate import gate
from host.evaluation.metrics import rates
from host.evaluation.place import home_of
from host.evaluation.rates import PACKAGED
from host.stack import assembly
from host.stack.build import installed_build
from host.stack.postgres import PostgresChoice
from host.stack.roles import Side
from shared_contracts.base import dump, parse
from shared_contracts.evaluation import AFTER_A_YES, SIX, FaultKind
from shared_contracts.evaluation_drafts import UPDATES
from shared_contracts.evaluation_report import EvaluationReport, FaultEvidence
from shared_contracts.tools import TOOLS
from tests.support.cli import Cli
from tests.support.evaluating import (
    Evaluated,
    changed,
    chosen,
    evaluate,
    on_a_terminal,
    until_called,
    worked_on,
    written,
)
from tests.support.retail_run import retailed
from tests.support.retail_set import OURS, made_of, smallest

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("evaluation")]
DISCONNECTED = "midway-fault-05"  # the notice's answer never comes
NEVER = (DISCONNECTED, "server-killed-03")  # where the fault's request is asked for a third time


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """`kessai` with a home that nobody makes; the evaluation's lies beside it, and is made once."""
    cli = Cli(tmp_path_factory.mktemp("evaluation") / "home", {})
    yield cli
    assert cli("eval", "drop").code == 0
    assert not home_of(cli.home).exists()


def test_cases_of_each_kind_end_as_the_rules_have_it_and_their_faults_are_seen_to_happen(cli: Cli, tmp_path: Path):
    cases = chosen(
        "normal-01", "high-value-01", "high-value-02", "high-value-08", "high-value-12", "duplicate-01", "duplicate-05",
        "foreign-order-01", DISCONNECTED, "midway-fault-01", "midway-fault-02", "midway-fault-03", "midway-fault-06",
        "midway-fault-07", "midway-fault-08", "server-killed-02", "server-killed-03",
    )  # fmt: skip

    given = ("--rates", str(rates_of(tmp_path)), "--contract-tests", str(proofs(tmp_path)))
    found = evaluate(cli, tmp_path, cases, "--concurrency", "4", *given)

    assert found.problems() == {}
    assert (found.report.rates.basis, found.report.rates.tool_call) == ("given", 0.7)
    assert {(one.passed, one.of, one.build) for one in found.report.contract_tests} == {(15, 15, found.report.build)}
    assert found.said.code == 1  # nothing is wrong but that it is a part
    assert "too_few_cases" in found.said.out.splitlines()[0]
    assert found.report.compared.compared > 0
    undone = rates(found.report.cases).compensated
    assert (undone.of, undone.n) == (1, 1)
    assert not found.report.compared.untracked + found.report.compared.missing + found.report.compared.duplicate
    seen = {case.id: case.evidence for case in found.report.cases if case.evidence is not None}
    assert {one.seen for one in seen.values()} == {"wire", "clock", "mail", "process"}
    struck = [case for case in cases if case.fault is not None]
    assert {case.fault.kind for case in struck} == SIX | AFTER_A_YES | {FaultKind.SERVER_KILLED}
    assert all(seen[case.id].fired == case.fault.times and seen[case.id].details for case in struck)
    assert not cli.home.exists()
    assert cli("eval", "report", "--report", str(tmp_path / "again")).code == 1
    assert (tmp_path / "again" / "report.json").read_bytes() == (tmp_path / "report.json").read_bytes()
    # without a terminal, so that nobody thinks that it hangs
    assert found.said.err.startswith(f"cases 0 of {len(cases)}, ")
    written_by_it = cli("eval", "gate", str(tmp_path / "report.json"))
    assert (written_by_it.code, written_by_it.out) == (1, found.said.out)
    forged = tmp_path / "report.json"
    forged.write_text(forged.read_text("utf-8").replace('"told_ja": "', '"told_ja": "！', 1), "utf-8")
    assert "not_signed" in cli("eval", "gate", str(forged)).out.splitlines()[0]


@pytest.mark.long
def test_a_report_is_made_again_from_the_databases_and_shows_what_was_changed_in_them(cli: Cli, tmp_path: Path):
    first = evaluate(cli, tmp_path, chosen("normal-01", DISCONNECTED))
    again = cli("eval", "report", "--report", str(tmp_path / "again"))
    assert (again.code, first.said.code) == (1, 1)
    assert (tmp_path / "again" / "report.json").read_bytes() == (tmp_path / "report.json").read_bytes()
    assert "cases[].evidence" in again.err
    assert cli("eval", "report", "--report", str(tmp_path / "again")).code == 2  # a report that is there is evidence

    make_twice(cli)

    changed_since = cli("eval", "report", "--report", str(tmp_path / "changed"))
    assert changed_since.code == 1
    assert "duplicate_return" in changed_since.out.splitlines()[0]
    assert report_in(tmp_path / "changed")["compared"]["duplicate"] != []


def test_where_nothing_was_run_there_is_no_report_to_make_again(nowhere: Cli, tmp_path: Path):
    said = nowhere("eval", "report", "--report", str(tmp_path / "none"))
    assert (said.code, "no evaluation was run" in said.err) == (15, True), said.err
    assert not (tmp_path / "none" / "report.json").exists()
    assert not home_of(nowhere.home).exists()


def report_in(folder: Path) -> Any:
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def make_twice(cli: Cli) -> None:
    """Put a second return beside the one that normal-01 made, in the database that the run left."""

    async def change() -> None:
        async with place.kept(home_of(cli.home), PostgresChoice(None, None)) as parts:
            with psycopg.connect(assembly.owner_dsn(parts, Side.TOOLS)) as owner:
                made = owner.execute(
                    "INSERT INTO returns.returns SELECT tenant_id, 'R-TWICE', order_id, customer_id,"
                    " idempotency_key || ':again', status, reason, currency, 0, 0, 0, rule_version, order_version,"
                    " requested_at FROM returns.returns WHERE order_id = 'A-1107' AND idempotency_key IS NOT NULL"
                )
                assert made.rowcount == 1

    asyncio.run(change())


def test_a_fault_at_a_request_that_never_comes_is_not_proved(after_a_kill: Evaluated):
    assert after_a_kill.problems() == {case: ["fault_not_proved"] for case in NEVER}
    evidence = {case.id: case.evidence for case in after_a_kill.report.cases}
    assert [evidence[case] for case in NEVER] == [
        FaultEvidence(seen="wire", fired=0, details=()), FaultEvidence(seen="process", fired=0, details=()),
    ]  # fmt: skip
    assert after_a_kill.said.code == 1


@pytest.mark.long
def test_every_fault_happens_and_shows_that_it_stops_recovers_and_stays_within_its_permission(cli: Cli, tmp_path: Path):
    with cli.start("eval", "--faults", "--seed", "7", "--report", str(tmp_path)) as begun:
        said, _ = begun.communicate(timeout=220)  # two minutes, as its page says, and more beside others

    report = parse(EvaluationReport, json.loads((tmp_path / "report.json").read_text(encoding="utf-8")))
    assert {one.id: one.problems for one in report.cases if one.problems} == {}
    assert {one.fault.kind for one in report.cases if one.fault is not None} == set(FaultKind)
    assert {one.evidence.fired for one in report.cases if one.evidence is not None} == {1, 2}
    shown = {one.what: one.shown for one in gate(report).faults_show}
    assert shown == {"stops": True, "recovers": True, "within_permission": True}
    first = "passed (a run of faults alone: no pre-production evaluation, no release passes by it)"
    assert (begun.returncode, said.splitlines()[0]) == (0, first)
    assert cli("eval", "gate", str(tmp_path / "report.json")).code == 1  # no release passes by it
    superseded = next(one for one in report.cases if one.id == "slow-answer-02")
    assert superseded.evidence is not None
    assert superseded.evidence.details[0].endswith("attempt_superseded")


@pytest.fixture
def shops_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The smallest part of a retail shop's file that has one of everything: of the outside one where it is given."""
    outside = request.config.getoption("retail")
    return smallest(OURS if outside is None else outside, tmp_path)


def test_a_shops_right_returns_are_made_once_under_every_fault_and_all_else_is_refused(
    cli: Cli, tmp_path: Path, shops_file: Path
):
    found = retailed(cli, tmp_path, shops_file)

    assert found.wrong(made_of(shops_file)) == []
    assert (found.said.code, found.said.out.splitlines()[0].startswith("passed (a run of a retail")) == (0, True)
    struck = [case for case in found.report.cases if case.fault is not None]
    assert {case.fault.kind for case in struck if case.fault is not None} == SIX
    assert found.report.compared.compared > 0


@pytest.mark.long
def test_with_all_updates_removed_every_case_ends_with_nothing_done_and_a_sheet_where_it_would_have_acted(
    cli: Cli, tmp_path: Path
):
    said = cli("eval", "--without-updates", "--seed", "7", "--report", str(tmp_path))

    report = parse(EvaluationReport, json.loads((tmp_path / "report.json").read_text(encoding="utf-8")))
    assert (said.code, said.out.splitlines()[0].startswith("passed (a run without updates")) == (0, True)
    assert len(report.cases) == 120
    assert {(one.got.effects.returns, one.got.effects.notices) for one in report.cases} == {(0, 0)}
    assert {one.got.state for one in report.cases} == {"NEEDS_REVIEW", "REJECTED"}
    assert all(one.got.handover is True for one in report.cases if one.got.state == "NEEDS_REVIEW")
    assert not UPDATES & (set(report.conditions.tools) | {tool for one in report.cases for tool in one.got.path})


@pytest.fixture(scope="module")
def after_a_kill(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    """The evaluation after one that was killed; in some of its cases a fault is for a request that never comes."""
    tmp_path = tmp_path_factory.mktemp("after-a-kill")
    (case,) = chosen("normal-01")
    never = [changed(one, fault={**dump(one.fault), "nth": 3}) for one in chosen(*NEVER)]
    working = home_of(cli.home) / "run" / "worker.json"
    working.unlink(missing_ok=True)  # an earlier one's
    with on_a_terminal(cli, "--cases", str(written(tmp_path, [case])), "--report", str(tmp_path / "first")) as shown:
        drawn = ""
        until = time.monotonic() + 60
        while not (working.exists() and re.search("cases .*━.*0/1.*0:00:", drawn)):
            assert time.monotonic() < until, drawn
            if select.select([shown], [], [], 0.05)[0]:
                drawn += os.read(shown, 1 << 16).decode(errors="replace")

    return evaluate(cli, tmp_path, [case, *never])


def test_what_was_killed_is_taken_over_by_the_next(cli: Cli, after_a_kill: Evaluated):
    assert {case.id for case in after_a_kill.report.cases} - set(after_a_kill.problems()) == {"normal-01"}
    assert Cli(home_of(cli.home), {}).status()["mode"] == "down"


def test_two_at_once_are_refused_and_the_first_goes_on(cli: Cli, tmp_path: Path):
    (case,) = chosen("normal-01")
    working = home_of(cli.home) / "run" / "worker.json"
    working.unlink(missing_ok=True)  # an earlier one's
    file = str(written(tmp_path, [case]))
    with cli.start("eval", "--cases", file, "--report", str(tmp_path / "first")) as begun:
        wait_for(working)
        second, dropped = cli("eval", "--cases", file, "--report", str(tmp_path / "second")), cli("eval", "drop")
        begun.communicate(timeout=60)

    assert (second.code, dropped.code, begun.returncode) == (15, 15, 1)
    assert "Another evaluation runs" in second.err
    assert not (tmp_path / "second").exists()
    assert {one.name for one in (tmp_path / "first").iterdir()} == {"report.json", "report.html"}


def test_what_was_interrupted_leaves_no_process_and_is_taken_over_without_a_row_of_it(cli: Cli, tmp_path: Path):
    held, case = chosen("midway-fault-03", "normal-01")  # of the first one's requests one is held for seconds
    working = home_of(cli.home) / "run" / "worker.json"
    working.unlink(missing_ok=True)  # an earlier one's
    begun = cli.start("eval", "--cases", str(written(tmp_path, [held])), "--report", str(tmp_path / "first"))
    wait_for(working)
    until_called(Cli(home_of(cli.home), {}))
    begun.send_signal(signal.SIGINT)

    _, said = begun.communicate(timeout=60)

    assert (begun.returncode, "Traceback" in said) == (130, False), said
    assert "interrupted: what worked was stopped, and no report was written" in said
    assert not (tmp_path / "first").exists()
    assert Cli(home_of(cli.home), {}).status()["mode"] == "down"
    found = evaluate(cli, tmp_path, [case])
    assert found.problems() == {}
    assert worked_on(cli) == {"evaluation-normal-01"}


@pytest.mark.long
def test_a_worker_that_dies_in_mid_run_ends_it_with_a_word_and_leaves_nothing_in_the_way(cli: Cli, tmp_path: Path):
    held = chosen("midway-fault-03", "normal-01")  # of the first one's requests one is held for seconds
    place_of = Cli(home_of(cli.home), {})
    working = place_of.home / "run" / "worker.json"
    working.unlink(missing_ok=True)  # an earlier one's
    begun = cli.start("eval", "--cases", str(written(tmp_path, held)), "--report", str(tmp_path / "first"))
    wait_for(working)
    until_answered(place_of, "normal-01")
    os.kill(json.loads(working.read_text(encoding="utf-8"))["pid"], signal.SIGKILL)

    _, said = begun.communicate(timeout=100)

    assert (begun.returncode, "worker ended while cases ran" in said) == (15, True), said
    assert not (tmp_path / "first" / "report.json").exists()
    assert place_of.status()["mode"] == "down"
    again = cli("eval", "report", "--report", str(tmp_path / "none"))
    assert (again.code, "no evaluation came to its end" in again.err) == (2, True), again.err
    assert evaluate(cli, tmp_path, chosen("normal-01")).problems() == {}


def until_answered(place_of: Cli, case: str) -> None:
    """Until a case of the run under way has its answer."""
    until = time.monotonic() + 60
    with psycopg.connect(place_of.dsn("host", "host_rt"), autocommit=True) as connection:
        query = "SELECT FROM workflow WHERE request_id = %s AND control_state = 'completed'"
        while connection.execute(query, (f"evaluation-{case}",)).fetchone() is None:
            assert time.monotonic() < until, f"{case} has no answer"
            time.sleep(0.05)


def test_what_cannot_be_run_is_said_before_anything_is_started(cli: Cli, tmp_path: Path):
    (case,) = chosen("normal-01")
    stranger = changed(case, tenant="nobody-jp")

    said = cli("eval", "--cases", str(written(tmp_path, [stranger])), "--report", str(tmp_path / "report"))

    assert said.code == 2
    assert "normal-01" in said.err
    assert cli("eval", "--cases", str(tmp_path / "none")).code == 2
    (tmp_path / "shop.json").write_text(OURS.read_text("utf-8").replace('"U-ben", "item_ids"', '"U-cyn", "item_ids"'))
    others = cli("eval", "retail", str(tmp_path / "shop.json"), "--report", str(tmp_path / "retail"))
    assert (others.code, "return 2-0: U-cyn has no delivered order #R1002" in others.err) == (2, True)
    assert not (tmp_path / "retail").exists()
    nobodys = cli("eval", "run", "--changed", "nobody", "--report", str(tmp_path / "changed"))
    assert (nobodys.code, "--changed 'nobody' is no part" in nobodys.err) == (2, True)
    assert "The parts are: orchestrator, tool, " in nobodys.err
    assert not (tmp_path / "changed").exists()
    other = cli.with_settings(KESSAI_POLICY_VERSION="policy-v13")
    assert other("eval", "--cases", str(written(tmp_path, [case])), "--report", str(tmp_path / "other")).code == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"passed": False}, "contract tests not passed"),
        ({"build": "another"}, "the build was another"),
        ({"tools": 1}, "was not tested"),
        ({"held": False}, "contract tests not passed: "),
    ],
    ids=["not passed", "another build", "a tool lacks", "an item failed"],
)
def test_no_case_is_run_with_tools_that_did_not_pass_on_their_own(nowhere: Cli, tmp_path: Path, changes, said: str):
    answer = nowhere("eval", "--contract-tests", str(proofs(tmp_path, **changes)), "--report", str(tmp_path / "none"))

    assert answer.code == 2
    assert said in answer.err
    assert not (tmp_path / "none").exists()
    assert not home_of(nowhere.home).exists()


@pytest.mark.long
def test_each_tool_is_tried_on_its_own_first_where_that_is_asked_for(cli: Cli, tmp_path: Path):
    found = evaluate(cli, tmp_path, chosen("normal-01"), "--contract-tests-first")
    assert found.problems() == {}
    assert {one.tool for one in found.report.contract_tests} == {tool.name for tool in TOOLS.values() if tool.writes}
    assert {(one.passed, one.of, one.build) for one in found.report.contract_tests} == {(15, 15, found.report.build)}


def test_rates_that_are_none_are_said_before_anything_is_started(nowhere: Cli, tmp_path: Path):
    file = rates_of(tmp_path)
    file.write_text(file.read_text(encoding="utf-8").replace("0.7", "0.0"), encoding="utf-8")

    answer = nowhere("eval", "--rates", str(file))

    assert answer.code == 2
    assert "tool_call is 0, which is no price" in answer.err
    assert not home_of(nowhere.home).exists()


def rates_of(folder: Path) -> Path:
    """The packaged rates with another price of a call."""
    text = PACKAGED.read_text(encoding="utf-8")
    assert text.count("tool_call = 0.2") == 1
    file = folder / "rates.toml"
    file.write_text(text.replace("tool_call = 0.2", "tool_call = 0.7"), encoding="utf-8")
    return file


def proofs(folder: Path, *, passed: bool = True, build: str | None = None, tools: int = 9, held: bool = True) -> Path:
    """What the tests of each tool leave where all held, or something did not."""
    trials = [{"name": name, "held": True, "said": "seen"} for name in get_args(Test)]
    items = [{"number": n, "what": "an item", "held": held or n > 1, "said": "seen"} for n in range(1, 10)]
    writes = [tool for tool in TOOLS.values() if tool.writes]
    tested = [
        {"tool": one.name, "version": one.version, "schema_digest": one.schema_digest, "passed": True, "trials": trials,
         "items": items}
        for one in writes[:tools]
    ]  # fmt: skip
    code = installed_build().code if build is None else build
    file = folder / "tests.json"
    file.write_text(
        json.dumps({"passed": passed, "made_at": "2026-08-01T09:00:00Z", "build": code, "tools": tested}),
        encoding="utf-8",
    )
    return file


def wait_for(file: Path) -> None:
    """Until it is there."""
    until = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < until, f"no {file}"
        time.sleep(0.05)
