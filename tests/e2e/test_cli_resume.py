"""`kessai resume` asks the real tool server by each effect's key, and says what keeps the stop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli, case, written
from tests.support.records import fits
from tests.support.unguarded import unguarded

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("cli_stop")]
STOP = ("stop", "--as", "sato", "--reason", "a test")
RESUME = ("resume", "--as", "sato", "--reason", "a test")
FORGOTTEN = """
UPDATE effect SET outcome = NULL, external_id = NULL, closed_at = NULL, verified_at = NULL
 WHERE name = 'send_return_notice'
"""
OTHERWISE = """UPDATE call SET arguments = arguments || '{"return_id": "R-999"}' WHERE tool = 'send_return_notice'"""
HANDED_OVER = """
WITH moved AS (
    UPDATE workflow w SET state = 'NEEDS_REVIEW', control_state = 'needs_human', reason = 'unknown_effect',
           review_since = clock_now(), seq = w.seq + 1
    RETURNING workflow_id, seq)
INSERT INTO checkpoint (workflow_id, seq, move_id, reason, evidence, at)
SELECT workflow_id, seq, (SELECT max(move_id) FROM legal_transition WHERE control_to = 'needs_human'
                             AND business_to = 'NEEDS_REVIEW' AND event = 'unknown_effect'),
       'unknown_effect', '{}', clock_now()
  FROM moved
"""
TO_UNDO = """
INSERT INTO compensation (workflow_id, n, step, first_step, ordered_by, reason, ordered_at, due_at, state)
SELECT workflow_id, 1, 3, 5, 'engine', 'wrong_effect', clock_now(), clock_now() + interval '1 day', 'required'
  FROM workflow
"""


@pytest.fixture
def kessai(tmp_path: Path) -> Iterator[Cli]:
    """A stack that is up, with one completed return, and stopped."""
    cli = Cli(tmp_path / "home", {})
    assert cli("up").code == 0
    assert cli("run", written(tmp_path, case("normal"))).code == 0
    assert cli(*STOP).code == 0
    yield cli
    assert cli("empty", "--yes").code == 0


def test_an_effect_that_was_forgotten_is_looked_up_by_its_key_at_the_real_server(kessai: Cli):
    unguarded(kessai, FORGOTTEN, HANDED_OVER)
    lifted = fits(kessai(*RESUME, "--json").json(), "command.resume.json")
    assert (lifted["lifted"], lifted["refused"]) == (True, [])
    (state,) = lifted["reconciliation"]["states"]
    assert (state["state"], state["cases"], state["effects"]["verified"]) == ("NEEDS_REVIEW", 1, 2)


def test_what_the_look_itself_finds_wrong_keeps_the_stop_and_the_case_and_its_command_are_named(kessai: Cli):
    unguarded(kessai, FORGOTTEN, OTHERWISE, HANDED_OVER)
    said = kessai(*RESUME)
    assert said.code == 14
    assert "stopped again" in said.out
    with kessai.owner("host") as host:
        ((case_id, cause),) = host.execute("SELECT workflow_id, cause FROM stop_log WHERE workflow_id IS NOT NULL")
    assert f"{case_id}, {cause}, by engine" in said.out
    assert f"review {case_id} compensate" in said.out
    assert "updates" in [one["scope"] for one in kessai.status()["stops"] if one["engaged"]]
    (stops,) = [one for one in kessai("doctor", "--json").json()["checks"] if one["check"] == "stops"]
    assert not stops["well"]
    assert "resume --as NAME" in stops["mend"]
    assert kessai(*RESUME).code == 0  # whoever has read that may go on


def test_what_is_to_be_undone_keeps_the_stop_and_names_the_command(kessai: Cli):
    unguarded(kessai, TO_UNDO)
    said = kessai(*RESUME)
    assert said.code == 14
    assert "still to be undone" in said.out
    assert "kessai compensate " in said.out or "host.cli compensate " in said.out
    assert [one["scope"] for one in kessai.status()["stops"] if one["engaged"]] == ["new_work", "updates", "parallel"]
    with kessai.owner("host") as host:
        assert host.execute("SELECT count(*) FROM reconciliation").fetchone() == (1,)


def test_a_deleted_stop_row_is_a_stop_and_is_put_back(kessai: Cli):
    with kessai.owner("host") as host:
        host.execute("DELETE FROM stop")
    assert all(one["engaged"] and one["at"] is None for one in kessai.status()["stops"])
    assert kessai(*RESUME).code == 0
    assert [one["scope"] for one in kessai.status()["stops"] if one["engaged"]] == ["parallel"]


def test_on_several_machines_the_owners_connection_lifts_and_the_engines_own_does_not(kessai: Cli, tmp_path: Path):
    (issuer,) = json.loads((kessai.home / "keys" / "issuers.json").read_text("utf-8"))
    settings = {
        "KESSAI_HOME": str(tmp_path / "another"),
        "KESSAI_DSN": kessai.dsn("host", "host_rt"),
        "KESSAI_SERVER_URL": f"http://127.0.0.1:{kessai.part('tool_server')['port']}/mcp",
        "KESSAI_ISSUER": issuer["issuer"],
        "KESSAI_SIGNING_KEY_FILE": str(kessai.home / "keys" / "signing.jwk"),
    }
    for dsn, told in (("", "KESSAI_MIGRATE_DSN is not set"), (settings["KESSAI_DSN"], "permission denied")):
        said = kessai(*RESUME, **settings, KESSAI_MIGRATE_DSN=dsn)
        assert said.code == 15
        assert told in said.err
    assert "updates" in [one["scope"] for one in kessai.status()["stops"] if one["engaged"]]
    said = kessai(*RESUME, **settings, KESSAI_MIGRATE_DSN=kessai.dsn("host", "host_owner"))
    assert said.code == 0, said.err
    assert [one["scope"] for one in kessai.status()["stops"] if one["engaged"]] == ["parallel"]
