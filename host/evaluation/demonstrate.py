"""Four things shown on real parts: the wait between two tries, the confirmation query, a compensation, a stop.

    <home>-demo, as an evaluation's, and removed after it ──► one case each ──► what ledger and tool server wrote down

Invariant: what is shown was read off the ledger, the tool server or the mail server after it had happened, and a thing
that was not seen to hold is said not to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from host.domain.acting import By
from host.domain.limits import BACKOFF_CAP_SECONDS, BACKOFF_JITTER_SECONDS, backoff_seconds
from host.domain.principals import AuthorizationSet
from host.engine.accept import Origin, accept
from host.engine.review import order_compensation
from host.evaluation.conduct import Bench, Run, conduct
from host.evaluation.documents import Demonstrated, DemoView
from host.evaluation.opened import Opened, opened, watched
from host.evaluation.place import drop
from host.evaluation.plan import Plan
from host.evaluation.prepared import Prepared
from host.settings import Settings, home_root
from host.stack import assembly
from host.stack.roles import Side
from host.store import handover, stops, trial_tools
from host.store.errors import StoppedError
from host.store.trial_tools import Provider
from shared_contracts.tools import TOOLS

# Which case of the 120 shows which.
TRIED_AGAIN, LOOKED_UP, UNDONE, STOPPED = "midway-fault-01", "midway-fault-05", "midway-fault-08", "normal-01"
CASES = (TRIED_AGAIN, LOOKED_UP, UNDONE, STOPPED)
_ATTEMPTS = range(7)
_SLACK_SECONDS = 5.0  # until a worker takes up what is due
_REASON = "a demonstration"
Row = Mapping[str, Any]


async def demonstrate(settings: Settings, authorization: AuthorizationSet, todo: Plan) -> DemoView:
    """Show all four; raises UnfitError, StackError, NotReadyError."""
    cases = {one.case.id: one for one in todo.cases}
    root = home_root(settings)
    root = root.with_name(f"{root.name}-demo")
    try:
        async with opened(settings, authorization, todo, root) as place:
            shown = await watched(place, _all(place, cases))
    finally:
        await drop(root)
    return DemoView(held=all(one.held for one in shown), build=place.parts.build.code, shown=shown)


async def _all(place: Opened, cases: Mapping[str, Prepared]) -> tuple[Demonstrated, ...]:
    bench = place.bench
    first = await conduct(bench, [cases[name] for name in (TRIED_AGAIN, LOOKED_UP, UNDONE)], 3, 0, lambda _: None)
    runs = {run.prepared.case.id: run for run in first}
    return (
        tried_again(await _row(bench, runs[TRIED_AGAIN])),
        await _looked_up(place, runs[LOOKED_UP]),
        await _undone(place, runs[UNDONE]),
        await _stopped(bench, cases[STOPPED]),
    )


def tried_again(row: Row) -> Demonstrated:
    """Hold the wait between two sends of one call against the formula."""
    waits = [_span(n) for n in _ATTEMPTS]
    said = [
        f"wait = min({BACKOFF_CAP_SECONDS:g} s, 1 s * 2^attempt) + 0 to {BACKOFF_JITTER_SECONDS:g} s",
        "attempt 0 to 6: " + ", ".join(f"{least:g} to {most:g} s" for least, most in waits),
    ]
    sent = [one for one in row["attempts"] if one["tool"] == "get_order" and one["purpose"] == "call"]
    if len(sent) < 2:
        return _view("back_off", held=False, said=[*said, "the call was not sent a second time"])
    waited = (_at(sent[1]["started_at"]) - _at(sent[0]["ended_at"])).total_seconds()
    said.append(f"get_order was answered 429, and sent again after {waited:.2f} s, with a token of its own")
    return _view("back_off", held=waits[0][0] <= waited <= waits[0][1] + _SLACK_SECONDS, said=said)


def _span(attempt: int) -> tuple[float, float]:
    return backoff_seconds(attempt, 0.0), backoff_seconds(attempt, 1.0)


async def _looked_up(place: Opened, run: Run) -> Demonstrated:
    """Show that a write whose answer was lost is asked about by its key, and not sent again."""
    row, provider = await _row(place.bench, run), await _provider(place)
    sent, key = _said_of(row, "send_return_notice"), _key_of(provider, run, "send_return_notice")
    made = [one.id for one in provider.made if one.idempotency_key == key and key is not None]
    mails = sum(place.mail.of(str(run.prepared.case.request["order_id"])).values())
    said = [
        "the mail left, and the connection broke before the answer: " + "; ".join(sent),
        f"it was looked up by its key, {key}: {', '.join(made)}",
        f"{len(made)} notice in the tool server's table, {mails} mail taken by the mail server; {_end(row)}",
    ]
    held = row["workflow"]["state"] == "COMPLETED" and (len(made), mails) == (1, 1) and len(sent) > 1
    return _view("confirmation_query", held=held, said=said)


async def _undone(place: Opened, run: Run) -> Demonstrated:
    """Have a person order that a return be undone whose notice nobody could deliver."""
    bench, (workflow_id,) = place.bench, run.workflow_ids
    before = await _row(bench, run)
    await order_compensation(bench.desk, workflow_id, _by(), _REASON, TOOLS)
    await bench.watch.rest(workflow_id, ended=True)
    row, around = await _read(bench, workflow_id)
    undone = [one["state"] for one in around["compensations"]]
    said = [
        f"the return was made and its notice refused for good: {_end(before)}",
        f"a person ordered that it be undone: {'; '.join(_said_of(row, 'cancel_return'))}",
        f"the compensation is {', '.join(undone)}, within its deadline; {_end(row)}",
    ]
    return _view("compensation", held=before["workflow"]["state"] == "NEEDS_REVIEW" and undone == ["done"], said=said)


async def _stopped(bench: Bench, prepared: Prepared) -> Demonstrated:
    """Stop everything, be refused, and go on once it was reconciled and lifted."""
    said = list[str]()
    async with bench.outages.steady:  # nobody lifts it meanwhile
        async with bench.pool.connection() as connection, connection.transaction():
            await stops.engage(connection, ["new_work", "updates"], _by(), _REASON, "operator")
        try:
            await accept(
                bench.pool, bench.kind, prepared.request, Origin(prepared.principal), bench.pins, bench.desk.wake
            )
            refused = False
        except StoppedError as error:
            refused = True
            said.append(f"new work and updates were stopped, and a new case was refused: {str(error).splitlines()[0]}")
    (run,) = await conduct(bench, [prepared], 1, 0, lambda _: None)
    row = await _row(bench, run)
    said.append(f"everything was counted, the stop was lifted, and the same case was taken: {_end(row)}")
    return _view("stop", held=refused and row["workflow"]["state"] == "COMPLETED", said=said)


def _view(what: str, *, held: bool, said: Sequence[str]) -> Demonstrated:
    return Demonstrated.model_validate({"what": what, "held": held, "said": tuple(said)})


async def _row(bench: Bench, run: Run) -> Row:
    return (await _read(bench, run.workflow_ids[0]))[0]


async def _read(bench: Bench, workflow_id: UUID) -> tuple[Row, Row]:
    async with bench.pool.connection() as connection:
        found = await handover.read(connection, workflow_id)
    if found is None:
        raise LookupError(str(workflow_id))
    return found


async def _provider(place: Opened) -> Provider:
    return await trial_tools.read(assembly.auditor_dsn(place.parts, Side.TOOLS))


def _said_of(row: Row, tool: str) -> list[str]:
    """Tell of each request in the call of a tool how it ended, in the order in which they left."""
    steps = {one["step"] for one in row["attempts"] if one["tool"] == tool and one["purpose"] == "call"}
    return [f"{one['tool']} ({one['purpose']}) {one['outcome']}" for one in row["attempts"] if one["step"] in steps]


def _key_of(provider: Provider, run: Run, tool: str) -> str | None:
    tasks = {str(one) for one in run.workflow_ids}
    return next((one.idempotency_key for one in provider.calls if one.task_id in tasks and one.tool == tool), None)


def _end(row: Row) -> str:
    return f"{row['workflow']['state']}, {row['workflow']['reason']}"


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _by() -> By:
    return By("demonstration", str(os.getuid()), None)
