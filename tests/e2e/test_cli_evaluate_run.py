"""`kessai eval` on the smallest sets that show something: what is as expected, and one planted defect at a time."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from host.evaluation.place import home_of
from shared_contracts.evaluation_report import FaultEvidence
from tests.support.cli import Cli
from tests.support.evaluating import changed, chosen, copied, evaluate, planted, written

pytestmark = pytest.mark.timeout(240)
DISCONNECTED = "midway-fault-05"  # the notice's answer never comes


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """`kessai` with a home that nobody makes; the evaluation's lies beside it, and is made once."""
    cli = Cli(tmp_path_factory.mktemp("evaluation") / "home", {})
    yield cli
    assert cli("eval", "drop").code == 0
    assert not home_of(cli.home).exists() or not any(home_of(cli.home).iterdir())


def test_cases_of_each_kind_end_as_the_rules_have_it_and_their_faults_are_seen_to_happen(cli: Cli, tmp_path: Path):
    cases = chosen(
        "normal-01", "high-value-01", "high-value-12", "duplicate-01", "duplicate-05", "foreign-order-01",
        DISCONNECTED, "midway-fault-06", "midway-fault-07", "midway-fault-08",
    )  # fmt: skip

    found = evaluate(cli, tmp_path, cases, "--concurrency", "4")

    assert found.problems() == {}
    assert found.said.code == 1  # nothing is wrong but that it is a part
    assert "too_few_cases" in found.said.out.splitlines()[0]
    assert found.report.compared.compared > 0
    assert not found.report.compared.untracked + found.report.compared.missing + found.report.compared.duplicate
    seen = {case.id: case.evidence for case in found.report.cases if case.evidence is not None}
    assert {one.seen for one in seen.values()} == {"wire", "clock", "mail"}
    assert not cli.home.exists()


def test_a_fault_at_a_request_that_never_comes_is_not_proved(cli: Cli, tmp_path: Path):
    (case,) = chosen(DISCONNECTED)
    fault = {
        "kind": "disconnect",
        "tool": "send_return_notice",
        "nth": 3,
        "times": 1,
        "retries": 0,
        "told_ja": "メール",
    }

    found = evaluate(cli, tmp_path, [changed(case, fault=fault)])

    assert found.problems() == {DISCONNECTED: ["fault_not_proved"]}
    assert found.report.cases[0].evidence == FaultEvidence(seen="wire", fired=0, details=())
    assert found.said.code == 1


def test_what_was_killed_is_taken_over_by_the_next(cli: Cli, tmp_path: Path):
    (case,) = chosen("normal-01")
    working = home_of(cli.home) / "run" / "worker.json"
    working.unlink(missing_ok=True)  # an earlier one's
    with cli.start("eval", "--cases", str(written(tmp_path, [case])), "--report", str(tmp_path / "first")) as begun:
        wait_for(working)
        begun.kill()

    assert evaluate(cli, tmp_path, [case]).problems() == {}
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
    assert {one.name for one in (tmp_path / "first").iterdir()} == {"report.json", "report.html"}


def test_what_was_interrupted_leaves_no_process_and_is_taken_over(cli: Cli, tmp_path: Path):
    (case,) = chosen("normal-01")
    working = home_of(cli.home) / "run" / "worker.json"
    working.unlink(missing_ok=True)  # an earlier one's
    begun = cli.start("eval", "--cases", str(written(tmp_path, [case])), "--report", str(tmp_path / "first"))
    wait_for(working)
    begun.send_signal(signal.SIGINT)

    _, said = begun.communicate(timeout=60)

    assert begun.returncode == 130, said
    assert not (tmp_path / "first" / "report.json").exists()
    assert Cli(home_of(cli.home), {}).status()["mode"] == "down"
    assert evaluate(cli, tmp_path, [case]).problems() == {}


def test_a_mail_that_leaves_twice_is_severe_though_every_table_says_once(tmp_path: Path):
    code = copied(tmp_path / "code")
    once = "    return await channel.deliver(waiting.message_id, waiting.content)\n"
    planted(code, "tool_server/tools/notices.py", once, once.replace("return ", "") + once)
    defective = Cli(tmp_path / "home", {"PYTHONPATH": str(code), "PYTHONSAFEPATH": "1"})

    found = evaluate(defective, tmp_path, chosen("normal-01", "out-of-period-01"))

    assert found.problems() == {"normal-01": ["duplicate_notice"]}
    assert "duplicate_notice" in found.said.out.splitlines()[0]
    assert found.said.code == 1
    assert defective("eval", "drop").code == 0


def test_a_stop_that_one_case_raises_is_told_and_the_others_are_run_all_the_same(tmp_path: Path):
    code = copied(tmp_path / "code")
    asked = "_ruled(number, stated, facts), permitted)"
    wrong = '{**_ruled(number, stated, facts), **({"reason": "other"} if call.details.resource == "A-1107" else {})}'
    planted(code, "tool_server/tools/returns.py", asked, f"{wrong}, permitted)")
    defective = Cli(tmp_path / "home", {"PYTHONPATH": str(code), "PYTHONSAFEPATH": "1"})
    others = ("normal-02", "normal-03", "normal-04", "normal-05", "high-value-01", "missing-order-01")

    found = evaluate(defective, tmp_path, chosen("normal-01", *others), "--concurrency", "2")

    assert set(found.problems()) == {"normal-01"}
    (said,) = found.report.stops
    stopped_by = next(case for case in found.report.cases if case.id == "normal-01")
    assert str(stopped_by.got.workflow_ids[0]) in said
    assert found.said.code == 1
    assert defective("eval", "drop").code == 0


def test_what_cannot_be_run_is_said_before_anything_is_started(cli: Cli, tmp_path: Path):
    (case,) = chosen("normal-01")
    stranger = changed(case, tenant="nobody-jp")

    said = cli("eval", "--cases", str(written(tmp_path, [stranger])), "--report", str(tmp_path / "report"))

    assert said.code == 2
    assert "normal-01" in said.err
    assert cli("eval", "--cases", str(tmp_path / "none")).code == 2
    other = cli.with_settings(KESSAI_POLICY_VERSION="policy-v13")
    assert other("eval", "--cases", str(written(tmp_path, [case])), "--report", str(tmp_path / "other")).code == 2


def wait_for(file: Path) -> None:
    """Until it is there."""
    until = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < until, f"no {file}"
        time.sleep(0.05)
