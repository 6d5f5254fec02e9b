"""Headers are untrusted text: what is not exactly right is not there."""

from __future__ import annotations

import pytest

from host.tool_client.headers import challenge, retry_after, session_id

NOW = "Thu, 30 Jul 2026 00:00:00 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("999999999", 999_999_999.0),
        ("Thu, 30 Jul 2026 00:00:09 GMT", 9.0),
        ("Wed, 29 Jul 2026 23:59:59 GMT", -1.0),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("1e3", None),
        ("٧", None),
        ("9" * 5000, None),
        ("Infinity", None),
        ("soon", None),
        ("Thu, 30 Jul 99999999 00:00:09 GMT", None),
    ],
)
def test_a_wait_is_whole_seconds_or_a_date_against_the_answers_own(value: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": value, "Date": NOW}) == seconds


@pytest.mark.parametrize("headers", [{}, {"Date": ""}, {"Date": "now"}, {"Date": "Thu, 30 Jul 2026 00:00:00 -0000"}])
def test_a_date_without_one_to_hold_it_against_is_no_wait(headers: dict[str, str]) -> None:
    assert retry_after({"Retry-After": "Thu, 30 Jul 2026 00:00:09 GMT", **headers}) is None


def test_a_bearer_challenge_says_what_was_missing() -> None:
    value = (
        'Bearer error="insufficient_scope", scope="orders:read returns:write", resource_metadata="http://x.example/m"'
    )
    assert challenge({"WWW-Authenticate": value}) == {
        "error": "insufficient_scope",
        "scope": "orders:read returns:write",
        "resource_metadata": "http://x.example/m",
    }


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", 'Basic realm="error"', 'Bearer xerror="no"', 'Bearer error=""', f'Bearer error="{"e" * 301}"',
     'Bearer error="a\x00b"', 'Bearer error="\udcff"', "Bearer error=plain"],
)  # fmt: skip
def test_what_is_no_challenge_of_ours_says_nothing(value: str) -> None:
    assert challenge({"WWW-Authenticate": value}) == {}


@pytest.mark.parametrize(
    ("value", "kept"), [("s-1", "s-1"), ("", None), ("a b", None), ("ä", None), ("x" * 201, None), ("a\r\nb", None)]
)
def test_a_session_id_is_short_and_visible(value: str, kept: str | None) -> None:
    assert session_id({"Mcp-Session-Id": value}) == kept
