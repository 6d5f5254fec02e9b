"""`kessai crash-matrix` as it is typed: in homes of its own, every kill proved, red where something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Cli, Said
from tests.support.records import fits

WAITED_MAX = 900  # on a busy machine; how long it takes is told by the command itself
VICTIMS = {"worker", "tool_server", "command"}


def test_both_sides_of_a_commit_are_killed_in_a_home_that_is_gone_afterwards(nowhere: Cli, tmp_path: Path) -> None:
    said = nowhere("crash-matrix", "approve", "--concurrency", "1", "--report", str(tmp_path / "kept"), "--json")
    view = fits(said.json(), "command.crash_matrix.json")
    assert (said.code, view["passed"]) == (0, True), said.out
    assert said.err.startswith("counting commits, cells 0, ")
    assert [(one["when"], one["boundary"]) for one in view["cells"]] == [
        (when, view["paths"][0]["boundaries"][0]) for when in ("before", "after")
    ]
    for one in view["cells"]:
        assert (one["fired"], one["wrong"], one["reached"]) == (True, [], "COMPLETED/notice_verified")
        assert one["effects"] == {"returns": 1, "notices": 1, "cancellations": 0, "corrections": 0}
        assert one["resume_seconds"] > 0
    assert view["compared"][0]["compared"] > 0
    assert json.loads((tmp_path / "kept" / "crash-matrix.json").read_text("utf-8")) == view
    assert sorted(nowhere.home.parent.iterdir()) == [tmp_path / "kept"]


def test_what_is_no_path_and_a_report_that_is_there_are_refused_before_anything_is_started(
    nowhere: Cli, tmp_path: Path
) -> None:
    said = nowhere("crash-matrix", "return/nobody")
    assert said.code == 2
    assert "return/worker" in said.err
    (tmp_path / "crash-matrix.json").write_text("{}", encoding="utf-8")
    assert nowhere("crash-matrix", "approve", "--report", str(tmp_path)).code == 2
    assert list(nowhere.home.parent.iterdir()) == [tmp_path / "crash-matrix.json"]


@pytest.mark.long
@pytest.mark.timeout(WAITED_MAX)
def test_every_commit_of_every_way_of_writing_is_survived(nowhere: Cli) -> None:
    with nowhere.start("crash-matrix", "--json") as process:  # longer than a call of the command line may take here
        out, err = process.communicate(timeout=WAITED_MAX - 60)
    said = Said(process.returncode, out, err)
    view = fits(said.json(), "command.crash_matrix.json")
    assert [one for one in view["cells"] if not one["right"]] == []
    assert (said.code, view["passed"]) == (0, True), said.err
    assert {one["victim"] for one in view["cells"]} == VICTIMS
    assert len(view["cells"]) == 2 * sum(len(one["boundaries"]) for one in view["paths"])
    assert all(one["boundaries"] for one in view["paths"])
    assert all(one["fired"] for one in view["cells"])
