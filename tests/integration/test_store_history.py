"""What code promises about histories and ends, raw SQL cannot break, not even as the owner."""

from __future__ import annotations

from host.domain.proposals import PlannerFault
from host.engine.drive import drive
from tests.support.engine import advance_clock, asynchronous, engine, owners, take
from tests.support.fake_tools import FakeTools, rejected
from tests.support.raw_sql import advance, append, in_doubt, move_of, planning, refused
from tests.support.scripted_planner import ScriptedPlanner


@asynchronous
async def test_invariant_7_no_checkpoint_names_a_move_that_is_not_legal():
    async with engine(FakeTools()) as parts:
        await planning(parts)
        with owners(parts) as sql, refused(sql, "KS010"):
            advance(sql, "COMPLETED", "completed")
            append(sql, 999_999)


@asynchronous
async def test_invariant_7_a_legal_move_from_another_place_does_not_continue_a_history():
    async with engine(FakeTools()) as parts:
        await planning(parts)
        with owners(parts) as sql:
            for event, source, state, control in (
                ("notice_verified", "RETURN_CREATED", "COMPLETED", "completed"),
                ("return_verified", "ELIGIBLE", "RETURN_CREATED", "planning"),
                ("authorized", "ELIGIBLE", "ELIGIBLE", "tool_authorized"),
                ("dispatched", "ELIGIBLE", "ELIGIBLE", "tool_running"),
                ("approved", "WAITING_APPROVAL", "APPROVED", "tool_proposed"),
                ("due", "RETRY_WAIT", "ELIGIBLE", "tool_proposed"),
                ("received", "", "RECEIVED", "created"),
            ):
                with refused(sql, "KS010"):
                    advance(sql, state, control)
                    append(sql, move_of(sql, event, source))


@asynchronous
async def test_invariant_7_a_history_has_no_gap_no_double_and_no_end_beyond_its_row():
    async with engine(FakeTools()) as parts:
        await planning(parts)
        with owners(parts) as sql:
            proposed = move_of(sql, "proposed", "ELIGIBLE")
            with refused(sql, "KS010"):
                advance(sql, "ELIGIBLE", "tool_proposed", by=2)
                append(sql, proposed)
            with refused(sql, "23505"):
                append(sql, proposed)
            with refused(sql, "KS010"):
                append(sql, proposed, ahead=1)


@asynchronous
async def test_invariant_7_a_row_stands_where_its_history_ends():
    async with engine(FakeTools()) as parts:
        await planning(parts)
        with owners(parts) as sql:
            for change in (
                "state = 'COMPLETED'", "control_state = 'completed', wake_at = NULL, wake_reason = NULL",
                "seq = seq + 1", "seq = seq - 1",
                "resume_state = 'ELIGIBLE'", "state = 'RETRY_WAIT', resume_state = 'ELIGIBLE'",
                "state = 'APPROVED', control_state = 'tool_proposed'",
            ):  # fmt: skip
                with refused(sql, "KS011"):
                    sql.execute(f"UPDATE workflow SET {change}")  # noqa: S608 - a change from the list above
            with refused(sql, "23514"):  # what has ended is due for nothing
                sql.execute("UPDATE workflow SET control_state = 'completed'")


@asynchronous
async def test_invariant_7_a_retry_goes_back_to_the_very_state_that_it_left():
    async with engine(FakeTools(script={"create_return": [rejected("rate_limited")]})) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql:
            with refused(sql, "KS011"):
                sql.execute("UPDATE workflow SET resume_state = 'RETURN_CREATED'")
            with refused(sql, "23514", "KS011"):
                sql.execute("UPDATE workflow SET resume_state = NULL")
            other = sql.execute(
                "SELECT move_id FROM legal_transition WHERE event = 'due' AND business_to = 'RETURN_CREATED'"
            ).fetchone()
            assert other is not None
            with refused(sql, "KS010"):
                advance(sql, "RETURN_CREATED", "tool_proposed")
                append(sql, other[0])


@asynchronous
async def test_invariant_7_an_approvals_clock_ends_a_retry_only_of_what_was_approved():
    async with engine(FakeTools(script={"create_return": [rejected("rate_limited")]})) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql, refused(sql, "KS010"):
            advance(sql, "EXPIRED", "stopped")
            append(sql, move_of(sql, "approval_expired", "RETRY_WAIT", "tool_proposed"))


@asynchronous
async def test_invariant_7_no_clock_approver_or_operator_moves_a_row_whose_effect_has_no_outcome():
    tools = FakeTools()
    async with engine(tools) as parts:
        await in_doubt(parts, tools)
        with owners(parts) as sql:
            for event in ("compensation_ordered", "effect_adopted", "reopened"):
                row = sql.execute(
                    "SELECT move_id, business_to FROM legal_transition "
                    "WHERE event = %s AND control_from = 'needs_human'",
                    (event,),
                ).fetchone()
                assert row is not None
                with refused(sql, "KS010"):
                    advance(sql, row[1], "planning")
                    append(sql, row[0])


@asynchronous
async def test_invariant_9_a_case_is_not_done_while_an_effect_is_not_verified():
    """Every way into COMPLETED by legal checkpoints alone: refused, with the effects missing, open or unread."""
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script = {"get_return": [rejected("no_answer")] * 9}
        workflow_id = await take(parts)
        for _ in range(4):
            await drive(parts, workflow_id)
            advance_clock(parts, 31)
        with owners(parts) as sql:
            reopened = move_of(sql, "reopened", "NEEDS_REVIEW", "needs_human")
            adopted = sql.execute(
                "SELECT move_id FROM legal_transition WHERE event = 'effect_adopted' AND business_to = 'COMPLETED'"
            ).fetchone()
            assert adopted is not None
            with refused(sql, "KS012"):
                advance(sql, "NEEDS_REVIEW", "planning")
                append(sql, reopened)
                advance(sql, "COMPLETED", "completed")
                append(sql, adopted[0])


@asynchronous
async def test_invariant_9_what_was_verified_cannot_be_unverified_and_what_was_not_cannot_be_without_its_outcome():
    tools = FakeTools()
    async with engine(tools) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql, refused(sql, "KS014"):
            sql.execute("UPDATE effect SET verified_at = NULL")
    async with engine(tools) as parts:
        await in_doubt(parts, tools)
        with owners(parts) as sql, refused(sql, "23514"):
            sql.execute("UPDATE effect SET verified_at = clock_now()")


HISTORY = ("checkpoint", "decision", "refusal", "audit", "call", "attempt", "effect", "workflow", "legal_transition")


@asynchronous
async def test_no_history_is_deleted_emptied_or_rewritten_by_its_owner():
    async with engine(FakeTools(), ScriptedPlanner([PlannerFault("no_call", "-")])) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql:
            for table in HISTORY:
                with refused(sql, "KS013", "23503"):
                    sql.execute(f"DELETE FROM {table}")  # noqa: S608 - a name from the list above
                with refused(sql, "KS013"):
                    sql.execute(f"TRUNCATE {table} CASCADE")
            for table, change in (
                ("checkpoint", "reason = 'x'"), ("decision", "outcome = 'allow'"), ("refusal", "code = 'x'"),
                ("audit", "result = 'x'"), ("legal_transition", "actor = 'operator'"), ("call", "arguments = '{}'"),
                ("call", "call_id = 'x'"), ("attempt", "jti = 'x'"), ("effect", "idempotency_key = 'x'"),
                ("effect", "arguments_sha256 = 'x'"), ("effect", "units = '{}'"), ("workflow", "case_body = '{}'"),
                ("workflow", "resource = 'A-2'"), ("workflow", "customer = 'C-2'"), ("workflow", "tenant_id = 't'"),
                ("workflow", "policy = 'policy-v13'"), ("workflow", "principal = 'root'"),
            ):  # fmt: skip
                with refused(sql, "KS013"):
                    sql.execute(f"UPDATE {table} SET {change}")  # noqa: S608 - a change from the list above
