"""Acts that decide are in the sealed record: who may approve, what is stopped, removed, revoked. A table each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import AsyncConnection

from host.domain.sealed import Kind
from host.store import seals
from shared_contracts.seal import SideName
from tests.support.engine import asynchronous
from tests.support.sealing import Kept, record, worked_shop
from tests.support.tool_shop import Shop
from tool_server.store import seals as tool_seals
from tool_server.store import switches

# Tables whose rows only grow, or are kept from a change, and that no line of the record is about: why not.
OF_A_CASE = "a line of its case's history has a digest of it"
COMPARED = "each row belongs to a call whose line is sealed on the other side, and kessai reconcile compares the two"
APART: dict[str, str] = {
    "workflow": OF_A_CASE, "checkpoint": OF_A_CASE, "decision": OF_A_CASE, "effect": OF_A_CASE,
    "call": COMPARED, "attempt": COMPARED,
    "refusal": "a proposal that came to nothing; the move that refused it is in its case's history, with the reason",
    "offer": "stands under its own digest, and the history of each case names the digests of what was shown",
    "legal_transition": "the program's own table: one that differs from the program's keeps it from starting",
    "expected_effect": "as legal_transition",
    "outbox": "what was delivered is taken out of it; what it told is a move of the history",
    "calls.key": COMPARED, "calls.key_closed": COMPARED, "calls.token_used": COMPARED,
    "returns.returns": COMPARED, "returns.return_lines": COMPARED, "returns.cancellations": COMPARED,
    **dict.fromkeys(
        ("document.rule_sets", "document.aliases", "document.cases", "document.documents"),
        "loaded data: what of it a case was decided on is in the facts of its decisions, which its history has",
    ),
    "returns.approvals_used": "the sealed line of its call names the event and who signed it",
}  # fmt: skip
GUARDED = (
    "SELECT DISTINCT c.oid::regclass::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p"
    " ON p.oid = t.tgfoid WHERE NOT t.tgisinternal"
    " AND p.proname IN ('refuse_change', 'keep_record', 'keep_act', 'keep_seal', 'keep_sealed')"
)
NOTED = (
    "SELECT DISTINCT t.tgrelid::regclass::text FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid"
    " WHERE p.proname = 'note_act' AND t.tgenabled = 'O'"
)
THE_SEALS = {"seal_chain", "seal_link", "seal_head", "seal_witness", "seal_cut", "seal_restored"}
LINES = {"audit", "act", "calls.log", "calls.act", *THE_SEALS, *(f"calls.{name}" for name in THE_SEALS)}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return worked_shop(tmp_path)


def acted(kept: Kept) -> None:
    """What operators do on both sides, each by the way that it is done."""
    with psycopg.connect(kept.admin, autocommit=True) as host:
        for name in ("abe", "baba"):
            host.execute("SELECT trust_approver(%s, %s, 'x', 'ito')", (f"kid-{name}", name))
        host.execute("SELECT revoke_approver('kid-baba', 'ito')")
        host.execute("SELECT engage_stop('{reads}', 'ito', 'a drill', 'operator', NULL)")
    owner = kept.shop.database.owner
    with psycopg.connect(owner, autocommit=True) as tools:
        for name in ("abe", "baba"):
            tools.execute(TRUSTED, (name[0] * 43, name))
        tools.execute(REVOKED)


async def switched(owner: str) -> None:
    await switches.switch_tool(owner, "get_order", "ito", enabled=False)
    assert await switches.revoke(owner, "kid", "k-1", "ito")


TRUSTED = (
    "INSERT INTO returns.approvers (kid, public_key, tenant_id, approver, limit_amount, limit_currency, substitutes,"
    " substitutes_after_seconds, trusted_by) VALUES (%s, repeat('p', 43), 'acme', %s, 5, 'JPY', '{}', 0, 'ito')"
)
REVOKED = (
    "UPDATE returns.approvers SET ended_at = public.clock_now(), ended_by = 'ito', ended_how = 'revoked'"
    " WHERE approver = 'baba'"
)
# what a superuser does to which side, what is found, and which row is named
SPOILED: list[tuple[SideName, str, Kind, str]] = [
    ("host", "UPDATE approver_key SET name = 'kato' WHERE name = 'abe'", Kind.CHANGED, "approver_key kid-abe"),
    ("host", "UPDATE approver_key SET revoked_at = NULL, revoked_by = NULL", Kind.CHANGED, "approver_key kid-baba"),
    ("host", "UPDATE approver_key SET revoked_at = now(), revoked_by = 'ito' WHERE name = 'abe'", Kind.INSERTED,
     "approver_key kid-abe"),
    ("host", "DELETE FROM approver_key WHERE name = 'abe'", Kind.REMOVED, "approver_key kid-abe"),
    ("host", "INSERT INTO approver_key VALUES ('kid-kato', 'kato', 'x', now(), 'ito')", Kind.INSERTED,
     "approver_key kid-kato"),
    ("host", "UPDATE stop_log SET reason = 'an accident'", Kind.CHANGED, "stop_log "),
    ("host", "DELETE FROM stop_log", Kind.REMOVED, "stop_log "),
    ("host", "UPDATE act SET columns = '{kid}' WHERE key ->> 'kid' = 'kid-abe'", Kind.CHANGED, "approver_key kid-abe"),
    ("host", "DELETE FROM act WHERE relation = 'stop_log'", Kind.REMOVED, "stop_log "),
    ("host", "INSERT INTO seal_cut SELECT n, chained, signed, 'x', now() FROM seal_head ORDER BY n DESC LIMIT 1",
     Kind.INSERTED, "seal_cut "),
    ("host", "INSERT INTO seal_restored (n, seen, at) VALUES (1, 1, now())", Kind.INSERTED, "seal_restored "),
    ("host", "UPDATE seal_link SET salt = NULL WHERE source = 'act'", Kind.CHANGED, "approver_key kid-abe"),
    ("tools", "UPDATE calls.tool_switch SET enabled = true", Kind.CHANGED, "calls.tool_switch "),
    ("tools", "DELETE FROM calls.tool_switch", Kind.REMOVED, "calls.tool_switch "),
    ("tools", "DELETE FROM calls.revocation", Kind.REMOVED, "calls.revocation kid/k-1"),
    ("tools", "INSERT INTO calls.revocation (kind, value, actor) VALUES ('kid', 'k-2', 'ito')", Kind.INSERTED,
     "calls.revocation kid/k-2"),
    ("tools", "UPDATE returns.approvers SET limit_amount = 9000000 WHERE approver = 'abe'", Kind.CHANGED,
     "returns.approvers "),
    ("tools", "UPDATE returns.approvers SET ended_at = NULL, ended_by = NULL, ended_how = NULL", Kind.CHANGED,
     "returns.approvers "),
    ("tools", "INSERT INTO calls.seal_cut SELECT n, chained, signed, 'x', now() FROM calls.seal_head LIMIT 1",
     Kind.INSERTED, "calls.seal_cut "),
    ("tools", "DELETE FROM calls.act WHERE relation = 'calls.revocation'", Kind.REMOVED, "calls.revocation kid/k-1"),
]  # fmt: skip


@asynchronous
async def test_an_act_that_is_changed_taken_out_or_put_in_is_found_and_its_row_named(shop: Shop):
    async with record(shop) as kept:
        await switched(shop.database.owner)
        acted(kept)
        await kept.seal()
        put_back, wrong = kept.remember(), []
        for side, statement, kind, named in SPOILED:
            (kept.host if side == "host" else kept.tools)(statement)
            findings = await kept.found(side)
            if not any(one.kind is kind and one.rows[0].startswith(named) for one in findings):
                wrong.append((statement, findings))
            put_back()
        assert all(verdict.findings == [] for verdict in (await kept.verified()).values())
        kept.forget()
    assert wrong == []


@asynchronous
async def test_acts_outlive_a_cut_and_what_was_changed_before_it_is_not_taken_for_sealed(shop: Shop):
    async with record(shop) as kept:
        await switched(shop.database.owner)
        acted(kept)
        await kept.seal()
        kept.host("UPDATE approver_key SET name = 'kato' WHERE name = 'abe'")
        kept.tools("UPDATE calls.tool_switch SET enabled = true")
        later = datetime.now(UTC) + timedelta(hours=1)
        async with await AsyncConnection.connect(kept.admin, autocommit=True) as owner:
            assert await seals.cut(owner, later, "ito") > 0
        assert await tool_seals.cut(shop.database.owner, later, "ito", verify_first=False) > 0
        await kept.seal()
        verdicts = await kept.verified()
        found = {side: [(one.kind, one.rows) for one in verdict.findings] for side, verdict in verdicts.items()}
        assert found["host"] == [(Kind.INSERTED, ("approver_key kid-abe",))]
        assert [(kind, rows[0].split()[0]) for kind, rows in found["tools"]] == [(Kind.INSERTED, "calls.tool_switch")]
        kept.host("UPDATE approver_key SET revoked_at = NULL, revoked_by = NULL WHERE name = 'baba'")
        assert (Kind.CHANGED, ("approver_key kid-baba",)) in [(one.kind, one.rows) for one in await kept.found()]


@asynchronous
async def test_every_table_that_only_grows_is_sealed_or_it_is_said_why_not(shop: Shop):
    async with record(shop) as kept:
        guarded = {name for (name,) in [*kept.host(GUARDED), *kept.tools(GUARDED)]}
        noted = {name for (name,) in [*kept.host(NOTED), *kept.tools(NOTED)]}
        listed = {name for (name,) in [*kept.host("SELECT relation FROM acted()"),
                                       *kept.tools("SELECT relation FROM calls.acted()")]}  # fmt: skip
    assert noted == listed
    assert guarded - noted - LINES == set(APART)
