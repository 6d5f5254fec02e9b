"""`release`: keep which release has passed and by which report, and go back to one that had.

Invariant: nothing is recorded but what the gate says yes to, computed here from the entries of a report that was signed
in the home where its cases were run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from host.commands import release_sheet
from host.commands.evaluate import MEND, REPORT_BYTES_MAX, read_report_in
from host.commands.exits import CommandError, Exit
from host.commands.operators import operator_of
from host.commands.output import console, say, write_json
from host.commands.owners import as_owner
from host.commands.release_report import refuse_anothers
from host.commands.rollout_form import read_gate
from host.commands.seal_keys import unsigned_here
from host.commands.stop import read_reason
from host.commands.workplace import reading
from host.domain.acting import By
from host.domain.principals import Act
from host.evaluation.documents import GateView
from host.evaluation.gate import release_gate
from host.rollout_views import Actor, BegunKind, ReleaseAct, ReleaseList
from host.settings import Settings
from host.store import releases
from host.store.pool import Pool
from host.store.releases import Passed
from host.workflows.catalogue import BY_RELEASE, CURRENT
from shared_contracts.base import dump
from shared_contracts.evaluation_report import EvaluationReport
from shared_contracts.named_file import Unread, read_file

PASSED = "its report passed the gate"


async def record(
    settings: Settings, path: Path, keys: Sequence[Path], name: str, reason: str | None, *, as_json: bool
) -> Exit:
    """Record a release by its report; gives 1 where the gate says no. Raises CommandError, ActRefusedError."""
    _, by = operator_of(settings, name, Act.RELEASE)
    why = PASSED if reason is None else read_reason(reason)
    content = read_file(path, REPORT_BYTES_MAX)
    if isinstance(content, Unread):
        raise CommandError(Exit.BAD_INPUT, f"{path} cannot be read: {content.why}", MEND)
    report = read_report_in(path, content)
    kind = _kind_of(report)
    decided = release_gate(report, unsigned=unsigned_here(settings, report, keys))
    if not decided.passed:
        _refuse(decided)
        return Exit.FAILED
    sha256, release = hashlib.sha256(content).hexdigest(), report.conditions.workflow_release
    refuse_anothers(report, BY_RELEASE[kind, release])
    passed = Passed(kind, release, sha256, report.build, report.made_at, dump(decided))
    await as_owner(settings, lambda owner: recorded(owner, passed, by, why))
    return await show(settings, as_json=as_json)


async def recorded(owner: AsyncConnection[Any], passed: Passed, by: By, why: str) -> None:
    """Record it in our turn: of two at once the second finds what the first has recorded. Raises CommandError."""
    await releases.take_turn(owner)
    _refuse_again(passed, await releases.history(owner))
    await releases.record(owner, passed, by, why)


def _refuse(decided: GateView) -> None:
    say(f"kessai: nothing was recorded: the gate says {decided.said}")
    for one in decided.refused:
        say(f"  {one.code}: {one.said}")
    for severe in decided.severe:
        say(f"  {severe.id}: {severe.said}")


def _refuse_again(passed: Passed, history: list[releases.Act]) -> None:
    """Refuse the same evaluation, in whatever bytes its report comes a second time."""
    run = (passed.build, passed.evaluated_at)
    old = next((one for one in history if passed.report_sha256 == one.report_sha256 or run == _run(one)), None)
    if old is not None:
        mend = "Nothing was recorded. What was left behind by a rollback needs a new evaluation: kessai eval."
        raise CommandError(Exit.BAD_INPUT, f"{old.release} was recorded by this very report at {old.at}", mend)


def _run(one: releases.Act) -> tuple[str | None, datetime | None]:
    return one.build, one.evaluated_at


def _kind_of(report: EvaluationReport) -> str:
    """Name the kind whose release the report is of; raises CommandError where it is of another program."""
    release = report.conditions.workflow_release
    kinds = [kind for kind, carried in BY_RELEASE if carried == release]
    if len(kinds) != 1:
        what = f"the report is of release {release}, which this program does not carry"
        raise CommandError(Exit.BAD_INPUT, what, "Nothing was recorded. Evaluate this program: kessai eval.")
    return kinds[0]


async def rollback(
    settings: Settings, release: str | None, kind: str | None, name: str, reason: str, *, as_json: bool
) -> Exit:
    """Let new cases begin under an earlier release. Raises CommandError, ActRefusedError."""
    _, by = operator_of(settings, name, Act.RELEASE)
    why = read_reason(reason)
    async with reading(settings) as pool, pool.connection() as connection:
        history = await releases.history(connection)
        of = _kind_to_leave(release, kind, history)
        carried = [one for other, one in BY_RELEASE if other == of and release in {None, one}]
        found = await releases.last_passed(connection, of, carried)
        begins = await releases.begins_under(connection, of)
    if found is None or begins is None:
        raise CommandError(
            Exit.BAD_INPUT, _nothing(of, release, begins), "Nothing was changed. See kessai release list."
        )
    await as_owner(settings, lambda owner: releases.roll_back(owner, found, by, why))
    return await show(settings, as_json=as_json)


def _kind_to_leave(release: str | None, kind: str | None, history: list[releases.Act]) -> str:
    kinds = {one for one, carried in BY_RELEASE if carried == release}
    if release is None:
        kinds = {one.kind for one in history} if kind is None else {kind} & set(CURRENT)
    if len(kinds) == 1:
        return kinds.pop()
    if release is not None:
        raise CommandError(Exit.BAD_INPUT, f"this program carries no release {release}", "Nothing was changed.")
    mend = f"Name one with --kind: {', '.join(CURRENT)}. Nothing was changed."
    if kind is not None:
        raise CommandError(Exit.BAD_INPUT, f"there is no kind {kind!r}", mend)
    raise CommandError(Exit.BAD_INPUT, f"{len(kinds)} kinds have a release recorded", mend)


def _nothing(kind: str, release: str | None, begins: str | None) -> str:
    if begins is None:
        return f"no release of {kind} is recorded"
    if release == begins:
        return f"new cases of {kind} begin under {release} already"
    stays = f"new cases of {kind} begin under {begins}"
    if release is None:
        return f"no other release that this program carries has passed; {stays}"
    return f"{release} was never recorded as passed; {stays}"


async def show(settings: Settings, *, as_json: bool) -> Exit:
    """Show what new cases begin under, and how it came to that."""
    async with reading(settings) as pool:
        view = await listed(pool)
    if as_json:
        write_json(dump(view))
    else:
        release_sheet.show(console(), view)
    return Exit.DONE


async def listed(pool: Pool) -> ReleaseList:
    """Read it."""
    async with pool.connection() as connection:
        history, under_way = await releases.history(connection), await releases.open_under(connection)
    newest = {one.kind: one.release for one in history}
    kinds = tuple(
        BegunKind(
            kind=kind,
            begins_under=newest.get(kind, workflow.release),
            recorded=kind in newest,
            carried=tuple(release for of, release in BY_RELEASE if of == kind),
            open_cases={one.release: one.cases for one in under_way if one.kind == kind},
        )
        for kind, workflow in CURRENT.items()
    )
    return ReleaseList(kinds=kinds, history=tuple(map(_act, history)))


def _act(one: releases.Act) -> ReleaseAct:
    gate = read_gate(one)
    return ReleaseAct(
        act="record" if one.act == "record" else "rollback",
        kind=one.kind,
        release=one.release,
        report_sha256=one.report_sha256,
        build=one.build,
        evaluated_at=one.evaluated_at,
        versions=None if gate is None else gate.versions,
        left_release=one.left_release,
        by=actor(one),
    )


def actor(one: releases.Act) -> Actor:
    """Say who did it."""
    return Actor(
        name=one.actor,
        os_user=one.details["os_user"],
        authz=one.details.get("authz"),
        reason=one.reason,
        at=one.at,
    )
