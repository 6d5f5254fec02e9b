"""What things cost is read from a file: assumed where it is the packaged one, and never free by an oversight."""

from __future__ import annotations

from pathlib import Path

import pytest

from host.evaluation.rates import PACKAGED, read_rates
from shared_contracts.evaluation_cases import Refused
from shared_contracts.evaluation_report import CostRates

GIVEN = """
currency = "USD"
model_call = 0.5
tool_call = 1
retry = 0.25
approver_minute = 80.0
minutes_per_decision = 4.5
compensation_call = 2.0
"""


def given(folder: Path, text: str) -> CostRates | Refused:
    file = folder / "rates.toml"
    file.write_text(text, encoding="utf-8")
    return read_rates(file)


def test_without_a_file_the_rates_are_the_packaged_ones_and_called_assumed():
    rates = read_rates(None)
    assert isinstance(rates, CostRates)
    assert (rates.basis, rates.currency, rates.model_call) == ("assumed", "JPY", 0.0)


def test_every_packaged_rate_says_what_it_rests_on():
    lines = [line for line in PACKAGED.read_text(encoding="utf-8").splitlines() if "=" in line and line[0] != "#"]
    assert len(lines) == len(CostRates.model_fields) - 1
    assert all("# " in line for line in lines if "currency" not in line)


def test_a_file_is_taken_as_it_was_written_and_called_given(tmp_path: Path):
    rates = given(tmp_path, GIVEN)
    assert isinstance(rates, CostRates)
    assert (rates.basis, rates.currency, rates.tool_call, rates.minutes_per_decision) == ("given", "USD", 1.0, 4.5)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("retry = 0.25", "retry = 0.0", "retry is 0, which is no price"),
        ("approver_minute = 80.0", "", "approver_minute: is missing"),
        ("tool_call = 1", "tool_call = -1", "tool_call"),
        ("tool_call = 1", "tool_call = nan", "tool_call"),
        ("tool_call = 1", "tool_call = inf", "tool_call"),
        ("tool_call = 1", 'tool_call = "1"', "tool_call"),
        ("tool_call = 1", "tool_call = 2026-07-30", "rates.toml"),
        ("tool_call = 1", "tool_call = 1\ntool_cal = 1", "tool_cal: is not known here"),
        ("tool_call = 1", 'tool_call = 1\nbasis = "assumed"', "basis is not yours to say"),
        ("tool_call = 1", "tool_call", "is no TOML"),
        ('"USD"', '"usd"', "currency"),
    ],
)
def test_what_gives_no_price_is_refused_and_named(tmp_path: Path, before: str, after: str, said: str):
    assert GIVEN.count(before) == 1
    refused = given(tmp_path, GIVEN.replace(before, after))
    assert isinstance(refused, Refused)
    assert any(said in problem for problem in refused.problems), refused.problems


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    refused = read_rates(tmp_path / "none.toml")
    assert isinstance(refused, Refused)
    assert "none.toml: cannot be read" in refused.problems[0]
