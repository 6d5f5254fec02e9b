"""Who made a report: what was signed is believed, and nothing that was changed, stripped or signed by anybody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from host.evaluation.gate import release_gate
from shared_contracts.base import dump, parse
from shared_contracts.evaluation_report import EvaluationReport
from shared_contracts.evaluation_signature import TYPE, signed, unsigned
from shared_contracts.seal import Head, Signer
from tests.support.evaluations import cases, report
from tests.support.sealing import signers

HOST, TOOLS, KEYS = signers()
OTHER, _, _ = signers()
GOOD = signed(report(), HOST)
Change = Callable[[dict[str, Any]], Any]


def read(document: dict[str, Any]) -> EvaluationReport:
    return parse(EvaluationReport, document)


def test_what_a_home_has_signed_is_believed_in_whatever_order_its_members_come():
    assert unsigned(GOOD, KEYS) is None
    assert unsigned(read(dict(reversed(dump(GOOD).items()))), KEYS) is None
    assert release_gate(GOOD, unsigned=unsigned(GOOD, KEYS)).passed
    assert signed(GOOD, HOST) == GOOD, "made again it is the same"


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made["cases"][0]["got"].update(calls=5),
        lambda made: made["cases"][7]["got"].update(seconds=0.25),
        lambda made: made["compared"].update(compared=2001),
        lambda made: made.update(scope="faults"),
        lambda made: made.update(build="0.1.1"),
        lambda made: made.update(made_at="2026-08-01T09:00:01Z"),
        lambda made: made["cases"].pop(),
    ],
    ids=["a call", "a time", "a row", "what was run", "the build", "when", "a case"],
)
def test_one_thing_changed_is_enough_and_the_gate_names_it(change: Change):
    made = dump(GOOD)
    change(made)
    changed = read(made)
    why = unsigned(changed, KEYS)
    assert why == "its signature is of another report"
    view = release_gate(changed, unsigned=why)
    assert (view.passed, "not_signed" in view.said) == (False, True)
    assert [one.said for one in view.refused if one.code == "not_signed"] == [f"who made it is not shown: {why}"]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (report(), "it is not signed"),
        (signed(report(), OTHER), "its key is not trusted for this side"),
        (signed(report(), TOOLS), "its key is not trusted for this side"),
        (report().model_copy(update={"signature": signed(report(cases()[1:]), HOST).signature}), "of another report"),
        (GOOD.model_copy(update={"signature": GOOD.signature[:-4] + "AAAA"}), "its signature does not hold"),
        (GOOD.model_copy(update={"signature": GOOD.signature.rsplit(".", 1)[0]}), "it is not signed"),
    ],
    ids=["none", "another home's", "the other side's", "another report's", "another signature", "cut off"],
)
def test_nothing_else_passes_for_a_signature(made: EvaluationReport, why: str):
    found = unsigned(made, KEYS)
    assert found is not None
    assert found.endswith(why)


def test_what_the_same_key_has_sealed_is_no_signature_of_a_report_and_the_other_way_round():
    head = Head(
        side="host", chain="0" * 36, n=1, chained="0" * 64, horizon="1", whole=True, at="2026-08-01T09:00:00.000000Z"
    )
    assert unsigned(GOOD.model_copy(update={"signature": HOST.sign(head)}), KEYS) == "it is signed as something else"
    assert Signer("host", HOST.key).signed(TYPE, b"{}") != HOST.sign(head)


def test_a_home_without_keys_believes_nobody():
    nobody = KEYS.model_copy(update={"host": ()})
    assert unsigned(GOOD, nobody) == "its key is not trusted for this side"
