"""The crash matrix as an instrument: with one planted defect it is red in the cells that the defect is about, alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from host.evaluation.crash.documents import CrashCell, CrashMatrix
from host.evaluation.crash.matrix import crash_matrix
from host.evaluation.crash.paths import BY_NAME
from host.stack.postgres import PostgresChoice

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

# from where the notice is written down, which a look-up finds, to where its answer would have left
NOTICE_STANDS = (
    "after notices.begin_sending 1", "before maildir_link 1", "after maildir_link 1", "before notices.conclude 1",
    "after notices.conclude 1",
)  # fmt: skip


def made(root: Path, path: str, defect: str) -> CrashMatrix:
    """Run one path with programs that a nursery of the tests has spoilt."""
    choice = PostgresChoice(bin=None, os_user=None)
    work = crash_matrix(root / "home", choice, [BY_NAME[path]], 2, lambda *_: None, f"tests.crash.{defect}")
    return asyncio.run(work)


def red(view: CrashMatrix) -> dict[str, CrashCell]:
    assert not view.passed
    return {f"{one.when} {one.boundary}": one for one in view.cells if not one.right}


def test_a_host_that_adopts_nothing_is_red_where_an_effect_stands_that_nobody_heard_of(tmp_path: Path) -> None:
    found = red(made(tmp_path, "return/tool-server", "unadopted"))
    assert set(found) == {"after returns.issue 1", *NOTICE_STANDS}
    one = found["after returns.issue 1"]
    assert (one.fired, one.reached, one.resume_seconds) == (True, "NEEDS_REVIEW/unknown_effect", None)
    assert (one.effects.returns, one.effects.notices) == (1, 0)


def test_a_tool_server_that_mails_again_is_red_where_a_mail_had_left_that_nobody_knew_of(tmp_path: Path) -> None:
    found = red(made(tmp_path, "return/tool-server", "mailed_again"))
    assert set(found) == {"after maildir_link 1", "before notices.conclude 1"}
    for one in found.values():
        assert one.fired
        assert [said.startswith("2 mails of ") for said in one.wrong] == [True]


def test_a_kill_that_does_not_happen_is_red_though_the_case_ends_well(tmp_path: Path) -> None:
    found = red(made(tmp_path, "withdraw", "immortal"))
    assert len(found) == 2
    for one in found.values():
        assert (one.fired, one.reached) == (False, "REJECTED/withdrawn")
        assert one.wrong == ("the kill did not fire",)
