"""Small parts of the command line, without a process: codes, text for terminals, rests, mails, help."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from host.cli.options import flowing
from host.commands import exit_codes
from host.commands.ending import find_mail
from host.commands.exits import Exit, exit_of
from host.commands.follow import line, rests
from host.commands.output import command, write_json
from host.settings import Settings
from host.store.record import Moment, Position
from host.workflows.returns import ENDS, S
from shared_contracts.base import Money
from shared_contracts.printed import money, plain

CODES = {
    "COMPLETED": 0, "REJECTED": 0, "WAITING_APPROVAL": 10, "NEEDS_REVIEW": 11, "EXPIRED": 12,
    "COMPENSATION_REQUIRED": 13,
}  # fmt: skip


def position(**changes: object) -> Position:
    plainly: dict[str, object] = {
        "state": "RECEIVED", "control_state": "tool_proposed", "reason": "r", "wake_reason": None, "lease_owner": None,
        "seq": 1, "version": 1, "leased": False, "due_in_seconds": None,
    }  # fmt: skip
    return Position(**{**plainly, **changes})


def test_a_command_to_go_on_with_names_the_home_only_where_the_work_is_done_there(tmp_path: Path):
    here = Settings(home=tmp_path / "my home")
    assert command(here, "show", "ID").startswith(f"KESSAI_HOME='{tmp_path}/my home' ")
    assert command(here, "show", "ID").endswith(" show ID")
    assert "KESSAI_HOME" not in command(Settings(home=tmp_path, dsn=SecretStr("host=db.example")), "show", "ID")


@pytest.mark.parametrize("state", S)
def test_every_state_in_which_a_case_rests_has_its_exit_code(state):
    assert exit_of(state, "completed") == CODES.get(state)


def test_a_failed_run_has_the_code_of_a_fault_whatever_its_state():
    assert {exit_of(state, "failed") for state in S} == {Exit.FAILED}


def test_every_end_has_a_code_and_the_table_explains_every_code():
    assert set(ENDS) <= set(CODES)
    assert {code.value for code in exit_codes.CODES["run"]} == {0, 1, 2, 10, 11, 12, 13, 14, 15, 16}
    assert set(exit_codes.KINDS) == set(Exit)


@pytest.mark.parametrize(
    ("changes", "resting"),
    [
        ({"control_state": "completed"}, True),
        ({"control_state": "needs_human"}, True),
        ({"wake_reason": "accepted", "due_in_seconds": -1.0}, False),
        ({"wake_reason": "approval", "due_in_seconds": 3600.0}, True),
        ({"wake_reason": "approval", "due_in_seconds": -1.0}, False),
        ({"state": "COMPENSATION_REQUIRED", "wake_reason": "compensation", "due_in_seconds": 86400.0}, True),
        ({"state": "COMPENSATION_REQUIRED", "wake_reason": "compensation", "due_in_seconds": -1.0}, False),
        ({"wake_reason": "retry", "due_in_seconds": 2.0}, False),
        ({"wake_reason": "verification", "due_in_seconds": -2.0}, False),
        ({"lease_owner": "here:1", "leased": True}, False),
        ({"lease_owner": "here:1", "leased": False}, False),  # its driver died
        ({"state": "COMPENSATION_REQUIRED"}, True),
    ],
    ids=str,
)
def test_only_an_end_or_a_wait_for_a_person_is_a_rest(changes, resting):
    assert rests(position(**changes)) is resting


def test_text_from_outside_loses_every_character_that_could_move_a_cursor():
    assert plain("a\x1b[31mb\x07c\u202ed\x9be") == "a�[31mb�c�d�e"
    assert plain("返品番号 R-1") == "返品番号 R-1"


@pytest.mark.parametrize(
    ("amount", "currency", "written"),
    [
        (54_994, "USD", "549.94 USD"),
        (5, "EUR", "0.05 EUR"),
        (123_456_700, "USD", "1,234,567.00 USD"),
        (0, "USD", "0.00 USD"),
        (54_994, "JPY", "54,994 JPY"),
        (54_994, "KWD", "54.994 KWD"),
        (54_994, "XTS", "54,994 XTS (in its smallest unit)"),
    ],
)
def test_an_amount_is_written_as_people_write_it(amount: int, currency: str, written: str):
    assert money(Money(amount=amount, currency=currency)) == written


def test_json_moves_no_cursor_and_means_what_it_meant(capsys: pytest.CaptureFixture[str]):
    value = {"said": "\x1b[2J\x9b31m\x7f\u2028\u202e\u2066\U000e0001 日本語 é 😀", "lines": ["a\nb", "\t"]}
    write_json(value)
    written = capsys.readouterr().out
    assert json.loads(written) == value
    assert all(letter.isprintable() for letter in written.replace("\n", ""))
    assert "日本語 é 😀" in written


def test_a_line_of_the_timeline_has_time_state_move_tool_attempt_reason_and_evidence():
    at = datetime(2026, 7, 30, 1, 2, 3, 456_789, tzinfo=UTC)
    moment = Moment(
        seq=9, at=at, control_from="tool_running", control_to="tool_proposed", state="RETRY_WAIT", event="transient",
        actor="engine", reason="rate_limited\x1b", evidence=["order://A-1@1"], tool="get_order", send=2,
    )  # fmt: skip
    said = line(moment).plain
    for word in (
        at.astimezone().strftime("%H:%M:%S.456"), "RETRY_WAIT", "tool_running → tool_proposed", "get_order #2",
        "transient: rate_limited", "order://A-1@1",
    ):  # fmt: skip
        assert word in said
    assert "\x1b" not in said


def test_a_help_text_flows_except_where_its_lines_are_kept():
    text = "One\n    two.\n\n    Three\n    four.\n\n    \b\n    a  b\n    c\n"
    assert flowing(text) == "One two.\n\nThree four.\n\n\b\na  b\nc"
    assert flowing(None) == ""


def test_a_mail_is_found_by_its_id_in_either_folder_and_by_nothing_else(tmp_path: Path):
    for folder in ("new", "cur", "tmp"):
        (tmp_path / folder).mkdir()
    (tmp_path / "new" / "1").write_bytes(
        b"Subject: x\r\nMessage-ID: <a@b.example>\r\n\r\nMessage-ID: <c@b.example>\r\n"
    )
    (tmp_path / "cur" / "2:2,S").write_bytes(b"message-id: <d@b.example>\n\nbody")
    assert find_mail(tmp_path, "<a@b.example>") == tmp_path / "new" / "1"
    assert find_mail(tmp_path, "<d@b.example>") == tmp_path / "cur" / "2:2,S"
    assert find_mail(tmp_path, "<c@b.example>") is None
    assert find_mail(tmp_path / "nowhere", "<a@b.example>") is None


def test_a_mail_that_a_reader_moves_while_it_is_looked_for_stops_nothing(tmp_path: Path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "moved").symlink_to(tmp_path / "gone")  # listed, and not there any more
    (tmp_path / "new" / "2").write_bytes(b"Message-ID: <a@b.example>\r\n\r\n")
    assert find_mail(tmp_path, "<a@b.example>") == tmp_path / "new" / "2"
    assert find_mail(tmp_path, "<other@b.example>") is None


def test_a_mail_that_cannot_be_opened_is_passed_over(tmp_path: Path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "folder").mkdir()
    assert find_mail(tmp_path, "<a@b.example>") is None
