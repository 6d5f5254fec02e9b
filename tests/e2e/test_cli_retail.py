"""A shop in others' format as an operator takes it up: load its file, run its returns, approve the high-value ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared_contracts.retail import POLICY_VERSION, TENANT
from tests.support.cli import ROOT, Cli, written
from tests.support.deciding import approvers, made

pytestmark = pytest.mark.xdist_group("cli")

SHOP = ROOT / "examples" / "retail"
LABEL = "retail, overlay: all deliveries on 2026-07-20"
DESK = ("--principal", f"returns-desk@{TENANT}")


@pytest.fixture(scope="module")
def retailer(stack: Cli) -> Cli:
    """The running stack with the shop's file loaded, and what a case of it has to be run with."""
    owner = stack.environment(KESSAI_TOOLS_MIGRATE_DSN=stack.dsn("tools", "tools_owner"))
    load = [sys.executable, "-m", "tool_server.cli", "load", str(SHOP / "shop.json"), "--delivered-on", "2026-07-20"]
    done = subprocess.run(load, env=owner, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return stack.with_settings(KESSAI_ORDER_SNAPSHOT=LABEL, KESSAI_POLICY_VERSION=POLICY_VERSION)


def sent(retailer: Cli, folder: Path, name: str) -> tuple[int, dict[str, Any]]:
    """Run an example under a request of this test's own, as often as it is called."""
    document = {**json.loads((SHOP / f"{name}.json").read_text("utf-8")), "request_id": f"retail-{name}"}
    said = retailer("run", written(folder, document), *DESK, "--json")
    return said.code, said.json()


def test_a_return_of_it_is_made_and_told_once_however_often_it_is_asked_for(retailer: Cli, tmp_path: Path):
    code, first = sent(retailer, tmp_path, "return")
    again, second = sent(retailer, tmp_path, "return")
    assert (code, again, first["state"]) == (0, 0, "COMPLETED")
    assert first["workflow_id"] == second["workflow_id"]
    assert first["result"]["return_id"] == second["result"]["return_id"]
    assert first["versions"]["policy"] == POLICY_VERSION
    assert made(retailer, "#R1001") == (1, 1)


def test_one_of_high_value_waits_for_the_tenants_own_approver(retailer: Cli, tmp_path: Path):
    novak = approvers(retailer, tmp_path, "novak")
    code, waiting = sent(retailer, tmp_path, "high-value")
    assert (code, waiting["state"], made(retailer, "#R1002")) == (10, "WAITING_APPROVAL", (0, 0))
    digest = waiting["approvals"][-1]["action_digest"]
    said = novak("approve", waiting["workflow_id"], "--as", "novak", "--yes", "--digest", digest)
    assert said.code == 0, said.err
    _, done = sent(retailer, tmp_path, "high-value")
    assert (done["state"], done["workflow_id"]) == ("COMPLETED", waiting["workflow_id"])
    assert made(retailer, "#R1002") == (1, 1)


@pytest.mark.parametrize(
    ("name", "order", "reason"),
    [("undelivered", "#R1004", "not_returnable"), ("other-customer", "#R1002", "order_not_found")],
)
def test_what_was_not_delivered_or_is_anothers_is_refused(
    retailer: Cli, tmp_path: Path, name: str, order: str, reason: str
):
    before = made(retailer, order)
    _, record = sent(retailer, tmp_path, name)
    assert (record["state"], record["reason"]) == ("REJECTED", reason)
    assert made(retailer, order) == before
