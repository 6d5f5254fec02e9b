"""`kessai audit` on a stack that works: whole after work, spoiled where somebody spoils it, and verified elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.cli import EXAMPLES, Cli
from tests.support.records import fits

pytestmark = pytest.mark.xdist_group("cli-audit")
NEW = (
    "INSERT INTO audit (actor, action, resource, result, details, at) VALUES (%s, 'noted', 'A-1', 'done', '{}', now())"
)
SIGNED = (
    "SELECT count(*) FROM audit a JOIN seal_link l ON l.source = 'audit' AND l.row_id = a.audit_id::text"
    " JOIN seal_head h ON h.n >= l.n AND h.signed IS NOT NULL WHERE a.actor = %s"
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A stack that is up, whose rows no other file's tests set by hand: its record would not be whole."""
    cli = Cli(tmp_path_factory.mktemp("kessai") / "home", {})
    assert cli("up").code == 0
    yield cli
    assert cli("empty", "--yes").code == 0


def until(connection: psycopg.Connection[Any], query: str, *values: str) -> None:
    """Wait, bounded, until something is counted."""
    end = time.monotonic() + 20
    while connection.execute(query.encode(), values).fetchone() == (0,):
        assert time.monotonic() < end, query
        time.sleep(0.05)


def noted(stack: Cli, actor: str) -> int:
    """A line of the audit that the stack's own worker has sealed."""
    with stack.owner("host") as owner:
        owner.execute(NEW, (actor,))
        until(owner, SIGNED, actor)
        row = owner.execute("SELECT audit_id FROM audit WHERE actor = %s", (actor,)).fetchone()
    assert row is not None
    return int(row[0])


def spoil(stack: Cli, number: int, actor: str) -> None:
    with stack.owner("host") as owner, owner.transaction():
        owner.execute("ALTER TABLE audit DISABLE TRIGGER append_only")
        owner.execute("UPDATE audit SET actor = %s WHERE audit_id = %s", (actor, number))
        owner.execute("ALTER TABLE audit ENABLE TRIGGER append_only")


def whole(said: Any) -> dict[str, Any]:
    return fits(said.json(), "command.audit_verify.json")


def test_the_record_of_a_stack_that_works_is_whole_until_somebody_changes_a_line(stack: Cli) -> None:
    assert stack("baseline", str(EXAMPLES.parent / "claims" / "C-102.json")).code == 0  # calls, for a log to be sealed
    number = noted(stack, "audit-e2e")
    with stack.owner("host") as host, stack.owner("tools") as tools:
        until(host, "SELECT count(*) FROM seal_witness")
        until(tools, "SELECT count(*) FROM calls.seal_witness")
    said = stack("audit", "verify", "--json")
    view = whole(said)
    assert (said.code, view["whole"]) == (0, True), view
    assert [side["lines"] > 0 and side["seen_by_other"] > 0 for side in view["sides"]] == [True, True]
    spoil(stack, number, "somebody-else")
    said, told = stack("audit", "verify", "--json"), stack("audit", "verify")
    spoil(stack, number, "audit-e2e")
    (finding,) = whole(said)["sides"][0]["findings"]
    assert (said.code, told.code, finding["kind"], finding["rows"]) == (1, 1, "changed", [f"audit {number}"])
    assert f"audit {number}" in told.out
    assert stack("audit", "verify").code == 0


def test_an_export_is_verified_on_another_machine_with_a_copy_of_the_public_keys(
    stack: Cli, nowhere: Cli, tmp_path: Path
) -> None:
    noted(stack, "audit-e2e-export")
    file, keys = tmp_path / "record.jsonl", tmp_path / "seal-keys.json"
    keys.write_bytes((stack.home / "keys" / "seal-keys.json").read_bytes())
    said = stack("audit", "export", str(file), "--json")
    counts = fits(said.json(), "command.audit_export.json")
    assert (said.code, file.stat().st_mode & 0o777) == (0, 0o600)
    there = nowhere("audit", "verify", "--export", str(file), "--keys", str(keys), "--json")
    view = whole(there)
    assert (there.code, view["whole"]) == (0, True), view
    assert {side["side"]: side["lines"] for side in view["sides"]} == {side: counts[side] for side in ("host", "tools")}
    assert not nowhere.home.exists()
    assert stack("audit", "export", str(file)).code == 2  # what is there is evidence
    file.write_text(file.read_text().replace("audit-e2e-export", "audit-e2e-exported"))
    assert nowhere("audit", "verify", "--export", str(file), "--keys", str(keys)).code == 1


def test_what_cannot_be_verified_cut_or_erased_is_bad_input(stack: Cli, nowhere: Cli, tmp_path: Path) -> None:
    part = tmp_path / "part.jsonl"
    part.write_text(json.dumps({"format": "kessai-record-1"}) + "\n")
    for words in (
        ("audit", "verify", "--export", str(tmp_path / "none"), "--keys", str(tmp_path / "none")),
        ("audit", "verify", "--export", str(part)),
        ("audit", "export", str(tmp_path / "none" / "record.jsonl")),
    ):
        assert nowhere(*words).code == 2, words
    assert stack("audit", "verify", "--export", str(part)).code == 2
    assert stack("audit", "verify", "--keys", str(part)).code == 2
    assert stack("audit", "cut").code == 2
    assert stack("audit", "erase", "999999999").code == 2


def test_a_line_is_erased_by_its_number_and_nothing_is_cut_that_is_young(stack: Cli) -> None:
    number = noted(stack, "audit-e2e-erase")
    said = stack("audit", "erase", str(number))
    assert (said.code, str(number) in said.err) == (0, True)
    assert stack("audit", "erase", str(number)).code == 2
    cut = stack.with_settings(KESSAI_RECORD_DAYS="3650")("audit", "cut", "--json")
    view = fits(cut.json(), "command.audit_cut.json")
    assert (cut.code, view["host_cut_to"], view["tools_too"]) == (0, 0, True)
