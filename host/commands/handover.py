"""`handover`: read one case and what lies around it, make the sheet, write it. It needs the host's database alone."""

from __future__ import annotations

import sys

from host.commands.exits import CommandError, Exit
from host.commands.lookup import found_id, workflow_of
from host.commands.output import write_json
from host.commands.possible import spelt
from host.commands.workplace import reading
from host.handover.html import html
from host.handover.markdown import markdown
from host.handover.sections import sections
from host.handover.sheet import NoHandover, hand_over
from host.settings import Settings
from host.store import handover as store
from host.workflows.catalogue import BY_RELEASE
from shared_contracts.base import dump
from shared_contracts.handover import Handover


async def written(settings: Settings, name: str, *, as_html: bool, as_json: bool) -> None:
    """Write a sheet; raises CommandError where the case is nobody's to take over."""
    if as_html and as_json:
        raise CommandError(Exit.BAD_INPUT, "--html and --json are two forms of one sheet", "Leave one of them out.")
    sheet = await _sheet(settings, name)
    title = f"Handover of {sheet.kind} {sheet.workflow_id}"
    if as_json:
        write_json(dump(sheet))
    else:
        sys.stdout.write((html if as_html else markdown)(title, sections(sheet)))


async def _sheet(settings: Settings, name: str) -> Handover:
    async with reading(settings) as pool:
        workflow_id = await found_id(pool, name)
        async with pool.connection() as connection:
            found = await store.read(connection, workflow_id)
    if found is None:
        raise CommandError(Exit.BAD_INPUT, f"there is no workflow {workflow_id}")
    row, around = found
    made = hand_over(row, around, workflow_of(row), BY_RELEASE)
    if isinstance(made, NoHandover):
        mend = "\n".join(spelt(settings, made.possible))
        raise CommandError(Exit.BAD_INPUT, f"no handover sheet: {made.what}", mend)
    return made
