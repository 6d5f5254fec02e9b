"""A report is written once, and where it cannot be is said before anything is run."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from host.commands.exits import CommandError, Exit
from host.commands.report_file import ANYBODYS, OURS, place, write, written


@pytest.mark.parametrize("mode", [OURS, ANYBODYS])
def test_a_report_is_written_whole_for_those_who_may_read_it(tmp_path: Path, mode: int):
    file = place(tmp_path / "made" / "for it", "report.json", mode)
    assert list(tmp_path.iterdir()) == [], "a report that is never written leaves no directory"

    write(file, {"said": "山"}, mode)

    assert json.loads(file.read_text("utf-8")) == {"said": "山"}
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert list(file.parent.iterdir()) == [file]


def test_a_report_that_is_there_is_refused_before_anything_is_run(tmp_path: Path):
    (tmp_path / "report.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CommandError, match="is there already") as refused:
        place(tmp_path, "report.json", OURS)
    assert (refused.value.code, "Nothing was run." in refused.value.mend) == (Exit.BAD_INPUT, True)


def test_a_report_that_came_meanwhile_stays(tmp_path: Path):
    file = place(tmp_path, "report.json", ANYBODYS)
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(CommandError, match="is there already"):
        write(file, {"said": "later"}, ANYBODYS)
    assert [one.read_text("utf-8") for one in tmp_path.iterdir()] == ["{}"]


def test_what_cannot_be_kept_any_more_is_shown_before_that_is_said(tmp_path: Path):
    file = place(tmp_path / "gone", "report.json", OURS)
    (tmp_path / "gone").write_text("in the way", encoding="utf-8")
    shown = list[str]()
    with pytest.raises(CommandError, match="no report can be written"), written(file, {}, OURS):
        shown.append("the answer")
    assert shown == ["the answer"]


@pytest.mark.parametrize("directory", ["/proc", "/dev/null/report"], ids=["it is there", "it cannot be made"])
def test_a_directory_in_which_nothing_can_be_written_is_said_before_anything_is_run(directory: str):
    with pytest.raises(CommandError, match="no report can be written") as refused:
        place(Path(directory), "report.json", OURS)
    assert refused.value.code is Exit.BAD_INPUT
