"""What a person can do with a case as it stands: one table from facts to commands. Pure.

Invariant: whatever is listed is an act that the state allows; looking comes last and is always there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from shared_contracts.handover import Possible


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides. No defaults: whoever asks says each of them."""

    reviewed: bool  # a person has it
    closed: bool  # and has said why it stays as it is
    over: bool  # the engine's part is over
    waits: bool  # for an approval
    compensates: bool  # something is to be undone
    released: bool  # and may be, although work is stopped
    stopped: bool  # in any way that keeps an open case from going on
    halted: bool  # updates or reads are, without which nothing is undone
    held: bool  # since a stop, which may have been lifted, until it is released
    made: bool  # an effect that is not proved absent
    in_doubt: bool  # one that nobody knows the outcome of
    adoptable: bool  # one that may be found as it was asked for, or was
    undoable: bool  # one that stands, and that a contract undoes


@dataclass(frozen=True, slots=True)
class Way:
    """One row: when it is possible, the command without the case's id, what it does."""

    applies: Callable[[Facts], bool]
    command: str
    does: str


WAYS: tuple[Way, ...] = (
    Way(
        lambda f: f.reviewed and f.adoptable,
        "kessai review {id} adopt --as NAME",
        "looks by its key for what was made; where it is as it was asked for, the case goes on from it",
    ),
    Way(
        lambda f: f.reviewed and f.undoable and not f.in_doubt,
        "kessai review {id} compensate --as NAME --reason TEXT",
        "orders that what stands outside is undone, within its deadline",
    ),
    Way(
        lambda f: f.reviewed and not f.closed and not f.in_doubt,
        "kessai review {id} close --as NAME --reason TEXT",
        "leaves the case as it is, with the reason, and takes it out of the exception queue",
    ),
    Way(
        lambda f: f.reviewed and not f.closed and f.in_doubt,
        "kessai review {id} close --as NAME --reason TEXT --accept-unknown",
        "the same although nobody knows what became of an effect; look for it first",
    ),
    Way(
        lambda f: (f.closed or (f.over and not f.reviewed)) and not f.made,
        "kessai reapply {id}",
        "makes a new case of it, with the rules and prices of the day; approvals are asked for anew",
    ),
    Way(lambda f: f.waits, "kessai approve {id} --as NAME", "shows what would be done, asks, and signs a yes"),
    Way(lambda f: f.waits, "kessai deny {id} --as NAME --reason TEXT", "signs a no: the case ends, nothing is made"),
    Way(lambda f: f.waits, "kessai withdraw {id}", "takes the case back for its requester: it ends, nothing is made"),
    Way(
        lambda f: f.compensates and f.halted and not f.released,
        "kessai compensate {id} --as NAME",
        "lets this one case be undone although work is stopped",
    ),
    Way(
        lambda f: f.stopped and not f.over,
        "kessai resume --as NAME --reason TEXT",
        "lifts the stop once every effect has an outcome and nothing is left to be undone; cases then go on by parts",
    ),
    Way(
        lambda f: f.held and not f.stopped,
        "kessai resume --state {state} --limit N --as NAME --reason TEXT",
        "lets the oldest cases that are held in this state go on",
    ),
    Way(lambda _: True, "kessai show {id}", "shows the whole record"),
    Way(lambda _: True, "kessai explain {id} --all", "answers what happened, call by call"),
)


def possible(facts: Facts, workflow_id: UUID, state: str) -> tuple[Possible, ...]:
    """List the commands that the case can take."""
    return tuple(
        Possible(command=way.command.format(id=workflow_id, state=state), does=way.does)
        for way in WAYS
        if way.applies(facts)
    )
