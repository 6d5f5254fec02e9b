"""`kessai stop` and `kessai resume` as an operator types them at two in the morning, on a stack of their own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import EXAMPLES, Cli, case, written
from tests.support.records import fits

pytestmark = pytest.mark.xdist_group("cli_stop")
NORMAL = str(EXAMPLES / "normal.json")
AUTHZ = Path(__file__).parents[2] / "host" / "data" / "authz-v7.json"
WHY = ("--reason", "two returns for one parcel")


@pytest.fixture(scope="module")
def kessai(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A stack that is up, and that no other file's tests work with."""
    cli = Cli(tmp_path_factory.mktemp("kessai") / "home", {})
    assert cli("up").code == 0
    yield cli
    assert cli("empty", "--yes").code == 0


@pytest.fixture
def going_on(kessai: Cli) -> Iterator[None]:
    """What a test has stopped goes on for the next one."""
    yield
    with kessai.owner("host") as host:
        host.execute("UPDATE stop SET engaged = false")


def stopped(cli: Cli, *options: str, by: str = "ito") -> dict[str, Any]:
    return dict(fits(cli("stop", "--as", by, *WHY, *options, "--json").json(), "command.stop.json"))


def held_of(cli: Cli) -> list[dict[str, Any]]:
    rows = fits(cli("list", "--limit", "1000", "--json").json(), "command.list.json")["workflows"]
    return [row for row in rows if row["held_by"] is not None]


def test_it_stops_and_goes_on_with_nothing_up_and_says_what_and_by_whom(nowhere: Cli):
    seen = stopped(nowhere)
    assert seen["newly"] == ["new_work", "updates", "parallel"]
    assert [one["scope"] for one in seen["scopes"] if one["engaged"]] == ["new_work", "updates", "parallel"]
    assert {one["actor"] for one in seen["scopes"] if one["engaged"]} == {"ito"}
    refused = nowhere("run", NORMAL)
    assert (refused.code, refused.out) == (14, "")
    assert "new work is stopped" in refused.err
    assert nowhere("resume", "--as", "sato", *WHY).code == 0
    assert nowhere("run", NORMAL).code == 0
    assert nowhere("empty", "--yes").code == 0


@pytest.mark.usefixtures("going_on")
def test_a_second_stop_adds_reads_and_a_third_adds_nothing(kessai: Cli):
    stopped(kessai)
    assert stopped(kessai, "--reads", by="sato")["newly"] == ["reads"]
    assert stopped(kessai)["newly"] == []
    assert "it was stopped already" in kessai("stop", "--as", "ito", *WHY).out


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("stop", "--as", "tanaka", *WHY), "Who could: ito, sato."),
        (("stop", "--as", "", *WHY), "Who could: ito, sato."),
        (("stop", "--as", "ito", "--reason", "  "), "it needs a reason"),
        (("stop", "--as", "ito", "--reason", "x" * 2001), "2001 characters"),
        (("resume", "--as", "ito", *WHY), "Who could: sato."),
        (("resume", "--as", "sato", *WHY), "nothing is stopped"),
        (("resume", "--as", "sato", *WHY, "--full"), "several are driven at a time already"),
        (("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE"), "The states are: APPROVED, "),
        (("resume", "--as", "sato", *WHY, "--limit", "3"), "The states are: APPROVED, "),
        (("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE", "--limit", "0"), "from 1 to 100000"),
        (("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE", "--limit", "-1"), "from 1 to 100000"),
        (("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE", "--limit", "100001"), "from 1 to 100000"),
        (("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE", "--limit", "few"), "--limit"),
        (("resume", "--as", "sato", *WHY, "--state", "BOGUS", "--limit", "3"), "The states are: APPROVED, "),
        (("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE", "--limit", "3", "--full"), "do not go together"),
        (("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE", "--full"), "do not go together"),
        (("resume", "--as", "sato", *WHY, "--limit", "3", "--full"), "do not go together"),
        (("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE", "--limit", "3"), "No case is held"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(kessai: Cli, typed: tuple[str, ...], told: str):
    said = kessai(*typed)
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert "NOT known" not in said.err
    with kessai.owner("host") as host:
        assert host.execute("SELECT count(*) FROM stop WHERE engaged").fetchone() == (0,)


def test_a_stop_that_cannot_be_written_says_that_nothing_is_known_to_be_stopped(kessai: Cli):
    elsewhere = {"KESSAI_DSN": "host=127.0.0.1 port=1 dbname=host user=host_rt connect_timeout=2"}
    said = kessai("stop", "--as", "ito", *WHY, **elsewhere)
    assert (said.code, said.out) == (15, "")
    assert "NOT known to be stopped" in said.err


@pytest.mark.usefixtures("going_on")
def test_nobody_puts_a_stop_off_by_holding_its_lock_and_who_was_not_waited_for_is_named(kessai: Cli):
    with kessai.owner("host") as stuck:
        stuck.execute("SELECT pg_advisory_lock_shared(stop_lock_key())")
        process = stuck.info.backend_pid
        view = stopped(kessai)
        told = kessai("stop", "--as", "ito", *WHY).out
    assert view["passed"] == [process]
    assert {one["scope"] for one in view["scopes"] if one["engaged"]} == {"new_work", "updates", "parallel"}
    assert f"processes {process}, which may still commit" in told
    assert stopped(kessai)["passed"] == []


@pytest.mark.usefixtures("going_on")
def test_a_stop_reaches_tokens_for_outside_hosts_and_names_those_that_are_good_still(kessai: Cli):
    issue = ("token", "issue", "--customer", "C-2001")
    write = (*issue, "--allow-write", "create_return", "--resource", "A-1001")
    own = ("baseline", str(EXAMPLES.parent / "claims" / "C-102.json"))  # its tokens never leave the host
    assert [kessai(*words).code for words in (issue, write, own)] == [0, 0, 0]
    listed = stopped(kessai)["outside"]
    assert [one["tool"] for one in listed] == ["create_return", None]
    assert {one["issued_by"] for one in listed} != {"claims-desk@anshin-jp"}
    refused = kessai(*write)
    assert (refused.code, refused.out) == (14, "")
    assert "updates are stopped" in refused.err
    assert kessai(*issue).code == 0
    said = kessai("stop", "--as", "ito", *WHY, "--reads").out
    assert all(f"kessai-tools revoke --jti {one['jti']}" in said for one in listed)
    refused = kessai(*issue)
    assert (refused.code, refused.out) == (14, "")
    assert "reading is stopped" in refused.err
    resumed = kessai("resume", "--as", "sato", *WHY, "--json").json()
    assert [one["jti"] for one in resumed["reconciliation"]["outside"]] == [listed[0]["jti"]]
    assert resumed["lifted"]


def test_a_stop_without_an_authorization_set_that_can_be_read_says_what_ends_everything_instead(
    kessai: Cli, tmp_path: Path
):
    broken = tmp_path / "authz.json"
    broken.write_text("{", "utf-8")
    said = kessai("stop", "--as", "ito", *WHY, KESSAI_AUTHZ_FILE=str(broken))
    assert (said.code, said.out) == (15, "")
    assert "NOT known to be stopped" in said.err
    assert " down ends every process at once" in said.err


def test_only_who_owns_the_database_lifts(kessai: Cli):
    elsewhere = {"KESSAI_DSN": "host=127.0.0.1 port=1 dbname=host user=host_rt"}
    said = kessai("resume", "--as", "sato", *WHY, **elsewhere)
    assert said.code == 15
    assert "KESSAI_MIGRATE_DSN" in said.err


def halt_two(cli: Cli, folder: Path) -> None:
    with cli.owner("host") as host:  # updates alone, so that cases come to stand before their return
        host.execute("UPDATE stop SET engaged = true WHERE scope = 'updates'")
    for n in range(2):
        said = cli("run", written(folder, case("normal", request_id=f"held-{n}-{folder.name}")))
        assert said.code == 14, said.err


@pytest.mark.usefixtures("going_on")
def test_what_was_stopped_is_reconciled_lifted_and_released_by_parts(kessai: Cli, tmp_path: Path):
    halt_two(kessai, tmp_path)
    assert {row["held_by"] for row in held_of(kessai)} == {"updates"}
    seen = stopped(kessai)
    full = kessai("resume", "--as", "sato", *WHY, "--full")
    assert (full.code, full.out) == (14, "")
    assert "resume --as NAME --reason TEXT\n" in full.err, "what is stopped is lifted first"
    (eligible,) = (one for one in seen["open"] if one["state"] == "ELIGIBLE")
    assert eligible["cases"] >= 2
    assert any(one["engaged"] for one in kessai.status()["stops"])
    assert "two returns for one parcel" in kessai("status").out

    lifted = fits(kessai("resume", "--as", "sato", *WHY, "--json").json(), "command.resume.json")
    assert (lifted["lifted"], lifted["refused"], lifted["one_at_a_time"]) == (True, [], True)
    assert {one["state"]: one["cases"] for one in lifted["held"]} == {"ELIGIBLE": eligible["cases"]}
    counted = {one["state"]: one for one in lifted["reconciliation"]["states"]}
    assert counted["ELIGIBLE"]["effects"] == dict.fromkeys(
        ("verified", "made_unverified", "rejected", "absent", "unknown", "accepted"), 0
    )
    next_part = "resume --as NAME --reason TEXT --state ELIGIBLE --limit 10"
    assert lifted["next"].endswith(next_part)
    again = kessai("resume", "--as", "sato", *WHY)
    assert again.code == 2
    assert f"ELIGIBLE {eligible['cases']}" in again.err
    elsewhere = kessai("resume", "--as", "sato", *WHY, "--state", "APPROVED", "--limit", "1")
    early = kessai("resume", "--as", "sato", *WHY, "--full")
    assert (again.code, elsewhere.code, early.code) == (2, 2, 14)
    assert all(next_part in said for said in (again.err, elsewhere.err, early.out))
    assert {row["held_by"] for row in held_of(kessai)} == {"parallel"}
    assert "held by stop" in kessai("list").out
    sheet = kessai("show", eligible["workflow_ids"][0])
    assert re.search(r"^held +by the stop that was lifted.*--state ELIGIBLE", sheet.out, re.MULTILINE)

    part = kessai("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE", "--limit", "1", "--json").json()
    assert part["released"] == [eligible["workflow_ids"][0]]
    assert part["next"].endswith(next_part)
    assert part["released"][0] not in [row["workflow_id"] for row in held_of(kessai)]
    rest = kessai("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE", "--limit", "99", "--json").json()
    assert rest["released"] == eligible["workflow_ids"][1:]
    assert rest["next"].endswith("--full")
    assert held_of(kessai) == []
    for workflow_id in (*part["released"], *rest["released"]):
        assert kessai("run", workflow_id).code in {0, 11}
    none = kessai("resume", "--as", "sato", *WHY, "--state", "ELIGIBLE", "--limit", "1")
    assert (none.code, "--full" in none.err) == (2, True)
    done = kessai("resume", "--as", "sato", *WHY, "--full")
    assert done.code == 0
    assert "several cases are driven at a time again" in done.out
    with kessai.owner("host") as host:
        acts = host.execute("SELECT act, actor, details ->> 'os_user' FROM stop_log ORDER BY stop_id").fetchall()
        sets = host.execute("SELECT DISTINCT details ->> 'authz' FROM stop_log").fetchall()
        audited = host.execute("SELECT action FROM audit WHERE action = 'release'").fetchall()
    assert [act for act, *_ in acts][-5:] == ["stop", "resume", "release", "release", "full"]
    assert all(os_user for _, _, os_user in acts)
    assert sets == [(f"sha256:{hashlib.sha256(AUTHZ.read_bytes()).hexdigest()}",)]
    assert len(audited) == 2
