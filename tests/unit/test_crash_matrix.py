"""What a crash matrix says of itself is computed from its cells, and one thing that is wrong is enough."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from host.commands.crash_matrix import CELLS, _teller
from host.commands.progress import bar
from host.evaluation.crash.boundary import name_of
from host.evaluation.crash.documents import CrashCell, CrashMatrix
from host.evaluation.crash.matrix import _Board, _document
from host.evaluation.crash.names import SIDES, Boundary, said
from host.evaluation.crash.paths import BY_NAME, RETURNED, TABLE
from shared_contracts.evaluation_report import Compared

PATH, PLACE = BY_NAME["return/worker"], Boundary("commit_steps", 3)


def cell(when: Any, **changes: Any) -> CrashCell:
    good = {
        "path": PATH.name, "victim": PATH.victim, "boundary": str(PLACE), "when": when, "fired": True,
        "workflow_id": None, "expected": PATH.end, "reached": PATH.end, "effects": RETURNED, "recoveries": 1,
        "resume_seconds": 1.5, "wrong": (), "right": True,
    }  # fmt: skip
    return CrashCell(**(good | changes))


def compared(rows: int = 10, **found: tuple[str, ...]) -> Compared:
    none: dict[str, Any] = {"untracked": (), "missing": (), "duplicate": ()}
    return Compared(compared=rows, external=0, **(none | found))


def made(**changes: Any) -> CrashMatrix:
    """A good one of one commit, but for what is changed of it."""
    board = _Board(lambda *_: None)
    board.counted(PATH, changes.get("places", [PLACE]), changes.get("uncounted", ()))
    for when in SIDES:
        board.through(cell(when, **changes.get(when, {})))
    board.compared.append(changes.get("compared", compared()))
    board.stray += changes.get("stray", [])
    return _document(board, [PATH], 1, datetime.now(UTC), 2.0)


def test_a_matrix_of_right_cells_has_passed_with_both_sides_of_each_commit():
    view = made()
    assert view.passed
    assert [(one.when, one.boundary) for one in view.cells] == [(when, "commit_steps 3") for when in SIDES]


@pytest.mark.parametrize(
    "changes",
    [
        {"before": {"right": False, "wrong": ("returns 2, and 1 expected",)}},
        {"after": {"right": False, "fired": False, "wrong": ("the kill did not fire",)}},
        {"places": []},
        {"uncounted": ("it stands in NEEDS_REVIEW/unknown_effect",)},
        {"compared": compared(untracked=("jti",))},
        {"compared": compared(missing=("key",))},
        {"compared": compared(duplicate=("id",))},
        {"compared": compared(rows=0)},
        {"stray": ["<a@mail.example>"]},
    ],
    ids=str,
)
def test_one_thing_that_is_wrong_is_enough_for_no(changes):
    assert not made(**changes).passed


def test_a_cell_that_nobody_ran_is_no_matrix():
    board = _Board(lambda *_: None)
    board.counted(PATH, [PLACE], ())
    board.through(cell("before"))
    with pytest.raises(KeyError):
        _document(board, [PATH], 1, datetime.now(UTC), 2.0)


def test_without_a_terminal_it_is_said_that_commits_are_counted_until_there_are_cells(
    capsys: pytest.CaptureFixture[str],
):
    async def run() -> None:
        with bar(f"counting commits, {CELLS}", None) as shown:
            shown.line()
            _Board(_teller(shown)).counted(PATH, [PLACE], ())
            shown.line()

    asyncio.run(run())
    before, after = capsys.readouterr().err.splitlines()
    assert before.startswith("counting commits, cells 0, ")
    assert after.startswith("cells 0 of 2, ")


def test_every_path_has_a_name_of_its_own_and_says_who_dies_on_it():
    assert len(BY_NAME) == len(TABLE)
    assert {path.victim for path in TABLE} == {"worker", "tool_server", "command"}


def test_what_a_process_is_told_is_what_it_says_when_it_dies():
    assert said(PLACE.order("after")) == "SIGKILL after commit_steps 3\n"


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("SELECT * FROM commit_steps(%(p)s)", "commit_steps"),
        ("SELECT calls.answer(%(row)s)", "calls.answer"),
        (
            "SELECT a.code FROM calls.enter(%(call)s::jsonb) AS call, calls.answer(call, (SELECT 1)) AS a",
            "calls.answer",
        ),
        ("SELECT calls.enter(%(within)s::jsonb)", "calls.enter"),
        ("SELECT id FROM procrastinate_fetch_job_v2(%(queues)s)", "procrastinate_fetch_job"),
        ("INSERT INTO returns.approvals_used (a) VALUES (1)", "INSERT_INTO_returns.approvals_used"),
    ],
)
def test_a_commit_is_named_by_what_it_calls_and_in_one_word(statement, name):
    assert name_of(statement) == name
