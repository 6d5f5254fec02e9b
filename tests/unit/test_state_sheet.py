"""The state sheet: every state once, with how it is entered, what may be called, whether it ends, and its owner."""

from host.statesheet import ORDER, allowed_states, sheet
from host.workflows.returns import RETURNS, S

SHEET = {row.state: row for row in sheet(RETURNS).states}


def test_every_state_stands_on_the_sheet_once_and_in_its_group():
    assert set(SHEET) == {state.value for state in S}
    assert len(sheet(RETURNS).states) == len(S)
    groups = [row.group for row in sheet(RETURNS).states]
    assert groups == sorted(groups, key=ORDER.index)
    assert set(groups) == set(ORDER)


def test_the_groups_are_those_that_a_person_would_draw():
    drawn = {group: {row.state for row in SHEET.values() if row.group == group} for group in ORDER}
    assert drawn == {
        "begin": {"RECEIVED"},
        "work": {"ORDER_VERIFIED", "ELIGIBLE", "APPROVED", "RETURN_CREATED"},
        "wait": {"WAITING_APPROVAL", "RETRY_WAIT"},
        "end": {"COMPLETED", "REJECTED", "EXPIRED"},
        "exception": {"NEEDS_REVIEW", "COMPENSATION_REQUIRED"},
    }


def test_every_state_can_be_entered_and_somebody_answers_for_it():
    for row in SHEET.values():
        assert row.entry
        assert row.owner


def test_terminal_states_allow_no_tool():
    assert {row.state for row in SHEET.values() if row.terminal} == {"COMPLETED", "REJECTED", "EXPIRED", "NEEDS_REVIEW"}
    assert all(row.allowed_tools == () for row in SHEET.values() if row.terminal)


def test_a_way_in_names_its_event_its_source_its_actor_and_the_version_that_it_reads():
    assert "approved from WAITING_APPROVAL by approver, under row" in SHEET["APPROVED"].entry
    assert "due from RETRY_WAIT by timer, under row" in SHEET["ELIGIBLE"].entry
    assert not any("RETRY_WAIT" in way for way in SHEET["WAITING_APPROVAL"].entry)
    assert any("from any open state by engine" in way for way in SHEET["NEEDS_REVIEW"].entry)


def test_a_tools_states_are_those_that_offer_it():
    assert allowed_states("create_return", (RETURNS,)) == ("ELIGIBLE", "APPROVED")
    assert allowed_states("cancel_return", (RETURNS,)) == ()
