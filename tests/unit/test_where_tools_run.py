"""Where each tool runs was decided for every family that there is."""

from __future__ import annotations

import re

from shared_contracts.contract import FAMILIES
from shared_contracts.tools import TOOLS
from tests.traceability import ROOT

DECISION = (ROOT / "docs" / "decisions" / "0007-where-each-tool-runs.md").read_text("utf-8")
NUMBERS = {"four": 4, "ten": 10}


def test_every_tools_family_stands_in_the_table_once_and_the_tools_are_counted():
    rows = re.findall(r"^\| ([a-z, ]+) \(([a-z]+) tools\) \| MCP \|", DECISION, re.MULTILINE)
    decided = {tuple(families.split(", ")): NUMBERS[number] for families, number in rows}
    assert sorted(family for families in decided for family in families) == sorted(FAMILIES)
    for families, number in decided.items():
        assert number == sum(tool.scope.value.partition(":")[0] in families for tool in TOOLS.values()), families
    assert sum(decided.values()) == len(TOOLS)
