"""`kessai diagnose` as a user has it: a code for scripts, a sentence for people, with or without a stack."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import EXAMPLES, Cli
from tests.support.records import fits
from tests.support.unguarded import unguarded

pytestmark = pytest.mark.xdist_group("diagnose")


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cli, str]]:
    """A stack that is up, with one case whose ledger has another number than the shop."""
    cli = Cli(tmp_path_factory.mktemp("diagnose") / "home", {})
    assert cli("up").code == 0
    workflow = cli("run", str(EXAMPLES / "normal.json"), "--json").json()["workflow_id"]
    unguarded(cli, "UPDATE effect SET external_id = 'R-OTHER' WHERE name = 'create_return'")
    yield cli, workflow
    assert cli("empty", "--yes").code == 0


def test_a_good_case_has_nothing_and_an_unknown_one_is_refused_with_no_stack_up(nowhere: Cli):
    workflow = nowhere("run", str(EXAMPLES / "normal.json"), "--json").json()["workflow_id"]
    try:
        said, document = nowhere("diagnose", workflow), nowhere("diagnose", workflow, "--json")
        assert (said.code, said.err, document.code) == (0, "", 0)
        assert said.out.startswith("Nothing deviates; the case has its answer, COMPLETED")
        assert f" explain {workflow} --all" in said.out
        found = fits(document.json(), "command.diagnose.json")
        assert (found["first_deviation"], found["ended_well"]) == (None, True)
        assert found["reconciliation"]["compared"] > 0
        unknown = nowhere("diagnose", "R-NOT-THERE")
        assert (unknown.code, unknown.out) == (2, "")
        assert "nothing is known of 'R-NOT-THERE'" in unknown.err
        assert nowhere.status()["mode"] == "down"
    finally:
        assert nowhere("empty", "--yes").code == 0


def test_a_spoilt_case_has_a_label_for_a_script_and_a_sentence_for_a_person(spoilt: tuple[Cli, str]):
    cli, workflow = spoilt
    said, document = cli("diagnose", workflow), cli("diagnose", workflow, "--json")
    assert (said.code, document.code) == (1, 1)
    found = fits(document.json(), "command.diagnose.json")
    first = found["first_deviation"]
    assert (first["label"], first["code"], first["step_id"]) == ("persistence", "other_number", f"{workflow}.3")
    assert (first["cause"], found["ended_well"]) == ("failure_delivered_as_success", False)
    assert found["reconciliation"]["missing"] == [f"{workflow}:create_return"]
    for word in ("First deviation, persistence: create_return:", "other_number", f"{workflow}:create_return", "show"):
        assert word in said.out


def test_what_others_did_to_a_case_is_found_as_by_the_whole_comparison(spoilt: tuple[Cli, str]):
    cli, workflow = spoilt
    strange = {workflow: str(uuid.uuid4()), str(uuid.uuid4()): str(uuid.uuid4())}
    with cli.owner("tools") as tools:
        for task, token in strange.items():
            tools.execute(
                "INSERT INTO calls.log (iss, sub, client_id, kid, jti, use, tenant_id, task_id, tool, outcome,"
                " duration_us) VALUES ('i', 's', 'c', 'k', %s, 'call', 'acme-jp', %s, 'find_notice', 'ok', 1)",
                (token, task),
            )
        tools.execute(
            "INSERT INTO returns.returns SELECT tenant_id, 'R-TWICE', order_id, customer_id, %s, status, reason,"
            " currency, 0, 0, 0, rule_version, order_version, requested_at FROM returns.returns"
            " WHERE idempotency_key = %s",
            (f"{workflow}:again", f"{workflow}:create_return"),
        )
    found = cli("diagnose", workflow, "--json").json()
    whole = cli("reconcile", "--json").json()
    assert set(whole["untracked"]) == set(strange.values())
    assert found["reconciliation"]["untracked"] == [strange[workflow]]
    for kind in ("missing", "duplicate"):
        assert found["reconciliation"][kind] == whole[kind] != []
    told = {one["code"] for one in (found["first_deviation"], *found["consequences"])}
    assert told == {"other_number", "made_twice", "no_attempt"}


def test_elsewhere_it_needs_the_records_connection_and_both_auditors_and_says_which_is_missing(spoilt: tuple[Cli, str]):
    cli, workflow = spoilt
    audit = {
        "KESSAI_AUDIT_HOST_DSN": cli.dsn("host", "host_auditor"),
        "KESSAI_AUDIT_TOOLS_DSN": cli.dsn("tools", "tools_auditor"),
    }
    host = {"KESSAI_DSN": cli.dsn("host", "host_rt")}
    elsewhere = Cli(Path(f"{cli.home}-not-there"), {})
    assert elsewhere("diagnose", workflow, **audit, **host).code == 1
    for given, named in ((audit, "KESSAI_DSN is missing"), (host, "KESSAI_AUDIT_HOST_DSN is missing")):
        refused = elsewhere("diagnose", workflow, **given)
        assert (refused.code, named in refused.err) == (2, True), refused.err
    writes = elsewhere("diagnose", workflow, **{**audit, **host, "KESSAI_AUDIT_HOST_DSN": host["KESSAI_DSN"]})
    assert (writes.code, "the role host_rt can write" in writes.err) == (15, True)
    assert not elsewhere.home.exists()
