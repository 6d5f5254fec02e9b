"""What this proves: what went wrong is undone and what nobody knew is found out, by commands, on the real parts.

A case is spoiled on the wire between host and tool server; what an operator then types is checked against the tool
server's own books and the mails that really lie there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.proxy import Act
from tests.support.cli import EXAMPLES, Cli, case, written
from tests.support.smtp_sink import smtp_sink
from tests.support.undoing import Shop, open_shop, operator_of

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("cli-review"), pytest.mark.timeout(180)]

UPDATES = {"new_work", "updates", "parallel"}
UNDONE = "SELECT state, ordered_by, released_by FROM compensation WHERE workflow_id = %s ORDER BY n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with open_shop(tmp_path_factory.mktemp("undoing")) as opened:
        yield opened


@pytest.fixture(scope="module")
def untouched(shop: Shop) -> dict[str, Any]:
    """A case that a person has, with nothing made, and that every refusal leaves as it is."""
    return dict(shop.cli("run", str(EXAMPLES / "dangerous.json"), "--json").json())


def name_of(record: dict[str, Any]) -> str:
    return str(record["workflow_id"])


def undone(shop: Shop, record: dict[str, Any]) -> list[tuple[Any, ...]]:
    with shop.cli.owner("host") as sql:
        return sql.execute(UNDONE, (name_of(record),)).fetchall()


# -- what is undone ------------------------------------------------------------------------------------------------


def test_a_return_that_was_read_back_otherwise_stops_everything_and_is_cancelled_once_a_person_has_released_it(
    shop: Shop,
):
    document = shop.order()
    order_id = document["order_id"]
    record = shop.wrong(document)
    assert (record["state"], record["reason"]) == ("COMPENSATION_REQUIRED", "wrong_effect")
    assert shop.stopped() == UPDATES
    assert [cancelled for _, cancelled in shop.returns(order_id)] == [False]
    halted = shop.cli("run", name_of(record))
    assert (halted.code, f"compensate {name_of(record)} --as NAME" in halted.out) == (13, True)
    assert undone(shop, record) == [("required", "engine", None)]
    assert shop.cli("run", written(shop.folder, shop.order())).code == 14, "nothing else begins"

    done = shop.acts("compensate", name_of(record))
    assert (done["act"], done["by"], done["state"]) == ("release", "sato", "COMPENSATION_REQUIRED")
    after = shop.on(record, code=11)
    assert (after["state"], after["reason"]) == ("NEEDS_REVIEW", "compensated")
    assert undone(shop, record) == [("done", "engine", "sato")]
    assert [cancelled for _, cancelled in shop.returns(order_id)] == [True]
    assert shop.mails(order_id) == [], "nobody was told of it, so nobody is told otherwise"
    assert shop.stopped() == UPDATES

    shop.resumed()
    again = shop.run({**document, "request_id": "once-more"}, code=0)
    assert again["state"] == "COMPLETED"
    assert [cancelled for _, cancelled in shop.returns(order_id)] == [True, False], "its units were free again"


def test_a_customer_who_was_told_gets_a_correction_that_names_the_first_message(shop: Shop):
    document = shop.order()
    order_id = document["order_id"]
    record = shop.unseen(document, "find_notice")
    assert (record["state"], record["reason"]) == ("NEEDS_REVIEW", "unverified_effect")
    (first,) = shop.mails(order_id)
    done = shop.acts("review", name_of(record), "compensate", "--reason", "The wrong cup.")
    assert done["state"] == "COMPENSATION_REQUIRED"
    after = shop.on(record, code=11)
    assert (after["state"], after["reason"]) == ("NEEDS_REVIEW", "compensated")
    assert undone(shop, record) == [("done", "sato", None)]
    ((number, cancelled),) = shop.returns(order_id)
    assert cancelled
    old, correction = shop.mails(order_id)
    assert old["Message-ID"] == first["Message-ID"]
    assert correction["Message-ID"] != first["Message-ID"]
    assert (correction["In-Reply-To"], correction["References"]) == (first["Message-ID"],) * 2
    assert correction["To"] == first["To"]
    assert number in correction.get_payload(decode=True).decode("utf-8")
    kinds = shop.told("SELECT kind, corrects FROM notices.outbox WHERE order_id = %s ORDER BY created_at", order_id)
    assert kinds == [("return", None), ("correction", first["Message-ID"])]
    assert shop.stopped() == set(), "what a person has ordered and code has done is no reason to stop"


def test_a_return_whose_label_was_used_is_not_cancelled_and_everything_stays_stopped(shop: Shop):
    document = shop.order()
    record = shop.wrong(document)
    ((number, _),) = shop.returns(document["order_id"])
    with shop.cli.owner("tools") as sql:
        sql.execute(
            "INSERT INTO returns.links VALUES ('acme-jp', %s, 'label_used', 'label://1', public.clock_now())",
            (number,),
        )
    shop.acts("compensate", name_of(record))
    after = shop.on(record, code=11)
    assert (after["state"], after["reason"]) == ("NEEDS_REVIEW", "label_used")
    assert undone(shop, record) == [("impossible", "engine", "sato")]
    assert shop.returns(document["order_id"]) == [(number, False)]
    assert shop.stopped() == UPDATES
    with shop.cli.owner("host") as sql:
        causes = sql.execute("SELECT cause FROM stop_log WHERE workflow_id = %s ORDER BY stop_id", (name_of(record),))
        assert [cause for (cause,) in causes] == ["update_outside_permission", "compensation_impossible"]
    shop.resumed()


# -- what is found out ---------------------------------------------------------------------------------------------


def test_a_return_that_nobody_heard_of_is_found_and_its_case_goes_on_with_nothing_made_twice(shop: Shop):
    document = shop.order()
    record = shop.lost(document, "create_return", "find_return")
    assert (record["state"], record["reason"]) == ("NEEDS_REVIEW", "unknown_effect")
    early = shop.cli("review", name_of(record), "compensate", "--as", "sato", "--reason", "Away with it.")
    assert (early.code, "nobody knows yet" in early.err) == (2, True)
    done = shop.acts("review", name_of(record), "adopt")
    assert (done["effect"], done["known"], done["state"]) == ("create_return", "verified", "RETURN_CREATED")
    assert shop.on(record, code=0)["state"] == "COMPLETED"
    assert len(shop.returns(document["order_id"])) == len(shop.mails(document["order_id"])) == 1
    late = shop.cli("review", name_of(record), "adopt", "--as", "sato")
    assert (late.code, "handed over to nobody" in late.err) == (2, True)


def test_a_notice_that_nobody_heard_of_is_found_and_that_completes_its_case(shop: Shop):
    document = shop.order()
    record = shop.lost(document, "send_return_notice", "find_notice")
    assert record["reason"] == "unknown_effect"
    shop.wire.next("find_notice", Act.LOSE)
    spoilt = shop.spoilt("review", name_of(record), "adopt", "--as", "sato", "--json")
    assert (spoilt.code, spoilt.json()["known"], spoilt.json()["state"]) == (11, "unknown", "NEEDS_REVIEW")
    done = shop.acts("review", name_of(record), "adopt")
    assert (done["effect"], done["known"], done["state"]) == ("send_return_notice", "verified", "COMPLETED")
    assert len(shop.returns(document["order_id"])) == len(shop.mails(document["order_id"])) == 1


def test_a_mail_that_the_mail_server_may_have_taken_is_looked_for_and_never_sent_again(tmp_path: Path):
    with smtp_sink(hangs_up=True) as sink:
        cli = Cli(tmp_path / "home", {
            "KESSAI_TOOLS_SMTP_HOST": "127.0.0.1", "KESSAI_TOOLS_SMTP_PORT": str(sink.port),
            "KESSAI_TOOLS_SMTP_TLS": "none", "KESSAI_TOOLS_MAIL_FROM": "Shop <returns@shop.example>",
        })  # fmt: skip
        try:
            said = cli("run", str(EXAMPLES / "normal.json"), "--json")
            record = said.json()
            assert (said.code, record["reason"]) == (11, "unknown_effect")
            for _ in range(2):
                looked = cli("review", name_of(record), "adopt", "--as", "sato", "--json")
                assert (looked.code, looked.json()["known"], looked.json()["state"]) == (11, "unknown", "NEEDS_REVIEW")
            closing = ("review", name_of(record), "close", "--as", "sato", "--reason", "It arrived, says the customer.")
            assert cli(*closing).code == 2
            assert cli(*closing, "--accept-unknown").code == 0
        finally:
            assert cli("empty", "--yes").code == 0
        assert len(sink.messages) == 1


# -- what is closed ------------------------------------------------------------------------------------------------


def listed(cli: Cli) -> set[str]:
    return {row["workflow_id"] for row in cli("list", "--exceptions", "--json").json()["workflows"]}


def test_a_case_is_closed_with_a_reason_and_one_that_made_nothing_can_be_asked_for_anew(shop: Shop):
    document = case("dangerous", request_id="closed-one")
    record = shop.run(document, code=11)
    name = name_of(record)
    assert shop.cli("reapply", name).code == 2
    for reason in ((), ("--reason", "  ")):
        without = shop.cli("review", name, "close", "--as", "sato", *reason)
        assert (without.code, "needs its reason" in without.err) == (2, True)
    assert name in listed(shop.cli)
    done = shop.acts("review", name, "close", "--reason", "Settled by telephone.")
    assert (done["act"], done["state"]) == ("close", "NEEDS_REVIEW")
    told = shop.cli("show", name).out
    assert re.search(r"^closed {4}\d", told, re.MULTILINE)
    assert re.search(r"sato .*review_closed +Settled by telephone\.", told)
    assert name not in listed(shop.cli)
    rows = {row["workflow_id"]: row for row in shop.cli("list", "--json", "--limit", "1000").json()["workflows"]}
    assert (rows[name]["state"], rows[name]["review_closed_at"] is None) == ("NEEDS_REVIEW", False)
    line = next(one for one in shop.cli("list", "--limit", "1000").out.splitlines() if one.startswith(name))
    assert re.search(r"NEEDS_REVIEW .* \d\d-\d\d \d\d:\d\d:\d\d\.\d+$", line.rstrip())
    again = shop.cli("review", name, "close", "--as", "sato", "--reason", "Once more.")
    assert (again.code, "closed already" in again.err) == (2, True)
    anew = shop.cli("reapply", name, "--json")
    assert (anew.code, anew.json()["created"]) == (0, True)
    assert shop.on(anew.json(), code=11)["supersedes"] == name


def test_a_case_in_doubt_is_closed_only_by_who_says_so_and_is_not_asked_for_anew(shop: Shop):
    document = shop.order()
    record = shop.lost(document, "create_return", "find_return")
    name = name_of(record)
    close = ("review", name, "close", "--as", "sato", "--reason", "Nobody will ever know.")
    before = shop.shown(record)
    refused = shop.cli(*close)
    assert (refused.code, "--accept-unknown" in refused.err) == (2, True)
    assert shop.shown(record) == before
    assert shop.cli(*close, "--accept-unknown").code == 0
    assert name not in listed(shop.cli)
    anew = shop.cli("reapply", name)
    assert (anew.code, "create_return" in anew.err) == (2, True)
    with shop.cli.owner("host") as sql:
        query = "SELECT actor, details FROM audit WHERE workflow_id = %s AND action = 'review_closed'"
        ((actor, details),) = sql.execute(query, (name,)).fetchall()
    assert (actor, details["reason"], details["unknown"]) == ("sato", "Nobody will ever know.", ["create_return"])
    shop.acts("review", name, "adopt")  # so that no later test meets its doubt
    assert shop.on(record, code=0)["state"] == "COMPLETED"


# -- what is refused -----------------------------------------------------------------------------------------------

WHY = ("--reason", "Because.")
REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "no such case to close": (("review", "no-such-case", "close", *WHY, "--as", "sato"), "nothing is known"),
    "no such case to adopt": (("review", "no-such-case", "adopt", "--as", "sato"), "nothing is known"),
    "no such case to release": (("compensate", "no-such-case", "--as", "sato"), "nothing is known"),
    "no such act": (("review", "ID", "forgive", *WHY, "--as", "sato"), "forgive"),
    "nothing to adopt": (("review", "ID", "adopt", "--as", "sato"), "made nothing"),
    "nothing to undo": (("review", "ID", "compensate", *WHY, "--as", "sato"), "review ID close"),
    "nothing to release": (("compensate", "ID", "--as", "sato"), "nothing of the case is being undone"),
    "no operator at all": (("review", "ID", "close", *WHY, "--as", "tanaka"), "sato"),
    "nobody named": (("review", "ID", "close", *WHY), "--as"),
    "an operator without the act": (("review", "ID", "close", *WHY, "--as", "ito"), "may not close"),
    "a release without the act": (("compensate", "ID", "--as", "ito"), "may not have something undone"),
    "another tenant's operator": (("review", "ID", "close", *WHY, "--as", "kato"), "hoshi-jp"),
    "another tenant's release": (("compensate", "ID", "--as", "kato"), "hoshi-jp"),
    "a reason too long": (("review", "ID", "close", "--reason", "x" * 2001, "--as", "sato"), "2000"),
    "a reason that cannot be kept": (("review", "ID", "close", "--reason", "\udcff", "--as", "sato"), "reason"),
}


@pytest.fixture(scope="module")
def guarded(shop: Shop) -> Cli:
    """The command line with an operator more, of another tenant."""
    return shop.cli.with_settings(KESSAI_AUTHZ_FILE=str(operator_of(shop.folder, "kato", "hoshi-jp")))


def test_what_cannot_be_done_says_why_and_changes_nothing(shop: Shop, guarded: Cli, untouched: dict[str, Any]):
    for what, (arguments, said) in REFUSED.items():
        refused = guarded(*(name_of(untouched) if word == "ID" else word for word in arguments))
        assert (refused.code, refused.out) == (2, ""), what
        assert said in refused.err, what
        assert not re.search(r"review \S+ compensate", refused.err), what  # it would be refused too
    assert shop.shown(untouched) == untouched


def test_a_case_that_nobody_has_takes_none_of_the_acts_and_says_where_it_is(shop: Shop):
    waiting = shop.run(case("high-value", request_id="nobodys"), code=10)
    for act in (("adopt",), ("compensate", *WHY), ("close", *WHY)):
        refused = shop.cli("review", name_of(waiting), *act, "--as", "sato")
        assert (refused.code, "WAITING_APPROVAL" in refused.err) == (2, True)
    released = shop.cli("compensate", name_of(waiting), "--as", "sato")
    assert (released.code, "WAITING_APPROVAL" in released.err) == (2, True)
    assert shop.shown(waiting) == waiting
