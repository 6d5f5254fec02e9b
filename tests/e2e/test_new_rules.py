"""The runbook's part on new rules and rights, its own commands run in a shell on a stack of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import ROOT, SECONDS_MAX, Cli, case
from tests.support.pages import blocks

pytestmark = [pytest.mark.long, pytest.mark.timeout(300), pytest.mark.xdist_group("cli-mistakes")]
PART = (ROOT / "RUNBOOK.md").read_text("utf-8").partition("\n## New rules\n")[2].partition("\n## ")[0]
LOAD, TAKE_IN, EARLIER, _LOAD_CLAIMS, _LOAD_RETAIL, RIGHTS = blocks(PART, "sh")
SHOP = json.loads((ROOT / "tool_server" / "demo" / "shop.json").read_text("utf-8"))
AUTHZ = json.loads((ROOT / "host" / "data" / "authz-v7.json").read_text("utf-8"))
BEGIN = "2026-07-31T00:00:00+09:00"  # the examples' customers ask the day before
AFTER = "2026-08-01T10:00:00+09:00"
DESK = "returns-desk@acme-jp"


class Shell:
    """Where somebody follows the runbook: both programs on the path, one directory, the operator's variables."""

    def __init__(self, cli: Cli, directory: Path) -> None:
        self.cli, self.directory = cli, directory
        for name, module in (("kessai", "host.cli"), ("kessai-tools", "tool_server.cli")):
            program = directory / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m {module} \"$@\"\n")
            program.chmod(0o755)

    def write(self, name: str, document: Any) -> None:
        (self.directory / name).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")

    def __call__(self, script: str) -> subprocess.CompletedProcess[str]:
        plain = self.cli.environment()
        environment = plain | {
            "PATH": f"{self.directory / 'bin'}:{plain['PATH']}",
            "KESSAI_TOOLS_MIGRATE_DSN": self.cli.dsn("tools", "tools_owner"),
        }
        return subprocess.run(
            ["sh", "-c", script], env=environment, cwd=self.directory, capture_output=True, text=True,
            timeout=SECONDS_MAX, check=False,
        )  # fmt: skip

    def listed(self) -> list[tuple[str, str]]:
        """State and reason of every case, the newest first."""
        rows = self.cli("list", "--json").json()["workflows"]
        return [(row["state"], row["reason"]) for row in rows]

    def versions(self) -> dict[str, str]:
        """The versions that the newest case was taken in under."""
        newest = self.cli("list", "--json").json()["workflows"][0]["workflow_id"]
        return dict(self.cli("show", newest, "--json").json()["versions"])


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    cli = Cli(tmp_path_factory.mktemp("rules") / "home", {})
    assert cli("up").code == 0
    yield Shell(cli, tmp_path_factory.mktemp("desk"))
    assert cli("empty", "--yes").code == 0


@pytest.fixture
def rules(shell: Shell) -> Shell:
    """With the new version loaded, by the runbook's own command."""
    newest = next(policy for policy in SHOP["policies"] if policy["version"] == "policy-v12")
    changed = {**newest, "version": "policy-v13", "effective_from": BEGIN}
    shell.write("rules.json", {"snapshot": SHOP["snapshot"], "policies": [changed], "orders": [], "recipients": []})
    said = shell(LOAD)
    assert said.returncode == 0, said.stderr
    assert "policy versions:" in said.stdout
    return shell


def test_a_case_is_taken_in_under_the_new_rules_once_they_are_named(rules: Shell):
    assert "policy versions: 0 new" in rules(LOAD).stdout
    rules.write("case.json", case("normal", requested_at=AFTER))
    said = rules(TAKE_IN)
    assert said.returncode == 0, said.stderr
    assert rules.listed()[0] == ("COMPLETED", "notice_verified")
    assert rules.versions()["policy"] == "policy-v13"


def test_a_customer_who_asked_before_goes_to_a_person_and_in_again_under_the_rules_of_then(rules: Shell):
    rules.write("case.json", case("defective", request_id="asked-before-1"))
    assert rules(TAKE_IN).returncode == 11
    assert rules.listed()[0] == ("NEEDS_REVIEW", "version_changed")
    rules.write("earlier.json", case("defective", request_id="asked-before-2"))
    said = rules(f"export KESSAI_POLICY_VERSION=policy-v13\n{EARLIER}")
    assert said.returncode == 0, said.stderr
    assert rules.listed()[0] == ("COMPLETED", "notice_verified")


def test_an_order_that_is_not_in_the_new_data_keeps_the_snapshot_that_it_came_with(shell: Shell):
    kept, moved = "A-1004", "A-1012"
    orders = [order for order in SHOP["orders"] if order["order_id"] == moved and order["tenant_id"] == "acme-jp"]
    shell.write("rules.json", {"snapshot": "2026-08-02", "policies": [], "orders": orders, "recipients": []})
    assert shell(LOAD).returncode == 0
    with shell.cli.owner("tools") as owner:
        found = owner.execute(
            "SELECT order_id, snapshot FROM orders.orders WHERE tenant_id = 'acme-jp' AND order_id = ANY (%s)",
            ([kept, moved],),
        ).fetchall()
    assert dict(found) == {kept: SHOP["snapshot"], moved: "2026-08-02"}


def test_rights_are_those_of_the_set_that_is_named_for_the_command_and_for_the_worker(shell: Shell):
    changed = json.loads(json.dumps(AUTHZ)) | {"version": "authz-v8"}
    desk = next(one for one in changed["principals"] if one["name"] == DESK)
    desk["tools"].remove("create_return")
    shell.write("authz-v8.json", changed)
    shell.write("case.json", case("splitting"))
    before = shell.cli.part("worker")["pid"]
    said = shell(f"{RIGHTS}\nkessai run case.json")
    assert said.returncode == 11, said.stderr
    assert shell.listed()[0] == ("NEEDS_REVIEW", "not_in_catalogue")
    assert shell.versions()["authz"] == "authz-v8"
    assert shell.cli.part("worker")["pid"] != before
    assert f"KESSAI_AUTHZ_FILE={shell.directory / 'authz-v8.json'}" in environment_of(shell.cli.part("worker")["pid"])
    assert shell("kessai up").returncode == 0  # without the variable
    assert not any(line.startswith("KESSAI_AUTHZ_FILE") for line in environment_of(shell.cli.part("worker")["pid"]))


def environment_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
