"""The reading commands: text for people, JSON that fits its committed schema, help that teaches, completion."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from host.cli import COMMANDS, app
from host.commands.exit_codes import CODES
from host.stack.build import installed_build
from shared_contracts.contract import READING
from shared_contracts.form import form
from shared_contracts.form_yaml import load_forms
from shared_contracts.tools import TOOLS
from tests.support.cli import COMMAND, EXAMPLES, ROOT, Cli
from tests.support.records import fits

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture(scope="module")
def ran(stack: Cli) -> dict[str, str]:
    """Workflows to read: one that completed, one that a person has."""
    names = ("normal", "dangerous")
    return {name: stack("run", str(EXAMPLES / f"{name}.json"), "--json").json()["workflow_id"] for name in names}


def test_every_reading_command_writes_json_that_fits_its_schema(stack: Cli, ran: dict[str, str]):
    for arguments, schema in (
        (("show", ran["normal"]), "record.json"),
        (("list",), "command.list.json"),
        (("list", "--exceptions"), "command.list.json"),
        (("explain", ran["dangerous"], "--all"), "command.explain.json"),
        (("handover", ran["dangerous"]), "handover.json"),
        (("ledger",), "command.ledger.json"),
        (("token", "list"), "command.token_list.json"),
        (("approver", "list"), "command.approver_list.json"),
        (("states",), "command.states.json"),
        (("tools",), "command.tools.json"),
        (("status",), "command.status.json"),
        (("doctor",), "command.doctor.json"),
    ):
        said = stack(*arguments, "--json")
        assert (said.code, said.err) == (0, ""), arguments
        fits(said.json(), schema)


def test_a_record_is_found_by_every_id_that_belongs_to_it(stack: Cli, ran: dict[str, str]):
    record = stack("show", ran["normal"], "--json").json()
    for name in (record["calls"][0]["step_id"], record["result"]["return_id"], record["result"]["message_id"]):
        assert stack("show", name, "--json").json() == record


def test_the_page_for_people_says_what_the_record_says(stack: Cli, ran: dict[str, str]):
    record, said = stack("show", ran["normal"], "--json").json(), stack("show", ran["normal"]).out
    for word in (
        record["workflow_id"], record["result"]["return_id"], record["result"]["message_id"], "COMPLETED",
        record["customer_message"]["ja"], "create_return", "verification success", "policy-v12", "32 characters",
    ):  # fmt: skip
        assert word in said


def test_the_exception_queue_names_what_a_person_has_and_why(stack: Cli, ran: dict[str, str]):
    rows = stack("list", "--exceptions", "--json").json()["workflows"]
    ages = [row["age_seconds"] for row in rows]
    assert ages == sorted(ages, reverse=True)
    mine = next(row for row in rows if row["workflow_id"] == ran["dangerous"])
    assert (mine["reason"], mine["handover_reason"], mine["effects"]) == ("dangerous_goods", "rule_exception", [])
    said = stack("list", "--exceptions").out
    assert "dangerous_goods" in said
    assert re.match(r"most frequent  [a-z_]+ [1-9][0-9]* \([a-z_]+ [1-9]", said)
    assert "most frequent" not in stack("list").out


def test_pages_follow_one_another_without_gap_or_repeat(stack: Cli, ran: dict[str, str]):
    everything = [row["workflow_id"] for row in stack("list", "--limit", "1000", "--json").json()["workflows"]]
    assert set(ran.values()) <= set(everything)
    of_kinds = [stack("list", "--kind", kind, "--json").json()["workflows"] for kind in ("returns", "claims")]
    assert {row["kind"] for row in of_kinds[0]} == {"returns"}
    assert {row["kind"] for row in of_kinds[1]} <= {"claims"}
    first = stack("list", "--limit", "1", "--json").json()
    second = stack("list", "--limit", "1", "--before", first["next_before"], "--json").json()
    assert [page["workflows"][0]["workflow_id"] for page in (first, second)] == everything[:2]


def test_explain_answers_three_questions_and_with_all_sixteen(stack: Cli, ran: dict[str, str]):
    short, long = stack("explain", ran["dangerous"]).out, stack("explain", ran["dangerous"], "--all").out
    asked = [line for line in long.splitlines() if re.match(r"[A-Z].*\?$", line)]
    assert len(asked) == 3 + 6 + 7
    assert [line for line in short.splitlines() if re.match(r"[A-Z].*\?$", line)] == asked[:3]
    assert "dangerous_goods" in long


def test_the_forms_as_yaml_load_back_as_the_rows_that_they_came_from(stack: Cli):
    states = {row["name"]: row["form"]["allowed_states"] for row in stack("tools", "--json").json()["tools"]}
    loaded = load_forms(stack("tools", "--yaml").out)
    assert list(loaded) == [form(tool, states[tool.name]) for tool in TOOLS.values()]
    assert states["create_return"] == ["ELIGIBLE", "APPROVED"]


def test_one_tools_form_ends_with_the_checklist_of_a_write(stack: Cli):
    said = stack("tools", "create_return").out
    assert len(re.findall(r"^pass  ", said, re.MULTILINE)) == 9
    assert "FAIL" not in said
    assert load_forms(said.partition("pass  ")[0])[0].name == "create_return"
    assert "pass" not in stack("tools", "get_order").out


def test_every_command_teaches_itself_and_the_help_of_run_has_every_exit_code(stack: Cli):
    everything = stack("--help").out
    for name, _, _ in COMMANDS:
        assert re.search(rf"^│ {name} ", everything, re.MULTILINE), name
    said = " ".join(stack("run", "--help", COLUMNS="200").out.split())
    for code, meaning in CODES["run"].items():
        assert f"{code.value} {meaning}" in said
    assert "kessai run examples/returns/normal.json" in said
    for name, _, function in COMMANDS:
        if "as_json" in function.__annotations__:
            assert "--json" in CliRunner().invoke(app, [name, "--help"]).output, name


def test_the_version_names_the_build_that_an_evaluation_and_a_release_name(stack: Cli):
    said = stack("--version")
    assert said.code == 0
    assert re.fullmatch(rf"kessai \d+\.\d+\.\d+, build {installed_build().code}\n", said.out)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_comes_out_for_every_common_shell(stack: Cli, shell: str):
    said = stack(_KESSAI_COMPLETE=f"source_{shell}")
    assert said.code == 0
    assert "_KESSAI_COMPLETE" in said.out
    assert "complete" in said.out


def test_completion_knows_the_commands(stack: Cli):
    said = stack(_KESSAI_COMPLETE="complete_bash", COMP_WORDS="kessai s", COMP_CWORD="1")
    assert set(said.out.split()) >= {"show", "states", "status", "secrets"}


def on_terminal(cli: Cli, *arguments: str, **more: str) -> bytes:
    """What a terminal gets to see."""
    leader, follower = pty.openpty()
    environment = cli.environment(TERM="xterm-256color", COLUMNS="120", **more)
    with subprocess.Popen(
        [*COMMAND, *arguments], env=environment, cwd=ROOT, stdin=follower, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        said = b""
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:  # the last writer has gone
                break
            if not chunk:
                break
            said += chunk
        process.wait(60)
    os.close(leader)
    return said


def test_a_terminal_gets_colour_unless_no_color_is_set(stack: Cli, ran: dict[str, str]):
    coloured = re.compile(rb"\x1b\[[0-9;]*3[0-7]m")
    assert coloured.search(on_terminal(stack, "show", ran["normal"]))
    assert not coloured.search(on_terminal(stack, "show", ran["normal"], NO_COLOR="1"))
    assert b"COMPLETED" in on_terminal(stack, "show", ran["normal"], NO_COLOR="1")


def test_the_steps_of_the_timeline_are_in_order_of_time(stack: Cli):
    said = stack("run", str(EXAMPLES / "normal.json")).out
    times = re.findall(r"^(\d\d:\d\d:\d\d\.\d{3})  ", said, re.MULTILINE)
    assert len(times) == 23
    midnight = times[0] > times[-1]
    assert midnight or all(before <= after for before, after in pairwise(times))


def test_doctor_finds_what_is_wrong_and_how_it_is_mended(stack: Cli, tmp_path: Path):
    wrong = stack("doctor", "--json", PGPASSWORD="x")
    told = {check["check"]: check for check in wrong.json()["checks"] if not check["well"]}
    assert wrong.code == 15
    assert told["libpq variables"]["mend"] == "unset PGPASSWORD"
    for role in ("host_auditor", "host_owner"):
        found = stack("doctor", "--json", KESSAI_DSN=stack.dsn("host", role), **links(stack))
        mends = {check["check"]: check["mend"] for check in found.json()["checks"] if not check["well"]}
        assert found.code == 15
        assert "KESSAI_DSN" in mends["rights"], role
    unknown = stack("doctor", KESSAI_DNS="x")
    assert unknown.code == 15
    assert "KESSAI_DSN" in unknown.out
    nobody = Cli(tmp_path / "home", {})("doctor")
    assert nobody.code == 0
    assert "kessai up" in nobody.out
    (tmp_path / "file").write_text("")
    for root in (tmp_path, tmp_path / "file", tmp_path / "file" / "home"):
        impossible = Cli(root, {})("doctor")
        assert impossible.code == 15
        assert "KESSAI_HOME" in impossible.out
        assert "makes one" not in Cli(root, {})("status").out


def test_doctor_tells_what_the_tool_server_says_of_itself_such_as_a_role_that_may_do_too_much(stack: Cli):
    well = {check["check"]: check for check in stack("doctor", "--json").json()["checks"]}
    assert well["tool server's readiness"]["detail"] == "it can serve calls"
    for seals in ("record sealed", "tool server's log sealed", "heads exchanged"):
        assert well[seals]["well"]
    with stack.owner("tools") as owner:
        owner.execute("GRANT tools_returns TO tools_orders")
        try:
            found = stack("doctor", "--json")
        finally:
            owner.execute("REVOKE tools_returns FROM tools_orders")
    told = {check["check"]: check for check in found.json()["checks"] if not check["well"]}
    assert found.code == 15
    assert "wrong_role: orders" in told["tool server's readiness"]["detail"]
    assert "RUNBOOK" in told["tool server's readiness"]["mend"]


COMPLETED = [
    (("list", "--state", "WAITING_"), {"WAITING_APPROVAL"}),
    (("tools", "get_ret"), {"get_return", "get_return_links"}),
    (("run", "case.json", "--principal", "returns-desk@a"), {"returns-desk@acme-jp"}),
    (("token", "issue", "--principal", "returns-reader@acme-"), {"returns-reader@acme-jp"}),
    (
        ("token", "issue", "--scope", ""),
        {scope.value for scope in READING},
    ),
    (("token", "issue", "--allow-write", "create_"), {"create_return"}),
]


@pytest.mark.parametrize(("words", "expected"), COMPLETED, ids=[" ".join(row[0][:-1]) for row in COMPLETED])
def test_the_shell_completes_the_values_of_closed_choices(tmp_path: Path, words: tuple[str, ...], expected: set[str]):
    cli = Cli(tmp_path / "home", {"_KESSAI_COMPLETE": "complete_bash", "COMP_CWORD": str(len(words))})
    said = cli(COMP_WORDS=" ".join(["kessai", *words]))
    assert set(said.out.split()) == expected


def test_a_mistake_in_the_settings_completes_nothing_and_says_nothing(tmp_path: Path):
    said = Cli(tmp_path / "home", {"_KESSAI_COMPLETE": "complete_bash", "COMP_CWORD": "3"})(
        COMP_WORDS="kessai run --principal ", KESSAI_AUTHZ_FILE="/nowhere"
    )
    assert (said.out.strip(), said.err) == ("", "")


def links(cli: Cli) -> dict[str, str]:
    return {
        "KESSAI_SERVER_URL": f"http://127.0.0.1:{cli.part('tool_server')['port']}/mcp",
        "KESSAI_ISSUER": "https://issuer.example",
        "KESSAI_SIGNING_KEY_FILE": str(cli.home / "keys" / "signing.jwk"),
    }
