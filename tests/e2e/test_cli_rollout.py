"""A rollout as an operator types it, in a home of its own: refused to most, closed by what its cases have shown."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_cli_reconcile import unguarded
from tests.support.cli import Cli, case, written
from tests.support.recordable import recordable
from tests.support.records import fits
from tests.support.signed_reports import believing
from tests.support.signed_reports import written as signed_report

pytestmark = pytest.mark.xdist_group("cli_rollout")
AUTHZ = Path(__file__).parents[2] / "host" / "data" / "authz-v7.json"


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A stack that is up, whose desk hands in internal test orders, with a release that has passed."""
    folder = tmp_path_factory.mktemp("rollout")
    document: dict[str, Any] = json.loads(AUTHZ.read_text("utf-8"))
    document["principals"][0]["audience"] = "internal"
    (folder / "authz.json").write_text(json.dumps(document), encoding="utf-8")
    passed = (signed_report(folder, "report.json", recordable()), *believing(folder))
    cli = Cli(folder / "home", {"KESSAI_AUTHZ_FILE": str(folder / "authz.json")})
    assert cli("up").code == 0
    refused = cli("rollout", "open", "1", "--as", "sato")
    assert (refused.code, refused.out) == (2, "")
    assert "no release is recorded" in refused.err
    assert cli("release", "record", *passed, "--as", "sato").code == 0
    yield cli
    assert cli("empty", "--yes").code == 0


def open_anew(cli: Cli) -> None:
    """Open the first stage for a test that counts its cases from nothing."""
    cli("rollout", "close", "1", "--as", "sato", "--reason", "another test's", "--abandon")  # where it was open
    assert cli("rollout", "open", "1", "--as", "sato").code == 0


def asked(folder: Path, name: str) -> str:
    """A case that ends quickly, since there is no such order."""
    return written(folder, case("normal", request_id=name, order_id="A-404404"))


def test_a_case_of_a_later_audience_is_refused_with_a_code_of_its_own_and_one_of_the_stage_is_taken(
    staged: Cli, tmp_path: Path
):
    open_anew(staged)
    told = staged("run", asked(tmp_path, "later"), "--principal", "returns-reader@acme-jp")
    assert (told.code, told.out) == (16, "")
    assert "stage 1 is open, and ordinary requesters come in with stage 3" in told.err
    assert staged("run", asked(tmp_path, "first")).code == 0
    closed = staged("rollout", "close", "1", "--as", "sato", "--reason", "enough")
    assert (closed.code, closed.out) == (1, "")
    assert "1 of 10 cases have ended" in closed.err


def planted(cli: Cli, table: str, statement: str, *values: str) -> None:
    """Change one of the provider's rows behind everybody's back."""
    with cli.owner("tools") as tools:
        assert len(unguarded(tools, table, f"{statement} RETURNING 1", *values)) == 1


def kept_open(cli: Cli, why: str) -> None:
    said = cli("rollout", "close", "1", "--as", "sato", "--reason", "all ten were looked at")
    assert (said.code, said.out) == (1, "")
    assert "stage 1 stays open" in said.err
    assert why in said.err
    view = cli("rollout", "status", "--json").json()
    assert (view["status"], view["stage"]["ended"], view["several_at_a_time"]) == ("open", 10, False)


@pytest.mark.long
def test_a_stage_is_closed_by_ten_cases_and_both_sides_and_stands_in_the_form(staged: Cli, tmp_path: Path):
    open_anew(staged)
    for n in range(1, 10):
        assert staged("run", asked(tmp_path, f"staged-{n}")).code == 0
    made = staged("run", written(tmp_path, case("normal", request_id="staged-10")), "--json").json()
    assert made["state"] == "COMPLETED"
    view = fits(staged("rollout", "status", "--json").json(), "command.rollout.json")
    assert (view["status"], view["stage"]["ended"], view["several_at_a_time"]) == ("open", 10, False)
    waived = staged("rollout", "waive", "--as", "sato", "--reason", "hurry")
    assert (waived.code, waived.out) == (2, "")
    assert "stage 1 is open; close it first" in waived.err
    several = staged("worker", "--concurrency", "2")
    assert (several.code, several.out) == (15, "")
    assert "one case at a time" in several.err
    full = staged("run", asked(tmp_path, "staged-11"))
    assert (full.code, full.out) == (16, "")
    assert "stage 1 has its 10 cases" in full.err
    token, again, key = str(uuid.uuid4()), "R-again", f"{made['workflow_id']}:create_return"
    planted(
        staged, "calls.log",
        "INSERT INTO calls.log (iss, sub, client_id, kid, jti, use, tenant_id, task_id, tool, outcome, duration_us)"
        " VALUES ('i', 's', 'c', 'k', %s, 'call', 'acme-jp', %s, 'get_order', 'ok', 1)",
        token, str(uuid.uuid4()),
    )  # fmt: skip
    kept_open(staged, "1 untracked")
    planted(staged, "calls.log", "DELETE FROM calls.log WHERE jti = %s", token)
    planted(
        staged, "returns.returns",
        "INSERT INTO returns.returns SELECT tenant_id, %s, order_id, customer_id, %s, status, reason, currency,"
        " 0, 0, 0, rule_version, order_version, requested_at FROM returns.returns WHERE idempotency_key = %s",
        again, f"{key}.2", key,
    )  # fmt: skip
    kept_open(staged, "1 duplicate")
    planted(staged, "returns.returns", "DELETE FROM returns.returns WHERE return_id = %s", again)
    said = staged("rollout", "close", "1", "--as", "sato", "--reason", "all ten were looked at", "--json")
    view = fits(said.json(), "command.rollout.json")
    last = view["history"][-1]
    passed = last["passed"]
    assert (last["act"], last["releases"], last["by"]["name"]) == ("pass", {"returns": "returns-1"}, "sato")
    assert (last["by"]["reason"], passed["observed_seconds"] > 0) == ("all ten were looked at", True)
    assert (said.code, passed["cases"], passed["untracked"], view["several_at_a_time"]) == (0, 10, 0, True)
    assert passed["compared"] > 0
    form = tmp_path / "form.md"
    assert staged("rollout", "status", "--form", str(form)).code == 0
    page = form.read_text("utf-8")
    assert all(word in page for word in ("returns-1", "all ended", "no untracked calls", "all ten", "`sato`"))
