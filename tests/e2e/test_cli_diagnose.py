"""`kessai diagnose` as a user has it: a code for scripts, a sentence for people, with or without a stack."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.support.cli import EXAMPLES, Cli
from tests.support.records import fits
from tests.support.unguarded import unguarded

pytestmark = pytest.mark.xdist_group("diagnose")


def test_a_good_case_has_nothing_a_spoilt_one_its_first_deviation_and_an_unknown_one_is_refused(nowhere: Cli):
    workflow = nowhere("run", str(EXAMPLES / "normal.json"), "--json").json()["workflow_id"]
    try:
        said, document = nowhere("diagnose", workflow), nowhere("diagnose", workflow, "--json")
        assert (said.code, said.err, document.code) == (0, "", 0)
        assert said.out.startswith("Nothing deviates; the case has its answer, COMPLETED")
        assert f"kessai explain {workflow} --all" in said.out or f"host.cli explain {workflow} --all" in said.out
        found = fits(document.json(), "command.diagnose.json")
        assert (found["first_deviation"], found["ended_well"]) == (None, True)
        assert found["reconciliation"]["compared"] > 0
        assert nowhere.status()["mode"] == "down"

        unknown = nowhere("diagnose", "R-NOT-THERE")
        assert (unknown.code, unknown.out) == (2, "")
        assert "nothing is known of 'R-NOT-THERE'" in unknown.err

        assert nowhere("up").code == 0
        spoilt = "UPDATE effect SET external_id = 'R-OTHER' WHERE name = 'create_return'"
        unguarded(nowhere, spoilt)
        _spoilt(nowhere, workflow)
        _strays(nowhere, workflow)
        _connections(nowhere, workflow)
    finally:
        assert nowhere("empty", "--yes").code == 0


def _spoilt(cli: Cli, workflow: str) -> None:
    """The ledger has another number than the shop: a script reads the label, a person the sentence."""
    said, document = cli("diagnose", workflow), cli("diagnose", workflow, "--json")
    assert (said.code, document.code) == (1, 1)
    found = fits(document.json(), "command.diagnose.json")
    first = found["first_deviation"]
    assert (first["label"], first["code"], first["step_id"]) == ("persistence", "other_number", f"{workflow}.3")
    assert (first["cause"], found["ended_well"]) == ("failure_delivered_as_success", False)
    assert found["reconciliation"]["missing"] == [f"{workflow}:create_return"]
    for word in ("First deviation, persistence: create_return:", "other_number", f"{workflow}:create_return", "show"):
        assert word in said.out


def _strays(cli: Cli, workflow: str) -> None:
    """What others did to the case is found as by the whole comparison, and what is of no concern to it is not."""
    strange = {workflow: str(uuid.uuid4()), str(uuid.uuid4()): str(uuid.uuid4())}
    with cli.owner("tools") as tools:
        for task, token in strange.items():
            tools.execute(
                "INSERT INTO calls.log (iss, sub, client_id, kid, jti, use, tenant_id, task_id, tool, outcome,"
                " duration_us) VALUES ('i', 's', 'c', 'k', %s, 'call', 'acme-jp', %s, 'get_order', 'ok', 1)",
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


def _connections(cli: Cli, workflow: str) -> None:
    """Elsewhere it needs the record's connection and both auditors', and says which is missing."""
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
