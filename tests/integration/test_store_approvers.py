"""Whose key counts is the owner's word alone: one key each, revoked for good, and every act is audited."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from host.engine.parts import Parts
from host.store import approvals
from host.store.errors import ApproverKeyError
from shared_contracts.approval import TrustedApprover, jwk_of
from tests.support.approvals import APPROVERS, KEYS
from tests.support.cluster import database_name, dsn_of
from tests.support.engine import asynchronous, engine, owners, rows
from tests.support.fake_tools import FakeTools
from tests.support.raw_sql import refused

TANAKA, SUZUKI = APPROVERS


@asynccontextmanager
async def owner(parts: Parts) -> AsyncIterator[AsyncConnection[Any]]:
    dsn = dsn_of(database_name(parts.pool.conninfo))
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        yield connection


def trusted(person=TANAKA, key="tanaka") -> TrustedApprover:
    return TrustedApprover(approver=person, key=jwk_of(KEYS[key].public_key()))


@asynchronous
async def test_a_key_is_trusted_listed_and_revoked_once_with_who_did_it():
    async with engine(FakeTools()) as parts:
        kid = trusted().key.kid
        async with owner(parts) as sql:
            assert [await approvals.trust(sql, trusted(), "kimura") for _ in range(2)] == [True, False]
            assert [key.kid for key in await approvals.keys(sql)] == [kid]
            assert [await approvals.revoke(sql, kid, "ogawa") for _ in range(2)] == [True, False]
            (known,) = await approvals.listed(sql)
            assert await approvals.keys(sql) == []
        assert (known.added_by, known.revoked_by) == ("kimura", "ogawa")
        audited = await rows(parts, "SELECT action, actor, resource, details ->> 'kid' FROM audit ORDER BY audit_id")
    assert audited == [("approver_trusted", "kimura", "tanaka", kid), ("approver_revoked", "ogawa", "tanaka", kid)]


@asynchronous
async def test_a_second_key_another_persons_key_and_a_revoked_key_are_refused():
    async with engine(FakeTools()) as parts, owner(parts) as sql:
        await approvals.trust(sql, trusted(), "kimura")
        with pytest.raises(ApproverKeyError, match="one key at a time"):
            await approvals.trust(sql, trusted(key="stranger"), "kimura")
        with pytest.raises(ApproverKeyError, match="stands for one person"):
            await approvals.trust(sql, trusted(SUZUKI), "kimura")
        await approvals.revoke(sql, trusted().key.kid, "kimura")
        with pytest.raises(ApproverKeyError, match="revoked by kimura"):
            await approvals.trust(sql, trusted(), "kimura")
        assert await approvals.trust(sql, trusted(key="stranger"), "kimura")
        with owners(parts) as raw:
            for change in (
                "UPDATE approver_key SET revoked_at = NULL WHERE revoked_at IS NOT NULL",
                "UPDATE approver_key SET revoked_by = 'nobody' WHERE revoked_at IS NOT NULL",
                "DELETE FROM approver_key",
            ):
                with refused(raw, "KS013"):
                    raw.execute(change)


@asynchronous
async def test_the_engines_own_role_makes_nobody_an_approver():
    async with engine(FakeTools()) as parts, parts.pool.connection() as sql:
        for act in (approvals.trust(sql, trusted(), "worker"), approvals.revoke(sql, "k", "worker")):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await act
