"""What the doctor makes of two sides' seals: each silence is a sentence, and each fault says what to do."""

from __future__ import annotations

import pytest

from host.commands.doctor_seals import HEADS, LOG, RECORD, checks
from shared_contracts.seal import SealLag


def at(waits: float | None, signed: float | None, kept: float | None) -> SealLag:
    return SealLag(waits=waits, signed=signed, kept=kept)


FRESH = at(None, 4.0, 3.0)
FOUND: list[tuple[SealLag | None, SealLag | str | None, dict[str, bool]]] = [
    (FRESH, FRESH, {RECORD: True, LOG: True, HEADS: True}),
    (at(0.4, None, None), at(None, None, None), {RECORD: True, LOG: True, HEADS: True}),  # it has only begun
    (at(61.0, 90.0, 3.0), FRESH, {RECORD: False, LOG: True, HEADS: True}),
    (at(61.0, None, None), FRESH, {RECORD: False, LOG: True, HEADS: True}),  # nothing was ever sealed
    (FRESH, at(3600.0, 3601.0, 3.0), {RECORD: True, LOG: False, HEADS: True}),
    (FRESH, "not_configured", {RECORD: True, LOG: False}),
    (FRESH, "unavailable", {RECORD: True, LOG: False}),
    (FRESH, None, {RECORD: True, LOG: True}),
    (None, FRESH, {LOG: True}),
    (at(None, 300.0, 299.0), at(None, 300.0, 299.0), {RECORD: True, LOG: True, HEADS: True}),  # nothing has happened
    (at(None, 300.0, 299.0), at(None, 300.0, None), {RECORD: True, LOG: True, HEADS: False}),  # never given
    (at(None, 300.0, 299.0), at(None, 300.0, 900.0), {RECORD: True, LOG: True, HEADS: False}),  # given no more
    (at(None, 300.0, 900.0), at(None, 300.0, 299.0), {RECORD: True, LOG: True, HEADS: False}),  # received no more
]


@pytest.mark.parametrize(("ours", "theirs", "expected"), FOUND)
def test_a_side_without_seals_or_without_the_others_head_is_not_well_and_told_what_to_do(
    ours: SealLag | None, theirs: SealLag | str | None, expected: dict[str, bool]
) -> None:
    found = list(checks(ours, theirs))
    assert {check.check: check.well for check in found} == expected
    assert all(check.detail and bool(check.mend) != check.well for check in found)
