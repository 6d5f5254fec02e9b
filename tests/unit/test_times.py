from __future__ import annotations

import pytest
from pydantic import ValidationError

from host.commands.exits import CommandError
from host.commands.run import moment
from host.workflows.returns import ReturnsCase
from shared_contracts.base import parse

CASE = {
    "kind": "returns", "customer_id": "C-1", "order_id": "A-1", "lines": [{"line_id": "1", "quantity": 1}],
    "reason": "other", "message": "",
}  # fmt: skip


@pytest.mark.parametrize("text", ["2026-07-30T10:00:00+09:00", "2026-07-29T15:00:00Z", "2000-01-01T00:00:00.5-11:00"])
def test_a_time_with_its_offset_is_taken(text: str) -> None:
    assert parse(ReturnsCase, {**CASE, "requested_at": text}).requested_at is not None


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1999-12-31T23:59:59Z", "1785373200", "20260730",
        "2026-07-30", "2026-07-30T10:00:00", "2026-07-30 10:00:00Z", "2026-13-30T10:00:00Z", "2026-07-30T10:00:00Z\n",
        "",
    ],
)  # fmt: skip
def test_what_is_no_time_or_stands_for_none_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        parse(ReturnsCase, {**CASE, "requested_at": text})


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "tomorrow", "2026-07-30", "2099-01-01T00:00:00Z"]
)
def test_a_command_line_takes_no_such_time_either(text: str) -> None:
    with pytest.raises(CommandError):
        moment(text)
