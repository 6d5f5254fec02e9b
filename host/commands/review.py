"""`review` and `compensate`: what a named operator does with a case that was handed over, or that is being undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from rich.console import Console

from host.commands.approve import desk_of
from host.commands.exits import CommandError, Exit
from host.commands.lookup import found_id
from host.commands.operators import operator_of
from host.commands.output import command, console, write_json
from host.commands.possible import or_what_is_possible
from host.commands.stop import read_reason
from host.commands.workplace import working
from host.domain.acting import By
from host.domain.principals import Act, Operator
from host.engine import review as engine
from host.engine.approve import Desk, load_case
from host.engine.look import Known
from host.engine.review import Looked
from host.engine.wake import queue_app, waker
from host.settings import Settings
from host.views import Reviewed
from shared_contracts.base import dump
from shared_contracts.printed import plain
from shared_contracts.tools import TOOLS

ReviewAct = Literal["adopt", "compensate", "close"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An act as it was typed."""

    name: str
    act: ReviewAct
    by: str
    reason: str
    accept_unknown: bool


async def review(settings: Settings, wanted: Wanted, *, as_json: bool) -> Exit:
    """Do it; gives the exit code."""
    operator, by = operator_of(settings, wanted.by, Act.REVIEW)
    reason = _reason(wanted)
    async with desk_of(settings) as desk:
        workflow_id = await found_id(desk.pool, wanted.name)
        async with or_what_is_possible(settings, desk.pool, workflow_id):
            await _covered(desk, workflow_id, operator)
            await _act(desk, workflow_id, wanted, by, reason)
    looked = await _adopt(settings, workflow_id, by) if wanted.act == "adopt" else None
    return await _tell(settings, Reviewed(
        workflow_id=workflow_id,
        act=wanted.act,
        by=operator.name,
        effect=None if looked is None else looked.effect.name,
        known=None if looked is None else looked.known.value,
        state=await _state(settings, workflow_id),
    ), as_json=as_json)  # fmt: skip


async def _act(desk: Desk, workflow_id: UUID, wanted: Wanted, by: By, reason: str) -> None:
    """Do what needs no tool server; raises NotPossibleError."""
    match wanted.act:
        case "close":
            await engine.close(desk, workflow_id, by, reason, accept_unknown=wanted.accept_unknown)
        case "compensate":
            await engine.order_compensation(desk, workflow_id, by, reason, TOOLS)
        case "adopt":
            return


def _reason(wanted: Wanted) -> str:
    """Give the reason; raises CommandError where one is needed, or this is none."""
    return "" if wanted.act == "adopt" else read_reason(wanted.reason, f"{wanted.act} needs its reason")


async def _adopt(settings: Settings, workflow_id: UUID, by: By) -> Looked:
    async with working(settings) as place:
        from host import wiring  # here, since it brings the protocol's client along

        async with wiring.driver(settings, place.links) as driver:
            queue = queue_app(place.links.dsn)
            pool = driver.parts.pool
            async with queue.open_async(), or_what_is_possible(settings, pool, workflow_id):
                return await engine.adopt(driver.parts, workflow_id, by, waker(queue))


async def _state(settings: Settings, workflow_id: UUID) -> str:
    async with desk_of(settings) as desk:
        return (await load_case(desk, workflow_id)).task.state


_SAID: dict[str, str] = {
    Known.VERIFIED: "is there as it was asked for",
    Known.WRONG: "is there, and is not what was asked for: everything is stopped; have it undone",
    Known.REJECTED: "was refused: nothing was made",
    Known.ABSENT: "was never made, and cannot be any more",
    Known.UNKNOWN: "nobody can tell yet; try again, or find out by hand",
}


async def _tell(settings: Settings, done: Reviewed, *, as_json: bool) -> Exit:
    adopted = done.act == "adopt" and done.state != "NEEDS_REVIEW"
    code = Exit.DONE if done.act != "adopt" or adopted else Exit.NEEDS_REVIEW
    if as_json:
        write_json(dump(done))
        return code
    to = console()
    if done.known is not None:
        to.print(f"{done.effect}: {_SAID[done.known]}", soft_wrap=True)
    match done.act:
        case "close":
            to.print(f"closed by {plain(done.by)}; the case stays in {done.state}")
        case "compensate":
            to.print(f"ordered by {plain(done.by)}: what the case has made is undone within its time")
        case _:
            to.print(f"the case is in {done.state}")
    if done.act == "compensate" or (adopted and done.state != "COMPLETED"):
        _go_on(to, settings, done.workflow_id)
    return code


async def release_one(settings: Settings, name: str, by: str, *, as_json: bool) -> None:
    """Let one case be undone under a stop."""
    operator, acting = operator_of(settings, by, Act.COMPENSATE)
    async with desk_of(settings) as desk:
        workflow_id = await found_id(desk.pool, name)
        async with or_what_is_possible(settings, desk.pool, workflow_id):
            state = await _covered(desk, workflow_id, operator)
            await engine.release(desk, workflow_id, acting)
    done = Reviewed(
        workflow_id=workflow_id, act="release", by=operator.name, effect=None, known=None, state=state
    )  # fmt: skip
    if as_json:
        write_json(dump(done))
        return
    to = console()
    to.print(f"let through by {plain(operator.name)}: the case is undone under the stop, and nothing else goes on")
    _go_on(to, settings, workflow_id)


def _go_on(to: Console, settings: Settings, workflow_id: UUID) -> None:
    """Say what drives it on; the command is not broken, so that it can be copied."""
    go_on = command(settings, "run", str(workflow_id))
    to.print(f"a worker takes it, or: {go_on}", style="dim", soft_wrap=True)


async def _covered(desk: Desk, workflow_id: UUID, operator: Operator) -> str:
    """Give where the case stands; raises CommandError where it is not this operator's to act on."""
    task = (await load_case(desk, workflow_id)).task
    if not operator.covers(task.tenant_id):
        what = f"{operator.name} acts on the cases of {operator.tenant_id} alone"
        raise CommandError(Exit.BAD_INPUT, what, "Nothing was changed.")
    return task.state
