"""What a person reads who does the wrong thing to a case: why not, where it is, and each command that it can take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import EXAMPLES, Cli, case, written
from tests.support.unguarded import unguarded

pytestmark = pytest.mark.xdist_group("cli")

WHY = ("--reason", "a mistake")
SATO = ("--as", "sato")
ACTS: dict[str, tuple[str, ...]] = {
    "approve": ("approve", "ID", "--as", "tanaka"),
    "deny": ("deny", "ID", "--as", "tanaka", *WHY),
    "withdraw": ("withdraw", "ID", *SATO),
    "reapply": ("reapply", "ID"),
    "adopt": ("review", "ID", "adopt", *SATO),
    "order": ("review", "ID", "compensate", *WHY, *SATO),
    "close": ("review", "ID", "close", *WHY, *SATO),
    "compensate": ("compensate", "ID", *SATO),
    "handover": ("handover", "ID"),
}
# where a case stands, what it can take there, and which acts are none of that
STANDS: dict[str, tuple[set[str], set[str]]] = {
    "COMPLETED": ({"show", "explain"}, set(ACTS)),
    "WAITING_APPROVAL": (
        {"approve", "deny", "withdraw", "show", "explain"},
        set(ACTS) - {"approve", "deny", "withdraw"},
    ),
    "NEEDS_REVIEW": ({"review", "show", "explain"}, set(ACTS) - {"close", "handover"}),
    "REJECTED": ({"reapply", "show", "explain"}, set(ACTS) - {"reapply"}),
    "RECEIVED": ({"show", "explain"}, set(ACTS)),
}
OWN = {"COMPLETED": {"order_id": "A-1031", "customer_id": "C-2031"}}  # no example's, whose units other tests need


@pytest.fixture(scope="module")
def stands(stack: Cli, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """A case in each place."""
    folder = tmp_path_factory.mktemp("refused")
    names = {"COMPLETED": "fault-429", "WAITING_APPROVAL": "high-value", "NEEDS_REVIEW": "dangerous"}
    found = {
        state: stack(
            "run", written(folder, case(name, request_id=f"refused-{name}", **OWN.get(state, {}))), "--json"
        ).json()
        for state, name in names.items()
    }
    rejected = stack("run", str(EXAMPLES / "final-sale.json"), "--json").json()
    return {**found, "REJECTED": rejected}


@pytest.mark.parametrize("state", [state for state in STANDS if state != "RECEIVED"])
def test_what_a_case_cannot_take_is_refused_with_all_that_it_can_and_changes_nothing(
    stack: Cli, stands: dict[str, dict[str, Any]], state: str
):
    record = stands[state]
    possible, wrong = STANDS[state]
    assert record["state"] == state
    before = stack("show", record["workflow_id"], "--json").json()
    for act in sorted(wrong):
        refused(stack, act, record["workflow_id"], possible)
    assert stack("show", record["workflow_id"], "--json").json() == before


AT_WORK = """
UPDATE workflow SET state = 'RECEIVED', control_state = 'planning', lease_owner = 'a worker',
       lease_until = clock_now() + interval '1 hour' WHERE workflow_id = '{0}';
"""
AT_REST = """
UPDATE workflow SET state = 'COMPLETED', control_state = 'completed', lease_owner = NULL, lease_until = NULL
 WHERE workflow_id = '{0}';
"""


def test_a_case_that_is_at_work_takes_none_of_the_acts_and_says_so(stack: Cli, tmp_path: Path):
    """It is in a driver's hand, as far as anybody can read."""
    done = stack("run", written(tmp_path, case("normal", request_id="refused-at-work")), "--json").json()
    name = str(done["workflow_id"])
    unguarded(stack, AT_WORK.format(name))
    try:
        before = stack("show", name, "--json").json()
        assert before["status"] == "running"
        possible, wrong = STANDS["RECEIVED"]
        for act in sorted(wrong):
            refused(stack, act, name, possible)
        assert stack("show", name, "--json").json() == before
    finally:
        unguarded(stack, AT_REST.format(name))


def refused(stack: Cli, act: str, name: str, possible: set[str]) -> None:
    said = stack(*(name if word == "ID" else word for word in ACTS[act]))
    assert (said.code, said.out) == (2, ""), (act, said)
    assert "What is possible:" in said.err, (act, said.err)
    listed = re.findall(rf"(?:kessai|host\.cli) ([a-z]+) {name}", said.err.partition("What is possible:")[2])
    assert set(listed) == possible, (act, said.err)
    assert act == "handover" or "Nothing was changed." in said.err
