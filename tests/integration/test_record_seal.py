"""The sealed record: whoever spoils a line of it, the database's superuser too, is found, and the line is named."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import psycopg
import pytest

from host.domain.sealed import Kind
from shared_contracts.seal import SideName
from tests.support.engine import asynchronous
from tests.support.raw_sql import refused
from tests.support.sealing import record, worked_shop
from tests.support.tool_shop import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return worked_shop(tmp_path)


@asynchronous
async def test_both_records_verify_and_each_side_has_seen_the_other(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        kept.note("N-4")
        await kept.seal()
        verdicts = await kept.verified()
    for verdict in verdicts.values():
        assert verdict.findings == []
        assert verdict.lines == verdict.last == verdict.seen > 2


PLANTED = (
    "INSERT INTO audit (actor, action, resource, result, details, at, committed_in)"
    " VALUES ('sato', 'noted', 'N-X', 'done', '{}', now(), '7')"
)
PLANTED_CALL = (
    "INSERT INTO calls.log (iss, sub, client_id, kid, jti, use, tenant_id, task_id, tool, outcome, duration_us,"
    " committed_in) SELECT iss, sub, client_id, kid, 'planted', use, tenant_id, task_id, tool, outcome, duration_us,"
    " '7' FROM calls.log LIMIT 1"
)
KATO = "UPDATE audit SET actor = 'kato' WHERE resource = 'N-2'"
ERASED = "UPDATE audit SET details = '{\"erased\": true}' WHERE resource = 'N-2'"
SWAPPED_CALLS = (
    "UPDATE calls.seal_link SET n = n + 1000 WHERE row_id IN ('{CALL}', ({CALL} - 1)::text)",
    "UPDATE calls.seal_link l SET n = k.n - 1000 FROM calls.seal_link k WHERE least(l.n, k.n) > 1000 AND l.n <> k.n",
)
# what is done to which side, what is found there, and a name in it. Line {L2} seals row {N2}; the last call is {CALL}.
SPOILED: list[tuple[SideName, tuple[str, ...], str, str]] = [
    ("host", (KATO,), "changed", "audit {N2}"),
    ("host", ("UPDATE audit SET details = '{\"by\": 1}' WHERE resource = 'N-2'",), "changed", "audit {N2}"),
    ("host", ("DELETE FROM audit WHERE resource = 'N-2'",), "removed", "audit {N2}"),
    ("host", ("DELETE FROM seal_link WHERE n = {L2}", "DELETE FROM audit WHERE resource = 'N-2'"), "removed",
     "line {L2}"),
    ("host", (PLANTED,), "inserted", "audit "),
    ("host", ("UPDATE seal_link SET sealed = replace(sealed, 'sato', 'kato') WHERE n = {L2}", KATO), "changed",
     "audit {N2}"),
    ("host", ("UPDATE seal_link SET n = n + 1000 WHERE n IN ({L2}, {L2} + 1)",
              "UPDATE seal_link SET n = 2 * {L2} + 1 - (n - 1000) WHERE n > 1000"), "reordered", "audit {N2}"),
    ("host", ("UPDATE checkpoint SET reason = 'other' WHERE seq = 3",), "changed", "history "),
    ("host", ("UPDATE decision SET facts = '{}' WHERE n = 1",), "changed", "history "),
    ("host", ("UPDATE effect SET external_id = 'R-X' WHERE step = (SELECT min(step) FROM effect)",), "changed",
     "history "),
    ("host", ("UPDATE seal_head SET signed = NULL, at = at - interval '1 hour'",), "unsigned", "lines 1 to "),
    ("host", ("UPDATE seal_link SET salt = NULL WHERE n = {L2}", ERASED), "changed", "audit {N2}"),
    ("host", ("UPDATE seal_chain SET chain_id = gen_random_uuid()",), "rewritten unsigned", "lines 1 to "),
    ("tools", ("UPDATE calls.log SET sub = 'nobody' WHERE seq = {CALL}",), "changed", "call {CALL}"),
    ("tools", ("DELETE FROM calls.log WHERE seq = {CALL}",), "removed", "call {CALL}"),
    ("tools", (PLANTED_CALL,), "inserted", "call "),
    ("host", ("UPDATE seal_link SET sealed = '{\"a\": 1}' WHERE n = {L2}",), "changed", "audit {N2}"),
    ("tools", ("UPDATE calls.seal_link SET sealed = '{\"a\": 1}' WHERE row_id = '{CALL}'",), "changed", "call {CALL}"),
    ("tools", ("DELETE FROM calls.log WHERE seq = (SELECT row_id::bigint FROM calls.seal_link WHERE n = 1)",
               "DELETE FROM calls.seal_link WHERE n = 1"), "removed", "line 1"),
    ("tools", SWAPPED_CALLS, "reordered", "call {CALL}"),
    ("tools", ("UPDATE calls.seal_head SET signed = NULL, at = at - interval '1 hour'",), "unsigned", "lines 1 to "),
    ("tools", ("UPDATE calls.seal_chain SET chain_id = gen_random_uuid()",), "rewritten unsigned", "lines 1 to "),
    ("host", ("UPDATE audit SET at = (utc_text(at) || ' BC')::timestamptz WHERE resource = 'N-2'",), "changed",
     "audit {N2}"),
    ("tools", ("UPDATE calls.log SET at = (calls.utc_text(at) || ' BC')::timestamptz WHERE seq = {CALL}",), "changed",
     "call {CALL}"),
    # what cannot be read keeps nothing else from being looked at
    ("host", ("UPDATE seal_link SET row_id = 'x' WHERE n = {L2}",), "changed inserted removed", "audit x"),
    ("host", ("UPDATE seal_link SET sealed = 'x' WHERE source = 'history'",), "changed removed", "history "),
    ("host", ("UPDATE act SET relation = 'none' WHERE relation = 'asked_approval'",), "inserted removed",
     "asked_approval "),
    ("host", ("UPDATE act SET key = '{\"none\": 1}' WHERE relation = 'asked_approval'",), "inserted removed",
     "asked_approval "),
    ("tools", ("UPDATE calls.seal_link SET row_id = 'x' WHERE row_id = '{CALL}'",), "changed inserted removed",
     "call x"),
]  # fmt: skip


@asynchronous
async def test_what_a_superuser_spoils_is_found_and_named(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        put_back = kept.remember()
        numbers = kept.numbers("N-2")
        wrong = []
        for side, statements, kinds, named in SPOILED:
            (kept.host if side == "host" else kept.tools)(*(numbers(one) for one in statements))
            verdicts = await kept.verified()
            findings, others = verdicts[side].findings, verdicts["tools" if side == "host" else "host"].findings
            if (
                others != []
                or {finding.kind.value for finding in findings} != set(kinds.split())
                or not any(row.startswith(numbers(named)) for finding in findings for row in finding.rows)
            ):
                wrong.append((statements, findings, others))
            put_back()
        assert all(verdict.findings == [] for verdict in (await kept.verified()).values())
        kept.forget()
    assert wrong == []


CUT_OFF: dict[SideName, tuple[str, ...]] = {
    "host": ("DELETE FROM seal_link", "DELETE FROM seal_head", "DELETE FROM audit"),
    "tools": ("DELETE FROM calls.seal_link", "DELETE FROM calls.seal_head", "DELETE FROM calls.log"),
}
BEGUN_ANEW: dict[SideName, tuple[str, ...]] = {
    "host": ("DELETE FROM seal_link", "DELETE FROM seal_head", "UPDATE audit SET actor = 'kato'"),
    "tools": ("DELETE FROM calls.seal_link", "DELETE FROM calls.seal_head", "UPDATE calls.log SET sub = 'kato'"),
}


@asynchronous
async def test_an_end_that_was_cut_off_with_its_seals_is_missed_by_the_other_side(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        put_back = kept.remember()
        for side in ("host", "tools"):
            (kept.host if side == "host" else kept.tools)(*CUT_OFF[side])
            findings = await kept.found(side)
            put_back()
            (finding,) = [one for one in findings if one.kind is Kind.TRUNCATED]
            # acts that came with the database wait for a seal again; once they are a minute old that is told too
            assert {one.kind for one in findings} <= {Kind.TRUNCATED, Kind.UNSEALED}
            assert finding.rows[0].startswith("lines 1 to ")
        kept.forget()


@asynchronous
async def test_a_side_that_writes_its_record_anew_with_its_own_key_cannot_do_so_alone(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        put_back = kept.remember()
        for side, other in (("host", "tools"), ("tools", "host")):
            (kept.host if side == "host" else kept.tools)(*BEGUN_ANEW[side])
            await (kept.seal_host_alone() if side == "host" else kept.seal_tools())
            verdicts = await kept.verified()
            put_back()
            assert [finding.kind for finding in verdicts[side].findings] == [Kind.REWRITTEN]
            assert verdicts[side].findings[0].rows
            assert verdicts[other].findings == []
        kept.forget()


@asynchronous
async def test_who_has_both_databases_and_one_key_cannot_write_the_record_of_that_key_anew(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        kept.tools("INSERT INTO calls.log (iss, sub, client_id, kid, jti, use, tenant_id, task_id, tool, outcome,"
                   " duration_us) SELECT iss, sub, client_id, kid, 'more', use, tenant_id, task_id, tool, outcome,"
                   " duration_us FROM calls.log LIMIT 1")  # fmt: skip
        await kept.seal()  # what the tool server keeps of the host is in its own chain by now
        kept.host(*BEGUN_ANEW["host"])
        kept.tools("DELETE FROM calls.seal_witness")
        await kept.seal_host_alone()
        await kept.seal()
        verdicts = await kept.verified()
    assert [finding.kind for finding in verdicts["tools"].findings] == [Kind.REMOVED]
    assert verdicts["tools"].findings[0].rows[0].startswith("kept ")


@asynchronous
async def test_a_row_that_claims_a_time_before_the_last_seals_is_found_when_it_is_sealed(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        kept.host(
            "INSERT INTO audit (actor, action, resource, result, details, at)"
            " VALUES ('sato', 'noted', 'N-X', 'done', '{}', now() - interval '2 days')"
        )
        await kept.seal()
        (finding,) = await kept.found()
        ((number,),) = kept.host("SELECT max(audit_id) FROM audit")
    assert (finding.kind, finding.rows) == (Kind.INSERTED, (f"audit {number}",))


IN_ORDER = (
    "SELECT a.resource FROM seal_link l JOIN audit a ON l.source = 'audit' AND a.audit_id::text = l.row_id"
    " WHERE a.resource IN ('LATE', 'EARLY', 'AFTER') ORDER BY l.n"
)


@asynchronous
async def test_a_row_that_commits_late_under_an_earlier_number_is_sealed_by_the_next_batch(shop: Shop):
    insert = (
        "INSERT INTO audit (actor, action, resource, result, details, at)"
        " VALUES ('sato', 'noted', 'LATE', 'done', '{}', now())"
    )
    async with record(shop) as kept:
        with psycopg.connect(kept.admin) as late:
            late.execute(insert)
            kept.note("EARLY")
            await kept.seal()
            assert kept.host(IN_ORDER) == [("EARLY",)]
        kept.note("AFTER")
        await kept.seal()
        assert kept.host(IN_ORDER) == [("EARLY",), ("LATE",), ("AFTER",)]
        assert (await kept.verified())["host"].findings == []


@asynchronous
async def test_of_many_sealers_at_once_one_seals_and_every_row_is_sealed_once(shop: Shop):
    async with record(shop) as kept:
        kept.note(*(f"M-{n}" for n in range(1200)))  # more than two batches
        await asyncio.gather(*(kept.seal_host_alone() for _ in range(4)))
        await kept.seal()
        ((rows, links),) = kept.host(
            "SELECT (SELECT count(*) FROM audit), (SELECT count(*) FROM seal_link WHERE source = 'audit')"
        )
        verdict = (await kept.verified())["host"]
    assert rows == links > 1200
    assert verdict.findings == []
    assert verdict.heads >= 3


@asynchronous
async def test_what_a_sealer_chained_before_it_was_killed_is_signed_by_the_next(shop: Shop):
    async with record(shop) as kept:
        with psycopg.connect(kept.sealer.dsn, autocommit=True) as sealer:
            assert len(sealer.execute("SELECT * FROM seal_batch(500)").fetchall()) == 1
        verdict = (await kept.verified())["host"]
        assert (verdict.findings, verdict.heads) == ([], 0)  # it may be signed at this very moment
        await kept.seal()
        verdict = (await kept.verified())["host"]
    assert (verdict.findings, verdict.heads) == ([], 1)


NOT_HOSTS = (
    "TABLE audit", "TABLE act", "DELETE FROM act", "TABLE seal_link",
    "DELETE FROM seal_head", "SELECT erase_words(1, 'x')", "TABLE workflow",
    "SELECT cut_record(now(), 'x')", "UPDATE audit SET actor = 'x'", "SELECT commit_steps('{}')",
)  # fmt: skip
NOT_TOOLS = (
    "TABLE calls.log", "TABLE calls.act", "TABLE calls.seal_link", "DELETE FROM calls.seal_head", "TABLE orders.orders",
    "SELECT calls.cut_record(now(), 'x', true)",
)  # fmt: skip


@asynchronous
async def test_the_sealers_role_seals_and_can_do_nothing_else(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        for dsn, statements in ((kept.sealer.dsn, NOT_HOSTS), (shop.database.dsn("tools_sealer"), NOT_TOOLS)):
            with psycopg.connect(dsn, autocommit=True) as sealer:
                for statement in statements:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        sealer.execute(statement)


SLIPS = (
    "UPDATE audit SET actor = 'x'", "DELETE FROM audit", "UPDATE act SET key = '{}'", "DELETE FROM act", "TRUNCATE act",
    "TRUNCATE seal_link", "UPDATE seal_link SET n = n + 1",
    "DELETE FROM seal_link", "UPDATE seal_head SET signed = 'x'", "DELETE FROM seal_head",
    "UPDATE seal_witness SET n = 1", "UPDATE audit SET details = '{\"erased\": true}'",
)  # fmt: skip
TOOL_SLIPS = (
    "DELETE FROM calls.log", "UPDATE calls.act SET at = at", "UPDATE calls.seal_link SET n = n + 1",
    "DELETE FROM calls.seal_head", "TRUNCATE calls.seal_link", "DELETE FROM calls.seal_witness",
)  # fmt: skip


@asynchronous
async def test_not_even_the_owner_changes_a_sealed_line_by_a_slip(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        with psycopg.connect(kept.admin, autocommit=True) as owner:
            for statement in SLIPS:
                with refused(owner, "KS013"):
                    owner.execute(statement)
        with psycopg.connect(shop.database.owner, autocommit=True) as owner:
            for statement in TOOL_SLIPS:
                with pytest.raises(psycopg.errors.CheckViolation, match="append-only"):
                    owner.execute(statement)


@asynchronous
async def test_a_sealed_line_says_who_did_what_in_which_version_and_what_came_of_it(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        calls = [json.loads(text) for (text,) in kept.tools("SELECT sealed FROM calls.seal_link WHERE source = 'call'")]
        lines = [json.loads(text) for (text,) in kept.host("SELECT sealed FROM seal_link WHERE source = 'audit'")]
        columns = kept.tools("SELECT array_agg(attname::text) FROM pg_attribute WHERE attrelid = 'calls.log'::regclass"
                             " AND attnum > 0")[0][0]  # fmt: skip
    for call in calls:
        assert set(call) == {"id", *columns} - {"seq"}  # a column that is added is sealed, or this says so
    (made,) = [call for call in calls if call["tool"] == "create_return"]
    assert (made["outcome"], made["version"] != "", len(made["arguments_sha256"])) == ("ok", True, 64)
    assert made["duration_us"] > 0
    assert all(
        made[name] for name in ("iss", "client_id", "kid", "jti", "task_id", "tenant_id", "idempotency_key", "at")
    )
    assert made["sub"].startswith("sha256:")  # here an address of mail, which is a person's
    assert {tuple(sorted(line)) for line in lines} == {
        ("action", "actor", "at", "committed_in", "details", "id", "resource", "result", "workflow_id")
    }
