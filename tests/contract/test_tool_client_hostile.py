"""Whatever a tool server does with a call, the call has a classified outcome, and the next one works."""

from __future__ import annotations

import pytest

from tests.support.calling import READ, WRITE, pair, request, run, told
from tests.support.hostile_server import LEGACY
from tests.support.hostile_wire import BEHAVIOURS

GOOD = ("Success", "")
NO_ANSWER = ("Rejected", "no_answer")
LOST = (("Unknown", "connection_lost"), NO_ANSWER)
TIMED_OUT = (("Unknown", "timeout"), NO_ANSWER)
FAILED = (("Unknown", "internal_error"), NO_ANSWER)
NO_MCP = (("Unknown", "bad_answer"), ("Rejected", "bad_answer"))
UNFIT = (("Unknown", "bad_output"), ("Rejected", "bad_output"))


def _refused(code: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("Rejected", code), ("Rejected", code)


# what the server does · the outcome of a write · the outcome of a read
EXPECTED: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "answers": (GOOD, GOOD),
    "answers_closing": (GOOD, GOOD),
    "garbled": (GOOD, GOOD),
    "answers_as_event": (GOOD, GOOD),
    "answers_after_notices": (GOOD, GOOD),
    "answers_and_holds_the_stream": (GOOD, GOOD),
    "status_401": _refused("token_invalid"),
    "cookie": _refused("token_invalid"),
    "own_401": _refused("token_revoked"),
    "repeats_the_token_in_a_refusal": _refused("token_invalid"),
    "status_403": _refused("token_invalid"),
    "status_403_scope": _refused("scope_missing"),
    "own_403": _refused("scope_missing"),
    "status_413": _refused("invalid_arguments"),
    "status_429": _refused("rate_limited"),
    "own_503": _refused("unavailable"),
    "status_500": FAILED,
    "status_502_html": FAILED,
    "status_503": FAILED,
    "lying_503": FAILED,
    "status_504": FAILED,
    "endless_error": FAILED,
    "status_202": NO_MCP,
    "status_204": NO_MCP,
    "status_404": NO_MCP,
    "status_405": NO_MCP,
    "redirects_on_the_spot": NO_MCP,
    "redirects_away": NO_MCP,
    "html": NO_MCP,
    "no_media_type": NO_MCP,
    "not_json": NO_MCP,
    "not_utf8": NO_MCP,
    "not_a_number": NO_MCP,
    "half_a_surrogate": NO_MCP,
    "nested_deep": NO_MCP,
    "empty": NO_MCP,
    "huge_header": NO_MCP,
    "no_http": NO_MCP,
    "packed": NO_MCP,
    "bomb": NO_MCP,
    "fifty_megabytes": NO_MCP,
    "endless_chunks": NO_MCP,
    "endless_notices": NO_MCP,
    "batch": NO_MCP,
    "no_version": NO_MCP,
    "wrong_id": NO_MCP,
    "text_id": NO_MCP,
    "float_id": NO_MCP,
    "null_id": NO_MCP,
    "result_and_error": NO_MCP,
    "result_is_a_list": NO_MCP,
    "a_request": NO_MCP,
    "event_with_other_id": NO_MCP,
    "event_no_json": NO_MCP,
    "repeats_the_token": NO_MCP,
    "no_content": NO_MCP,
    "input_required": NO_MCP,
    "other_result_type": NO_MCP,
    "hangs": TIMED_OUT,
    "hangs_in_the_body": TIMED_OUT,
    "hangs_in_the_stream": TIMED_OUT,
    "drips": TIMED_OUT,
    "makes_progress_for_ever": TIMED_OUT,
    "answers_slowly": TIMED_OUT,
    "closes": LOST,
    "resets": LOST,
    "half_a_head": LOST,
    "half_a_body": LOST,
    "stream_without_answer": LOST,
    "resumable_stream_without_answer": LOST,
    "stream_cut_off": LOST,
    "rpc_unknown_tool": _refused("unknown_tool"),
    "rpc_unknown_tool_200": _refused("unknown_tool"),
    "rpc_method_not_found": _refused("version_mismatch"),
    "rpc_version": _refused("version_mismatch"),
    "rpc_header_mismatch": _refused("version_mismatch"),
    "rpc_internal": FAILED,
    "rpc_other": NO_MCP,
    "error_known": _refused("not_eligible"),
    "error_own_structured": _refused("quantity_gone"),
    "error_unknown_effect": FAILED,
    "error_lies": FAILED,
    "error_not_sent": NO_MCP,
    "error_without_code": NO_MCP,
    "error_other_code": NO_MCP,
    "error_code_no_text": NO_MCP,
    "error_meta_no_object": NO_MCP,
    "error_with_success": NO_MCP,
    "no_structured": UNFIT,
    "structured_list": UNFIT,
    "extra_field": UNFIT,
    "wrong_type": UNFIT,
    "no_date": UNFIT,
    "empty_object": UNFIT,
    "nul_in_text": UNFIT,
}
# These end by the call's own time alone.
SLOW = {name for name, expected in EXPECTED.items() if expected is TIMED_OUT}


def test_every_behaviour_of_the_hostile_server_is_expected() -> None:
    assert set(EXPECTED) == set(BEHAVIOURS)


async def _once(behaviour: str, tool: str) -> tuple[tuple[str, str], tuple[str, str], int]:
    async with pair(behaviour=behaviour) as (server, client):
        outcome = await client.call(request(tool, timeout_seconds=0.3 if behaviour in SLOW else 5.0))
        calls = len(server.calls())
        server.behaviour = "answers"
        return told(outcome), told(await client.call(request(READ))), calls


@pytest.mark.parametrize("behaviour", sorted(EXPECTED))
def test_a_write_has_its_outcome_one_request_and_the_client_goes_on(behaviour: str) -> None:
    outcome, after, calls = run(_once(behaviour, WRITE))
    assert outcome == EXPECTED[behaviour][0]
    assert after == GOOD
    assert calls == 1


@pytest.mark.parametrize("behaviour", sorted(EXPECTED))
def test_a_read_has_its_outcome_one_request_and_the_client_goes_on(behaviour: str) -> None:
    outcome, after, calls = run(_once(behaviour, READ))
    assert outcome == EXPECTED[behaviour][1]
    assert after == GOOD
    assert calls == 1


@pytest.mark.parametrize("behaviour", sorted(EXPECTED))
def test_the_older_revision_has_the_same_outcomes(behaviour: str) -> None:
    async def once() -> tuple[str, str]:
        async with pair(behaviour=behaviour, era="legacy") as (server, client):
            outcome = await client.call(request(WRITE, timeout_seconds=0.3 if behaviour in SLOW else 5.0))
            assert server.calls()[0].headers["mcp-protocol-version"] == LEGACY
            return told(outcome)

    # It has no result types, so one is left unread; and its structured content is an object by the protocol.
    otherwise = {"other_result_type": GOOD, "structured_list": NO_MCP[0]}
    expected = otherwise.get(behaviour, EXPECTED[behaviour][0])
    assert run(once()) == expected
