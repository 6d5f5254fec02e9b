"""Records and lists as the commands read them, checked against their committed schemas on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import jsonschema

from host.engine.parts import Parts
from host.explain import explain
from host.record import assemble
from host.store import record as store
from host.workflows.returns import RETURNS
from shared_contracts.base import dump
from shared_contracts.generate import FOLDER


def fits(document: Mapping[str, Any], schema: str) -> dict[str, Any]:
    """Give the document back if it meets the committed schema, formats included."""
    validator = jsonschema.Draft202012Validator(
        json.loads((FOLDER / schema).read_text(encoding="utf-8")),
        format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
    )
    validator.validate(document)
    return dict(document)


async def record_of(parts: Parts, workflow_id: UUID) -> dict[str, Any]:
    """Read a record."""
    return fits(dump(assemble(await rows_of(parts, workflow_id), RETURNS)), "record.json")


async def rows_of(parts: Parts, workflow_id: UUID) -> dict[str, Any]:
    """Read what a record is assembled from."""
    async with parts.pool.connection() as connection:
        row = await store.read(connection, workflow_id)
    assert row is not None
    return row


async def answers_of(parts: Parts, workflow_id: UUID) -> dict[str, dict[str, Any]]:
    """Read every question's answer, by its question."""
    row = await rows_of(parts, workflow_id)
    document = fits(dump(explain(assemble(row, RETURNS), row, RETURNS, everything=True)), "command.explain.json")
    return {one["question"]: one for part in ("closing", "incident", "trace") for one in document[part]}
