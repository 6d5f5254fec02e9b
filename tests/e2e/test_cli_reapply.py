"""A waiting case is taken back from the command line, and asked for anew, as one that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, case, written
from tests.support.records import fits

pytestmark = pytest.mark.xdist_group("cli")


def test_a_case_is_withdrawn_and_asked_for_anew_once_however_often_it_is_typed(stack: Cli, tmp_path: Path):
    said = stack("run", written(tmp_path, case("high-value", request_id="to-be-withdrawn")), "--json")
    assert said.code == 10
    waiting = said.json()["workflow_id"]
    early = stack("reapply", waiting)
    assert early.code == 2
    assert "WAITING_APPROVAL" in early.err

    taken_back = fits(stack("withdraw", waiting, "--as", "sato", "--json").json(), "command.withdraw.json")
    assert taken_back == {"workflow_id": waiting, "withdrawn_by": "sato"}
    record = stack("show", waiting, "--json").json()
    assert (record["state"], record["reason"], record["effects"]) == ("REJECTED", "withdrawn", [])
    again = stack("withdraw", waiting)
    assert again.code == 2
    assert "REJECTED" in again.err

    first = fits(
        stack("reapply", waiting, "--as-of", "2026-07-30T09:00:00+09:00", "--json").json(), "command.reapply.json"
    )
    second = stack("reapply", waiting, "--as-of", "2026-07-30T09:00:00+09:00", "--json").json()
    assert (first["created"], second["created"]) == (True, False)
    assert first["workflow_id"] == second["workflow_id"]
    assert stack("run", first["workflow_id"]).code == 10
    assert first["requested_at"] == "2026-07-30T00:00:00Z"
    new = stack("show", first["workflow_id"], "--json").json()
    assert (new["supersedes"], new["superseded_by"]) == (waiting, None)
    old = fits(stack("show", waiting, "--json").json(), "record.json")
    assert (old["supersedes"], old["superseded_by"]) == (None, first["workflow_id"])
    assert f"superseded by {first['workflow_id']}" in stack("show", waiting).out
    assert f"superseded by {first['workflow_id']}" in stack("run", waiting).out
    assert stack("withdraw", first["workflow_id"]).code == 0


def test_who_asks_anew_without_a_time_is_told_that_the_case_is_judged_by_today_and_how_to_keep_the_old_time(
    stack: Cli, tmp_path: Path
):
    said = stack("run", written(tmp_path, case("high-value", request_id="asked-anew-late")), "--json")
    waiting = said.json()["workflow_id"]
    assert stack("withdraw", waiting).code == 0
    told = stack("reapply", waiting)
    new = str(stack("show", waiting, "--json").json()["superseded_by"])
    assert told.code == 0
    assert f"reapply {new} --as-of 2026-07-" in told.out
    assert stack("reapply", waiting, "--as-of", "2026-07-30T09:00:00+09:00").out.startswith(
        f"workflow {new} was asked for before, and keeps the time that it began with"
    )
    ended = stack("run", new)
    assert (ended.code, "REJECTED (out_of_period)" in ended.out) == (0, True)
    assert f"reapply {new} --as-of TIME" in ended.out
    third = stack("reapply", new, "--as-of", "2026-07-30T09:00:00+09:00", "--json").json()["workflow_id"]
    assert stack("run", third).code == 10
    assert stack("withdraw", third).code == 0
    assert "--as-of" in stack("reapply", "--help").out


def test_what_is_not_there_is_neither_withdrawn_nor_asked_for_anew(stack: Cli):
    for act in ("withdraw", "reapply"):
        said = stack(act, "no-such-case")
        assert said.code == 2
        assert "nothing is known" in said.err
    assert stack("reapply", "no-such-case", "--as-of", "yesterday").code == 2
