"""The example claims, their page and the demo's data belong together; no person in them is real."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from host.workflows.claims import ClaimsCase
from shared_contracts.base import parse
from tool_server.demo.generate import SHOP
from tool_server.load_cases import read_seed

EXAMPLES = Path(__file__).parents[2] / "examples" / "claims"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.json"))
SEED = read_seed(SHOP.with_name("claims.json"))
DESKS_TENANT = "anshin-jp"


def case(name: str) -> ClaimsCase:
    return parse(ClaimsCase, json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_a_case_about_a_claim_of_the_demo(name: str) -> None:
    asked = case(name)
    (found,) = [one for one in SEED.cases if one.case_id == asked.case_id]
    assert asked.claimant_id == found.claimant_id
    assert (found.tenant_id == DESKS_TENANT) is (name != "other-tenant")
    assert asked.requested_at is not None, "the demo's rules stand still, so its examples say when they asked"


def test_the_page_has_a_line_for_every_example_and_no_other() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `([\w-]+)\.json` \|", page, re.MULTILINE)) == NAMES


def test_the_accepted_case_is_as_it_was_described() -> None:
    (found,) = [one for one in SEED.cases if one.case_id == "C-102"]
    assert (found.version, f"{found.rule_name}@{found.rule_version}") == (7, "motor-claim-standard@2026.1")
    assert {document.code for document in found.documents} == {"LOSS_STATEMENT", "IDENTITY_DOCUMENT", None}
    (source,) = [document for document in found.documents if document.code is None]
    assert (source.document_id, source.version, source.title) == ("DOC-C102-003", 1, "道路交通事故認定書")


def test_every_rule_and_alias_has_an_owner_and_the_dates_of_its_effect() -> None:
    for rules in SEED.rule_sets:
        for one in (rules, *rules.aliases):
            assert one.owner
            assert one.effective_until is None or one.effective_from < one.effective_until
