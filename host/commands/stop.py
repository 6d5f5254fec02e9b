"""`stop`: let nothing new begin, and say what that met. It needs the host's database alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from psycopg.errors import LockNotAvailable
from rich.console import Console
from rich.text import Text

from host.commands.exits import CommandError, Exit
from host.commands.failures import EXPECTED
from host.commands.operators import operator_of
from host.commands.output import add, command, console, fact, say, table, write_json
from host.commands.workplace import reading
from host.domain.acting import By
from host.domain.principals import Act
from host.settings import Settings
from host.stop_views import EffectUnderWay, OpenCases, OutsideToken, StopScope, StopView
from host.store import external, stops
from host.store.pool import Pool
from shared_contracts.base import dump
from shared_contracts.digest import NotCanonicalError, storable_text
from shared_contracts.printed import plain

REASON_MAX = 2000
IDS_SHOWN = 5
LACKING = "it needs a reason: whoever comes next has to know why"


def read_reason(text: str, lacking: str | None = LACKING) -> str:
    """Give the reason as it is kept; raises CommandError, which says what is lacking. None: it may be left out."""
    try:
        reason = storable_text(text.strip())
    except NotCanonicalError as error:
        raise CommandError(Exit.BAD_INPUT, "--reason holds what cannot be kept", str(error)) from error
    mend = f"Write it with --reason, in at most {REASON_MAX} characters. Nothing was changed."
    if len(reason) > REASON_MAX:
        raise CommandError(Exit.BAD_INPUT, f"--reason has {len(reason)} characters", mend)
    if reason == "" and lacking is not None:
        raise CommandError(Exit.BAD_INPUT, lacking, mend)
    return reason


async def stop(settings: Settings, by: str, reason: str, *, reads: bool, as_json: bool) -> None:
    """Engage it; raises CommandError for a name that may not, and what a database raises that cannot be reached."""
    scopes = stops.EVERYTHING if reads else (stops.NEW_WORK, stops.UPDATES)
    try:
        acting, why = operator_of(settings, by, Act.STOP)[1], read_reason(reason)
        async with reading(settings) as pool:
            before, passed = await _engage(pool, acting, why, scopes)
            view = await _seen(pool, acting.name, why, before, passed)
    except (*EXPECTED, asyncio.CancelledError, SystemExit) as error:  # a signal too: whoever sent it has to know
        if not (isinstance(error, CommandError) and error.code is Exit.BAD_INPUT):  # which says that nothing changed
            down = command(settings, "down")
            say(f"NOT known to be stopped. Try again; on this machine {down} ends every process at once.")
        raise
    if as_json:
        write_json(dump(view))
    else:
        _show(console(), view)
    say(f"When the cause is mended: {command(settings, 'resume', '--as', 'NAME', '--reason', 'TEXT')}")


async def _engage(pool: Pool, by: By, reason: str, scopes: Sequence[str]) -> tuple[set[str], list[int]]:
    """Engage it; gives what was stopped before, and whom it did not wait for."""
    async with pool.connection() as connection:
        before = {one.scope for one in await stops.scopes(connection) if one.engaged}
        try:
            async with connection.transaction():
                await stops.wait_briefly(connection)
                await stops.engage(connection, scopes, by, reason, "operator")
        except LockNotAvailable:
            # a commit takes milliseconds: whoever holds the lock for seconds is stuck, or means to
            async with connection.transaction():
                await stops.be_patient(connection)  # with others who change the same rows
                await stops.engage(connection, scopes, by, reason, "operator", behind=False)
            return before, await stops.passed(connection)
    return before, []


async def _seen(pool: Pool, actor: str, reason: str, before: set[str], passed: Sequence[int]) -> StopView:
    async with pool.connection() as connection:
        now = await stops.scopes(connection)
        met, under_way = await stops.open_cases(connection), await stops.under_way(connection)
        outside = await external.good(connection)
    return StopView(
        actor=actor,
        reason=reason,
        passed=tuple(passed),
        newly=tuple(one.scope for one in now if one.engaged and one.scope not in before),
        scopes=tuple(map(scope_view, now)),
        open=tuple(OpenCases(state=o.state, cases=o.cases, workflow_ids=tuple(o.workflow_ids)) for o in met),
        under_way=tuple(
            EffectUnderWay(
                workflow_id=one.workflow_id, state=one.state, name=one.name, idempotency_key=one.idempotency_key
            )
            for one in under_way
        ),
        outside=tuple(OutsideToken(**one) for one in outside),
    )


def scope_view(one: stops.Stop) -> StopScope:
    """Give one scope as the documents have it."""
    return StopScope.model_validate(
        {"scope": one.scope, "engaged": one.engaged, "actor": one.actor, "reason": one.reason, "at": one.at}
    )


_WORDS = {
    "new_work": "new cases are refused",
    "updates": "no update is sent",
    "reads": "nothing is read either",
    "parallel": "one case is driven at a time",
}


def show_scopes(to: Console, scopes: Sequence[StopScope]) -> None:
    """Say what is stopped, since when, by whom and why."""
    for one in scopes:
        if one.engaged:
            since = "its row is missing" if one.at is None else f"since {one.at.astimezone():%Y-%m-%d %H:%M:%S}"
            said = f"{_WORDS[one.scope]}, {since}" + ("" if one.at is None else f", by {one.actor}: {one.reason}")
            fact(to, one.scope, said)


def _show(to: Console, view: StopView) -> None:
    to.print(Text("stopped" if view.newly else "it was stopped already; this is recorded too", style="bold"))
    show_scopes(to, view.scopes)
    if view.passed:
        who = ", ".join(map(str, view.passed))
        to.print(f"not waited for: the database's processes {who}, which may still commit what they", soft_wrap=True)
        to.print("          had begun; to end one, as its superuser: SELECT pg_terminate_backend(N)", soft_wrap=True)
    made = table("state", "open", "workflows", title="\nopen cases, which wait now")
    for one in view.open:
        add(made, one.state, one.cases, shown_ids([str(name) for name in one.workflow_ids]))
    to.print(made if view.open else Text("no case is open", style="dim"))
    if view.under_way:
        made = table("workflow", "state", "effect", title="\neffects under way, which are finished and recorded")
        for effect in view.under_way[:IDS_SHOWN]:
            add(made, effect.workflow_id, effect.state, effect.name)
        to.print(made)
        more = len(view.under_way) - IDS_SHOWN
        if more > 0:
            to.print(f"… and {more} more; --json lists them", style="dim")

    for token in view.outside:
        what = "reads" if token.tool is None else f"{token.tool} on {token.resource}"
        until = f"{token.expires_at.astimezone():%H:%M:%S}"
        said = f"{what} of {token.customer} until {until}; refuse it: kessai-tools revoke --jti {token.jti}"
        to.print(Text("outside   ", style="dim"), Text(plain(said)), sep="", soft_wrap=True)


def shown_ids(names: Sequence[str]) -> str:
    """Write some ids, and how many more there are."""
    more = len(names) - IDS_SHOWN
    return " ".join(names[:IDS_SHOWN]) + (f" … and {more} more" if more > 0 else "")
