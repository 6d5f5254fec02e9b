"""The sealed record over time: how soon it is sealed, who dies meanwhile, what is cut, erased, restored, exported."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from host.commands.doctor_seals import HEADS, LOG, RECORD, checks
from host.domain.sealed import Kind
from host.engine.seal import run
from host.evaluation import sealed
from host.store import seals
from shared_contracts.seal import SealKeys
from tests.support.engine import advance_clock, asynchronous
from tests.support.sealing import Kept, record, signers, worked_shop
from tests.support.tool_shop import Shop
from tool_server.store import seals as tool_seals
from tool_server.store.pool import Pool
from tool_server.store.switches import switch_tool

# how long each line waited for its batch, by the database's one clock
LAG = (
    "SELECT max(h.at - a.at) FROM audit a JOIN seal_link l ON l.source = 'audit' AND l.row_id = a.audit_id::text"
    " JOIN LATERAL (SELECT * FROM seal_head WHERE n >= l.n ORDER BY n LIMIT 1) h ON true WHERE a.resource LIKE 'S-%'"
)
UNSEEN = (
    "SELECT (SELECT count(*) FROM audit) - count(*) FROM seal_link l WHERE l.source = 'audit'"
    " AND EXISTS (SELECT FROM seal_head h WHERE h.n >= l.n AND h.signed IS NOT NULL)"
)
DIES = """
import sys, psycopg
with psycopg.connect(sys.argv[1]) as connection:
    connection.execute("SELECT * FROM seal_batch(500)")
    print("chained", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return worked_shop(tmp_path)


async def _all_signed(kept: Kept) -> None:
    async with asyncio.timeout(20):
        while kept.host(UNSEEN) != [(0,)]:  # noqa: ASYNC110 - only the database tells
            await asyncio.sleep(0.02)


@asynchronous
async def test_what_is_written_is_sealed_within_a_second_by_one_of_two_loops(shop: Shop):
    async with record(shop) as kept:
        stop = asyncio.Event()
        loops = [asyncio.create_task(run(kept.sealer, stop)) for _ in range(2)]
        for name in ("S-1", "S-2"):
            kept.note(name)
            await _all_signed(kept)
        kept.note("S-3")
        stop.set()
        await asyncio.gather(*loops)  # what came last is sealed on the way out
        await kept.seal()
        ((lag,),) = kept.host(LAG)
        verdict = (await kept.verified())["host"]
    assert lag < timedelta(seconds=1)
    assert verdict.findings == []
    assert verdict.seen == verdict.last


@asynchronous
async def test_a_sealer_that_has_stopped_is_told_by_both_databases_and_by_the_doctor(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        kept.note("N-4")
        advance_clock(kept.parts, 90)
        async with kept.parts.pool.connection() as connection:
            behind = await seals.lag(connection)
            await kept.seal()
            again = await seals.lag(connection)
        async with Pool("sealer", shop.database.dsn("tools_sealer")) as pool:
            theirs = await tool_seals.lag(pool)
    assert behind.waits is not None
    assert behind.waits > 89
    assert again.waits is None
    assert theirs.waits is None
    found = {check.check: check for check in checks(behind, theirs)}
    assert not found[RECORD].well
    assert "a line waits for its seal since 9" in found[RECORD].detail
    assert "KESSAI_SEALER_DSN" in found[RECORD].mend
    assert found[LOG].well
    assert {check.check: check.well for check in checks(again, theirs)} == {RECORD: True, LOG: True, HEADS: True}


@asynchronous
async def test_a_sealer_that_is_killed_in_the_middle_of_a_batch_leaves_no_gap_and_no_lock(shop: Shop):
    async with record(shop) as kept:
        dies = subprocess.Popen(  # noqa: ASYNC220 - a program that is to be killed; nothing else runs meanwhile
            [sys.executable, "-c", DIES, kept.sealer.dsn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert dies.stdout is not None
        assert dies.stdin is not None
        assert dies.stdout.readline() == "chained\n"
        await kept.seal_host_alone()
        assert kept.host("SELECT count(*) FROM seal_link") == [
            (0,)
        ]  # who is not alone seals nothing, and does not wait
        dies.send_signal(signal.SIGKILL)
        dies.wait(10)
        dies.stdout.close()
        dies.stdin.close()
        async with asyncio.timeout(20):
            while kept.host("SELECT count(*) FROM seal_link") == [(0,)]:
                await kept.seal()
                await asyncio.sleep(0.02)
        verdict = (await kept.verified())["host"]
    assert verdict.findings == []
    assert verdict.lines == verdict.last > 3


@asynchronous
async def test_what_is_too_old_is_cut_behind_a_signed_head_and_the_rest_verifies(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        kept.note("N-4")
        await kept.seal()
        later = datetime.now(UTC) + timedelta(hours=1)
        async with await AsyncConnection.connect(kept.admin, autocommit=True) as owner:
            assert await seals.cut(owner, datetime.now(UTC) - timedelta(days=1), "ito") == 0
            last = await seals.cut(owner, later, "ito")
            assert await seals.cut(owner, later, "ito") == 0
        tools_last = await tool_seals.cut(shop.database.owner, later, "ito", verify_first=True)
        kept.note("N-5")
        await kept.seal()
        verdicts = await kept.verified()
        rows = kept.host("SELECT action, resource FROM audit ORDER BY audit_id")
        assert kept.tools("SELECT count(*) FROM calls.log") == [(0,)]
        assert rows == [("record_cut", f"record:{last}"), ("noted", "N-5")]
        assert [verdicts["host"].findings, verdicts["tools"].findings] == [[], []]
        carried = kept.host("SELECT count(*) FROM act")[0][0]  # acts outlive a cut
        assert (verdicts["host"].first, verdicts["host"].lines) == (last + 1, 2 + carried)
        assert verdicts["tools"].first == tools_last + 1
        # whoever takes out more than that, or hides the cut, is found
        kept.host("DELETE FROM seal_cut")
        assert {finding.kind for finding in await kept.found()} >= {Kind.REMOVED}


@asynchronous
async def test_words_that_are_erased_are_gone_from_the_row_and_the_chain_stays_whole(shop: Shop):
    async with record(shop) as kept:
        with psycopg.connect(kept.admin) as connection:
            connection.execute(
                "INSERT INTO audit (actor, action, resource, result, details, at)"
                " VALUES ('sato', 'noted', 'N-9', 'done', '{\"reason\": \"山田花子 called\"}', clock_now())"
            )
        await kept.seal()
        ((number,),) = kept.host("SELECT max(audit_id) FROM audit")
        async with await AsyncConnection.connect(kept.admin, autocommit=True) as owner:
            assert await seals.erase(owner, number, "ito")
            assert not await seals.erase(owner, number, "ito")
        await kept.seal()
        verdict = (await kept.verified())["host"]
        assert verdict.findings == []
        assert verdict.erased == [str(number)]
        assert kept.host("SELECT count(*) FROM audit WHERE details::text LIKE '%花子%'") == [(0,)]
        kept.host("UPDATE audit SET actor = 'kato' WHERE details ? 'erased'")
        (finding,) = await kept.found()
    assert (finding.kind, finding.rows) == (Kind.CHANGED, (f"audit {number}",))


@asynchronous
async def test_after_a_restore_of_both_sides_what_the_backup_does_not_hold_is_counted_and_no_fault(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        kept.note("LOST")
        await kept.seal()  # the host's backup is older than the tool server's, which has seen more of the host
        kept.host(*TAKEN_BACK)
        assert [finding.kind for finding in await kept.found()] == [Kind.TRUNCATED]
        async with await AsyncConnection.connect(kept.admin, autocommit=True) as owner:
            await seals.note_restored(owner)
        assert [finding.kind for finding in await kept.found()] == [Kind.TRUNCATED]  # one side alone says so
        with psycopg.connect(shop.database.owner, autocommit=True) as owner:
            owner.execute(NOTE_THERE)
        kept.note("N-6")
        await kept.seal()
        verdict = (await kept.verified())["host"]
        texts: list[str] = []
        await sealed.exported(kept.auditors, texts.append)
        keys = kept.keys
    assert verdict.findings == []
    assert verdict.lost == 1
    whole = sealed.verified_export([text.encode() for text in texts], keys)
    assert [(of.findings, of.lost) for of in whole.values()] == [([], 1), ([], 0)]
    # who would excuse more than was lost, or less, does not say what the two acts say
    for side, other, number in (("host", "tools", 0), ("tools", "host", 1)):
        documents = [json.loads(text) for text in texts]
        for document in documents:
            for name, of in (("restored", side), ("restored_there", other)):
                if name in document and document["side"] == of:
                    document[name][0][number] += 1
        spoiled = sealed.verified_export([json.dumps(one).encode() for one in documents], keys)
        assert Kind.REMOVED in {finding.kind for finding in spoiled[side].findings}
        assert "no act says so" in spoiled[side].findings[-1].why


TAKEN_BACK = (
    (
        "DELETE FROM seal_link k USING seal_link l, audit a"
        " WHERE l.source = 'audit' AND l.row_id = a.audit_id::text AND a.resource = 'LOST' AND k.n >= l.n"
    ),
    "DELETE FROM seal_head WHERE n > (SELECT max(n) FROM seal_link)",
    "DELETE FROM audit WHERE resource = 'LOST'",
)
NOTE_THERE = (
    "INSERT INTO calls.seal_restored (n, seen, at) SELECT (SELECT max(n) FROM calls.seal_link),"
    " (SELECT max(seen) FROM calls.seal_witness), now()"
)


@asynchronous
async def test_an_export_verifies_by_itself_with_the_public_keys_alone_and_no_line_of_it_can_be_changed(shop: Shop):
    texts: list[str] = []
    async with record(shop) as kept:
        await kept.seal()
        kept.note("N-4")
        await kept.seal()
        counts = await sealed.exported(kept.auditors, texts.append)
        keys = kept.keys
    whole = [text.encode() for text in texts]
    verdicts = sealed.verified_export(whole, keys)
    assert {side: verdict.lines for side, verdict in verdicts.items()} == counts
    assert all(verdict.findings == [] and verdict.seen > 0 for verdict in verdicts.values())
    for number, text in enumerate(texts):
        document = json.loads(text)
        if "line" not in document:
            continue
        other = dict(
            document, line=[*document["line"][:3], document["line"][3].replace(":", ": ", 1), *document["line"][4:]]
        )
        spoiled = [*whole[:number], json.dumps(other).encode(), *whole[number + 1 :]]
        findings = sealed.verified_export(spoiled, keys)[document["side"]].findings
        assert [(finding.kind, finding.n) for finding in findings] == [(Kind.CHANGED, document["line"][0])]
    first = next(number for number, text in enumerate(texts) if '"line"' in text)
    missing = [*whole[:first], *whole[first + 1 :]]
    for part in (whole[:-1], whole[1:], missing, [*whole, b"{}"], [b"x", *whole], []):
        with pytest.raises(sealed.NotAnExportError):
            sealed.verified_export(part, keys)
    end = json.dumps({"end": {"host": counts["host"] - 1, "tools": counts["tools"]}}).encode()
    found = sealed.verified_export([*missing[:-1], end], keys)["host"].findings
    assert [(finding.kind, finding.rows) for finding in found] == [(Kind.REMOVED, ("line 1",))]
    # two that stand in each other's place, as they are or with each other's number; one put in, likewise
    first = next(number for number, text in enumerate(texts) if '"line":[' in text and '"audit"' in text)
    one, other = (json.loads(text)["line"] for text in texts[first : first + 2])
    n, m = one[0], other[0]
    for lines, kind in (((other, one), Kind.REORDERED), (([n, *other[1:]], [m, *one[1:]]), Kind.REORDERED),
                        ((one, one, other), Kind.INSERTED), ((one, [m, *one[1:]]), Kind.CHANGED)):  # fmt: skip
        put = [json.dumps({"side": "host", "line": line}).encode() for line in lines]
        end = json.dumps({"end": counts | {"host": counts["host"] + len(put) - 2}}).encode()
        found = sealed.verified_export([*whole[:first], *put, *whole[first + 2 : -1], end], keys)["host"].findings
        assert {finding.kind for finding in found} == {kind}, (kind, found)
        assert f"{one[1]} {one[2]}" in {row for finding in found for row in finding.rows}, (kind, found)


@asynchronous
async def test_an_export_ends_with_what_is_signed_and_shows_what_should_have_been_long_ago(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        ((first,),) = kept.host("SELECT max(n) FROM seal_head")
        kept.note("N-4", "N-5")
        await kept.seal_host_alone()
        kept.host("UPDATE seal_head SET signed = NULL, at = clock_now() WHERE n = (SELECT max(n) FROM seal_head)")
        fresh: list[str] = []
        late: list[str] = []
        counts = await sealed.exported(kept.auditors, fresh.append)
        kept.host("UPDATE seal_head SET at = at - interval '1 hour' WHERE signed IS NULL")
        await sealed.exported(kept.auditors, late.append)
        keys = kept.keys
    assert counts["host"] == first
    whole, lacking = (sealed.verified_export([one.encode() for one in texts], keys)["host"] for texts in (fresh, late))
    assert whole.findings == []
    assert [(one.kind, one.n) for one in lacking.findings] == [(Kind.UNSIGNED, first + 1)]


@asynchronous
async def test_an_export_whose_end_was_cut_off_with_all_that_names_it_is_found_by_the_other_sides_lines(shop: Shop):
    texts: list[str] = []
    async with record(shop) as kept:
        await kept.seal()
        await switch_tool(shop.database.owner, "get_order", "ito", enabled=False)  # a line to seal the kept head with
        kept.note("N-4")
        await kept.seal()
        counts = await sealed.exported(kept.auditors, texts.append)
        keys = kept.keys
    documents = [json.loads(text) for text in texts]
    cut = [
        one for one in documents if one.get("side") != "host" or not {"line", "head", "kept"} & one.keys()
    ]  # as if the host had nothing yet to seal
    cut[-1] = {"end": {"host": 0, "tools": counts["tools"]}}
    head = next(one["head"] for one in documents if one.get("side") == "host" and "head" in one)
    n = json.loads(base64.urlsafe_b64decode(head.split(".")[1] + "=="))["n"]
    short = [
        one | {"cut": head} if one.get("side") == "host" and "cut" in one else one
        for one in documents
        if one.get("side") != "host" or "line" not in one or one["line"][0] > n
    ]  # as if its beginning had been cut by its owner
    short[-1] = {"end": counts | {"host": counts["host"] - n}}
    begun = sealed.verified_export([json.dumps(one).encode() for one in short], keys)["host"]
    assert [(one.kind, one.rows) for one in begun.findings] == [(Kind.REMOVED, (f"lines before {n + 1}",))]
    found = sealed.verified_export([json.dumps(one).encode() for one in cut], keys)
    assert found["host"].findings == []
    (finding,) = found["tools"].findings
    assert (finding.kind, finding.rows[0].split()[0]) == (Kind.REMOVED, "kept")


@asynchronous
async def test_no_restore_that_an_export_only_claims_excuses_what_was_cut_off_it(shop: Shop):
    texts: list[str] = []
    async with record(shop) as kept:
        await kept.seal()
        first = kept.host("SELECT max(n) FROM seal_head")[0][0]
        kept.note("N-4")
        await kept.seal()
        counts = await sealed.exported(kept.auditors, texts.append)
        keys = kept.keys
    documents = [
        one
        for one in map(json.loads, texts)
        if one.get("side") != "host" or (number_of(one) <= first if {"line", "head"} & one.keys() else True)
    ]
    documents[-1] = {"end": counts | {"host": first}}

    def claimed(**by_side: Any) -> list[bytes]:
        return [
            json.dumps(one | by_side.get(one.get("side"), {}) if "cut" in one else one).encode() for one in documents
        ]

    here, there = [[first, 0]], [[0, 99]]
    (one,) = sealed.verified_export(claimed(), keys)["host"].findings
    assert one.kind is Kind.TRUNCATED
    with pytest.raises(sealed.NotAnExportError, match="same restores"):
        sealed.verified_export(claimed(host={"restored": here, "restored_there": there}), keys)
    both = claimed(host={"restored": here, "restored_there": there}, tools={"restored": there, "restored_there": here})
    for side, verdict in sealed.verified_export(both, keys).items():
        assert [(one.kind, one.n) for one in verdict.findings] == [(Kind.REMOVED, first if side == "host" else 0)]


def number_of(document: dict[str, Any]) -> int:
    if "line" in document:
        return int(document["line"][0])
    return int(json.loads(base64.urlsafe_b64decode(document["head"].split(".")[1] + "=="))["n"])


@asynchronous
async def test_after_a_clock_was_wrong_the_record_goes_on_and_no_young_line_is_cut(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        for seconds, name in ((-3 * 86400, "PAST"), (6 * 86400, "FUTURE"), (-3 * 86400, "NOW")):
            advance_clock(kept.parts, seconds)
            kept.note(name)
            await kept.seal()
        findings = await kept.found()
        ids = dict(kept.host("SELECT resource, audit_id FROM audit"))
        async with await AsyncConnection.connect(kept.admin, autocommit=True) as owner:
            assert await seals.cut(owner, datetime.now(UTC) - timedelta(days=1), "ito") == 0
    # each says what it is: a line that came after a later time than its own
    assert [(one.kind, one.rows) for one in findings] == [
        (Kind.INSERTED, (f"audit {ids[name]}",)) for name in ("PAST", "NOW")
    ]


@asynchronous
async def test_heads_are_believed_under_the_keys_of_whoever_verifies_and_of_their_own_side_alone(shop: Shop):
    texts: list[str] = []
    async with record(shop) as kept:
        await kept.seal()
        await sealed.exported(kept.auditors, texts.append)
        ours = kept.keys
    whole = [text.encode() for text in texts]
    for keys in (signers()[2], SealKeys(host=ours.tools, tools=ours.host), SealKeys(host=(), tools=())):
        for verdict in sealed.verified_export(whole, keys).values():
            assert {finding.kind for finding in verdict.findings} == {Kind.UNSIGNED}
