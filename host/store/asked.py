"""What approvals are asked for, by version: a tool's contract by its condition, a release by its ways to a person.

Invariant: one version asks for one thing for good. Whoever asks for less, or for more, writes a new version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg

from host.domain.workflow import Workflow, legal_moves
from host.store.queries import load_queries
from shared_contracts.contract import Tool

_SQL = load_queries(__file__)


class ApprovalChangedError(Exception):
    """What a version asks approvals for is not what it asked for when it came here; a change is a new version."""


def keep_asked(owner: psycopg.Connection[Any], workflows: Iterable[Workflow], tools: Iterable[Tool]) -> None:
    """Keep what is new; raises ApprovalChangedError."""
    for what, version, asked in asked_of(workflows, tools):
        named = {"what": what, "version": version, "asked": asked}
        owner.execute(_SQL["keep"], named)
        kept = owner.execute(_SQL["kept"], named).fetchone()
        if kept is not None and kept[0] != asked:
            raise ApprovalChangedError(
                f"{what} {version} asks for an approval: {asked}. In this database it does so: {kept[0]}\n"
                "Nothing was migrated. Fewer approvals, or others, are a new version of it, and a release of their own."
            )


def asked_of(workflows: Iterable[Workflow], tools: Iterable[Tool]) -> tuple[tuple[str, str, str], ...]:
    """Give the name, the version and what it asks an approval for, of each tool and each release."""
    return (*_of_tools(tools), *_of_releases(workflows))


def _of_tools(tools: Iterable[Tool]) -> Iterator[tuple[str, str, str]]:
    for tool in tools:
        yield tool.name, tool.version, "never" if tool.approval_required_when == "" else tool.approval_required_when


def _of_releases(workflows: Iterable[Workflow]) -> Iterator[tuple[str, str, str]]:
    for one in workflows:
        ways = {move.business_from for move in legal_moves(one) if move.business_to == one.approval_state}
        sources = sorted(ways - {one.approval_state})
        yield one.kind, one.release, f"from {', '.join(map(str, sources))}" if sources else "never"
