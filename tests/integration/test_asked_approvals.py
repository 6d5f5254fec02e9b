"""A version asks for the same approvals for good: fewer of them are a new version, which reports and workflows name."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from host.store.asked import ApprovalChangedError
from host.store.migrate import migrate
from host.workflows.catalogue import WORKFLOWS
from host.workflows.returns import RETURNS
from shared_contracts.tools import TOOLS
from tests.support.cluster import create_database
from tests.support.raw_sql import refused


def test_a_removed_or_other_approval_under_the_same_version_is_refused():
    dsn = create_database()
    migrate(dsn, WORKFLOWS)
    tool = TOOLS["create_return"]
    for weaker in ("", "amount_reaches_twice_the_threshold"):
        changed = {**TOOLS, tool.name: replace(tool, approval_required_when=weaker)}
        with pytest.raises(ApprovalChangedError, match="create_return 1 asks for an approval"):
            migrate(dsn, WORKFLOWS, tools=changed)
    stated = {**TOOLS, tool.name: replace(tool, version="2", approval_required_when="")}
    migrate(dsn, WORKFLOWS, tools=stated)
    migrate(dsn, WORKFLOWS)  # and the old one is as it was
    with psycopg.connect(dsn, autocommit=True) as owner:
        kept = owner.execute(
            "SELECT version, asked FROM asked_approval WHERE what = 'create_return' ORDER BY 1"
        ).fetchall()
        assert kept == [("1", "amount_reaches_threshold"), ("2", "never")]
        with refused(owner, "KS013"):
            owner.execute("UPDATE asked_approval SET asked = 'never'")


def test_a_release_keeps_its_way_to_an_approver_and_one_without_is_another_release():
    dsn = create_database()
    migrate(dsn, WORKFLOWS)
    ways = tuple(one for one in RETURNS.transitions if one.target != RETURNS.approval_state)
    with pytest.raises(ApprovalChangedError, match="returns returns-1"):
        migrate(dsn, (replace(RETURNS, transitions=ways),))
    migrate(dsn, (*WORKFLOWS, replace(RETURNS, transitions=ways, release="returns-2")))
