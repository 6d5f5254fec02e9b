"""What a user's mistake gets: one clear message, exit 2, nothing on standard output, nothing started or written."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from host.engine.accept import CASE_BYTES_MAX
from tests.support.cli import COMMAND, EXAMPLES, ROOT, Cli, case

pytestmark = pytest.mark.xdist_group("cli-mistakes")

TEXT = json.dumps(case("normal"), ensure_ascii=False)
QUANTITY = '"quantity": 1'

CASES: dict[str, tuple[bytes, str]] = {
    "not JSON": (b'{"kind": ', "not JSON"),
    "an empty file": (b"", "not JSON"),
    "not an object": (b"[]", "not a JSON object"),
    "a missing field": (json.dumps({k: v for k, v in case("normal").items() if k != "order_id"}).encode(), "order_id"),
    "a field too many": (json.dumps(case("normal", discount=1)).encode(), "discount"),
    "a wrong type": (json.dumps(case("normal", lines="L1")).encode(), "lines"),
    "a number in a string": (TEXT.replace(QUANTITY, '"quantity": "1"').encode(), "quantity"),
    "an amount of 1e400": (TEXT.replace(QUANTITY, '"quantity": 1e400').encode(), "integer"),
    "a number of 5,000 digits": (TEXT.replace(QUANTITY, f'"quantity": {"9" * 5000}').encode(), "number"),
    "no number at all": (TEXT.replace(QUANTITY, '"quantity": NaN').encode(), "NaN"),
    "a NUL": (json.dumps(case("normal", message="a\0b")).encode(), "NUL"),
    "a lone surrogate": (json.dumps(case("normal", message="\ud800")).encode(), "surrogate"),
    "10 MB": (json.dumps(case("normal", message="x" * 10_000_000)).encode(), str(CASE_BYTES_MAX)),
    "an unknown kind": (json.dumps(case("normal", kind="refunds")).encode(), "returns"),
    "a kind that is no text": (json.dumps(case("normal", kind=["returns"])).encode(), "returns"),
    "another encoding": (TEXT.encode("euc-jp"), "UTF-8"),
    "a member twice": (b'{"kind": "returns", "kind": "returns"}', "twice"),
    "nested too deeply": (b'{"kind": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", "deep"),
    "a quantity of none": (TEXT.replace(QUANTITY, '"quantity": 0').encode(), "quantity"),
    "a message too long": (json.dumps(case("normal", message="x" * 4001)).encode(), "message"),
    "a time without its offset": (
        json.dumps(case("normal", requested_at="2026-07-30T10:00:00")).encode(),
        "requested_at",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_a_bad_case_is_refused_with_what_is_wrong_before_anything_is_started(nowhere: Cli, tmp_path: Path, what: str):
    content, named = CASES[what]
    file = tmp_path / "case.json"
    file.write_bytes(content)
    said = nowhere("run", str(file))
    assert (said.code, said.out) == (2, "")
    assert named in said.err
    assert said.err.startswith(f"kessai: {file}: ")
    assert len(said.err) < 2000
    assert not nowhere.home.exists()


# what reads the file that @ stands for
READING = (
    "eval gate @", "eval compare @ @", "eval html @", "eval run --cases @", "eval run --rates @",
    "eval run --contract-tests @", "eval retail @", "audit verify --export @ --keys @", "approver trust @",
    "release record @ --as sato",
)  # fmt: skip
NO_FILE = {"nothing of any kind": b"\xff\xfe\x00{", "nested without end": b"[" * 20_000}


@pytest.mark.parametrize("what", NO_FILE)
@pytest.mark.parametrize("typed", READING)
def test_a_file_that_is_none_of_its_kind_is_bad_input_to_whatever_reads_it(
    nowhere: Cli, tmp_path: Path, typed: str, what: str
):
    file = tmp_path / "given"
    file.write_bytes(NO_FILE[what])
    said = nowhere(*(str(file) if word == "@" else word for word in typed.split()))
    assert (said.code, said.out) == (2, "")
    assert file.name in said.err
    assert len(said.err) < 2000
    assert not nowhere.home.exists()


COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "a file that is not there": (("run", "nowhere/case.json"), "no file"),
    "a directory": (("run", "."), "directory"),
    "a time that is none": (("run", str(EXAMPLES / "normal.json"), "--as-of", "yesterday"), "--as-of"),
    "a time without offset": (("run", str(EXAMPLES / "normal.json"), "--as-of", "2026-07-30T10:00:00"), "--as-of"),
    "a time for what has begun": (("run", "R-1", "--as-of", "2026-07-30T10:00:00Z"), "--as-of"),
    "no case": (("run",), "Missing argument"),
    "an unknown command": (("fly",), "No such command"),
    "an unknown option": (("list", "--wings"), "No such option"),
    "an unknown state": (("list", "--state", "DONE"), "COMPLETED"),
    "an unknown kind": (("list", "--kind", "DONE"), "claims"),
    "two lists at once": (("list", "--exceptions", "--state", "NEEDS_REVIEW"), "--exceptions"),
    "an id that is none": (("list", "--before", "x"), "--before"),
    "a limit of none": (("list", "--limit", "0"), "--limit"),
    "an unknown tool": (("tools", "issue_refund"), "create_return"),
    "two formats at once": (("tools", "--yaml", "--json"), "--json"),
    "two forms of one sheet": (("handover", "R-1", "--html", "--json"), "--html"),
    "more workers than may be": (("worker", "--concurrency", "1000"), "--concurrency"),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_a_mistyped_command_is_refused_with_what_would_be_right(nowhere: Cli, what: str):
    arguments, named = COMMANDS[what]
    said = nowhere(*arguments)
    assert (said.code, said.out) == (2, "")
    assert named in said.err
    assert not nowhere.home.exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"KESSAI_DNS": "host=x"}, "KESSAI_DSN"),
        ({"KESSAI_CONCURRENCY": "many"}, "KESSAI_CONCURRENCY"),
        ({"KESSAI_CONCURRENCY": "0"}, "KESSAI_CONCURRENCY"),
        ({"KESSAI_LEASE_SECONDS": "inf"}, "KESSAI_LEASE_SECONDS"),
        ({"KESSAI_TOOL_SERVER_PORT": "99999"}, "KESSAI_TOOL_SERVER_PORT"),
        ({"KESSAI_PLANNER": "gpt"}, "KESSAI_PLANNER"),
        ({"KESSAI_DSN": "host=127.0.0.1"}, "KESSAI_SERVER_URL"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_named_and_its_value_is_not_repeated(nowhere: Cli, settings: dict[str, str], named: str):
    said = nowhere("run", str(EXAMPLES / "normal.json"), **settings)
    assert (said.code, said.out) == (2, "")
    assert named in said.err
    assert not nowhere.home.exists()


def test_only_this_machines_own_stack_is_ever_emptied(nowhere: Cli):
    elsewhere = {
        "KESSAI_DSN": "host=127.0.0.1 port=1", "KESSAI_SERVER_URL": "http://127.0.0.1:1/mcp",
        "KESSAI_ISSUER": "https://issuer.example", "KESSAI_SIGNING_KEY_FILE": "nowhere",
    }  # fmt: skip
    said = nowhere("run", str(EXAMPLES / "normal.json"), "--fresh", **elsewhere)
    assert (said.code, said.out) == (2, "")
    assert "--fresh" in said.err


def test_the_tool_servers_own_settings_are_not_the_hosts_to_judge(nowhere: Cli):
    assert nowhere("states", KESSAI_TOOLS_ANYTHING="1").code == 0


@pytest.mark.parametrize(
    ("arguments", "closed"),  # each stream alone, before a command that would use it, and all of them before each
    [
        ("approve nonsense --as tanaka", "<&-"), ("list", ">&-"), ("show nonsense", "2>&-"),
        ("approve nonsense --as tanaka", "<&- >&- 2>&-"), ("list", "<&- >&- 2>&-"), ("show nonsense", "<&- >&- 2>&-"),
    ],
)  # fmt: skip
def test_a_command_ends_with_its_code_also_where_a_stream_was_closed(stack: Cli, arguments: str, closed: str):
    line = shlex.join(COMMAND) + f" {arguments} {closed}"
    run = subprocess.run(
        ["/bin/sh", "-c", line], env=stack.environment(), cwd=ROOT, capture_output=True, timeout=60, check=False
    )
    assert run.returncode == (0 if arguments == "list" else 2), run
    assert b"Traceback" not in run.stdout + run.stderr


def test_an_unknown_id_or_principal_is_refused_on_a_stack_that_runs(stack: Cli):
    for arguments, named in (
        (("show", "R-0"), "R-0"),
        (("explain", "0198c2f4-0000-7000-8000-000000000000"), "0198c2f4"),
        (("handover", "R-0"), "R-0"),
        (("run", "0198c2f4-0000-7000-8000-000000000000.1"), "0198c2f4"),
        (("ledger", "nothing"), "nothing"),
        (("run", str(EXAMPLES / "normal.json"), "--principal", "nobody"), "returns-desk@acme-jp"),
    ):
        said = stack(*arguments)
        assert (said.code, said.out) == (2, ""), arguments
        assert named in said.err


def test_what_a_user_typed_cannot_move_the_cursor(nowhere: Cli, stack: Cli):
    for said in (stack("show", "\x1b[31mred\x07"), nowhere("run", "\x1b]0;title\x07/case.json")):
        assert said.code == 2
        assert "\x1b" not in said.err
        assert "\x07" not in said.err
