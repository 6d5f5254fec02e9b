"""Follow one workflow until it rests, and show its timeline. Everything that is shown was read from the database.

drive, while nobody else does ──► it rests: it ended, or waits for a person, or is halted by a stop
  ▲            │ waits for a timer, or another driver has it
  └────────────┘ look again
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from rich.console import Console
from rich.text import Text

from host.commands.output import COLOURS
from host.domain.control import ENDS, Control
from host.store import record as store
from host.store.errors import OneAtATimeError
from host.store.pool import Pool
from host.store.record import Moment, Position
from shared_contracts.printed import plain

LOOK_SECONDS = 0.05  # a step takes longer than that
FOLLOW_SECONDS = 0.25
ABANDONED_SECONDS = 6.0  # a worker's sweeper brings due work back within a second or two
NOT_ITS_TURN = "waits for its turn: after a stop one case is driven at a time"
STOPS = frozenset({"stopped", "stopped_reads"})
PERSONS = frozenset({"approval", "compensation"})  # a person's act ends the wait, or else the last moment for it


class Timeline:
    """Shows each checkpoint once, in order."""

    def __init__(self, pool: Pool, workflow_id: UUID, console: Console | None) -> None:
        """Begin before the first checkpoint; without a console nothing is shown."""
        self.pool, self.workflow_id, self.console = pool, workflow_id, console
        self._seq = 0

    async def show_new(self) -> None:
        """Show what was added since the last look."""
        if self.console is None:
            return
        async with self.pool.connection() as connection:
            moments = await store.timeline(connection, self.workflow_id, self._seq)
        for moment in moments:
            self.console.print(line(moment))
            self._seq = moment.seq

    async def show_while(self, work: Awaitable[Position]) -> Position:
        """Keep showing while the work lasts; the last checkpoints are shown after it."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await self.show_new()
                await asyncio.wait({task}, timeout=LOOK_SECONDS)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        await self.show_new()
        return task.result()

    def note(self, words: str) -> None:
        """Say between two checkpoints why none comes."""
        if self.console is not None:
            self.console.print(Text(f"{'':14}{words}", style="dim"))


def line(moment: Moment) -> Text:
    """Write a checkpoint: time, business state, control move, tool and attempt, event, evidence."""
    at = moment.at.astimezone().strftime("%H:%M:%S.%f")[:-3]
    move = f"{moment.control_from or '·'} → {moment.control_to}"
    attempt = f" #{moment.send}" if moment.send else ""
    tool = "" if moment.tool is None else f"{moment.tool}{attempt}"
    said = moment.reason if moment.reason == moment.event else f"{moment.event}: {moment.reason}"
    text = Text(f"{at}  ", style="")
    text.append(f"{moment.state:<16} ", style=COLOURS.get(moment.state, "bold"))
    text.append(f"{move:<31} ", style=COLOURS.get(moment.control_to, "dim"))
    text.append(f"{plain(tool):<24} ")
    text.append(f"{plain(said):<18} ", style="dim")
    text.append(plain(" ".join(moment.evidence)), style="dim")
    text.rstrip()
    return text


def rests(position: Position) -> bool:
    """Tell whether only a person, or nothing at all, moves it on."""
    if Control(position.control_state) in ENDS:
        return True
    if position.lease_owner is not None:  # in somebody's hand, or was when that driver died
        return False
    not_due = position.due_in_seconds is not None and position.due_in_seconds > 0
    return position.wake_reason is None or (position.wake_reason in PERSONS and not_due)


@dataclass(frozen=True, slots=True)
class Follower:
    """`drive` makes one drive; without it we only watch what others do."""

    timeline: Timeline
    drive: Callable[[], Awaitable[object]] | None

    async def to_rest(self) -> Position:
        """Go on until it rests, or is halted by a stop; when we only watch, what nobody drives is given up on."""
        noted: tuple[int, str | None, bool, bool] | None = None
        idle, driven = 0.0, self.drive is None
        tried = 0  # the version that the last drive found; one that it left as it was is not driven again
        while True:
            position = await self._position()
            if rests(position) or (driven and position.wake_reason in STOPS) or idle > ABANDONED_SECONDS:
                return position
            turn = True
            if self.drive is not None and _nobodys(position) and position.version != tried:
                try:
                    await self.drive()
                except OneAtATimeError:
                    turn = False
                else:
                    tried, driven = position.version, True
                    continue
            idle = idle + FOLLOW_SECONDS if turn and _nobodys(position) else 0.0
            now = (position.seq, position.wake_reason, position.leased, turn)
            if now != noted:
                await self.timeline.show_new()
                self.timeline.note(_why(position) if turn else NOT_ITS_TURN)
                noted = now
            due = position.due_in_seconds
            await asyncio.sleep(FOLLOW_SECONDS if due is None or due <= 0 else min(due, FOLLOW_SECONDS))

    async def _position(self) -> Position:
        async with self.timeline.pool.connection() as connection:
            found = await store.position(connection, self.timeline.workflow_id)
        if found is None:
            raise LookupError(f"workflow {self.timeline.workflow_id} is gone")
        return found


def _nobodys(position: Position) -> bool:
    """Tell whether it is due and nobody has it."""
    return not position.leased and (position.due_in_seconds is None or position.due_in_seconds <= 0)


def _why(position: Position) -> str:
    if position.leased:
        return f"another process drives it: {plain(position.lease_owner)}"
    due = position.due_in_seconds
    return f"waits {due:.1f} s: {plain(position.wake_reason)}" if due is not None and due > 0 else "waits for a driver"
