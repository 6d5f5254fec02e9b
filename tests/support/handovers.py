"""Handover sheets as the command makes them, checked against their committed schema on the way."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from host.engine.parts import Parts
from host.handover.html import html
from host.handover.markdown import markdown
from host.handover.sections import sections
from host.handover.sheet import NoHandover, hand_over
from host.store import handover as store
from host.workflows.catalogue import BY_RELEASE
from host.workflows.returns import RETURNS
from shared_contracts.base import dump
from shared_contracts.handover import Handover
from tests.support.records import fits

LOOKING = ["show", "explain"]  # what is always possible


async def made(parts: Parts, workflow_id: UUID) -> Handover | NoHandover:
    """What the command makes, or why it makes nothing."""
    async with parts.pool.connection() as connection:
        found = await store.read(connection, workflow_id)
    assert found is not None
    return hand_over(*found, RETURNS, BY_RELEASE)


async def sheet_of(parts: Parts, workflow_id: UUID) -> dict[str, Any]:
    """The sheet as its document."""
    sheet = await made(parts, workflow_id)
    assert isinstance(sheet, Handover), sheet
    return fits(dump(sheet), "handover.json")


def pages(sheet: Handover) -> tuple[str, str, str]:
    """The sheet in its three forms."""
    parts = sections(sheet)
    return markdown("t", parts), html("t", parts), sheet.model_dump_json()


def names(sheet: dict[str, Any]) -> list[str]:
    """The commands that are possible, by their words."""
    said = [one["command"].replace(sheet["workflow_id"], "").split() for one in sheet["possible"]]
    return [" ".join(word for word in words[1:] if word.islower() and not word.startswith("--")) for words in said]
