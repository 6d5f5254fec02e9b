"""`kessai demo` as a user has it: each of the four is shown, by what was read after it had happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.records import fits

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


def test_the_four_things_are_shown_on_real_programs_and_nothing_real_is_touched(tmp_path: Path):
    cli = Cli(tmp_path / "home", {})

    said = cli("demo", "--json")

    assert (said.code, said.err) == (0, "")
    shown = {one["what"]: one for one in fits(said.json(), "command.demo.json")["shown"]}
    assert {what: one["held"] for what, one in shown.items()} == {
        "back_off": True, "confirmation_query": True, "compensation": True, "stop": True,
    }  # fmt: skip
    asked, *_ = shown["confirmation_query"]["said"]
    assert asked.endswith("send_return_notice (call) connection_lost; find_notice (reconciliation) success")
    assert "cancel_return (call) success" in shown["compensation"]["said"][1]
    assert shown["stop"]["said"][0].endswith("a new case was refused: new work is stopped")
    assert list(tmp_path.iterdir()) == [], "its own home is gone, and an evaluation's was never touched"
