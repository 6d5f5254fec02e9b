"""What an order to the nursery may say of a program's commits, and how a place among them is written. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AT, BY, TRACE = "at", "by", "trace"
LINK = "maildir_link"  # a mail that appears
# what seals the record beside every path, at no set place of it; a killed sealer has tests of its own
SEALS = frozenset(
    f"{of}{name}" for of in ("", "calls.") for name in ("seal_batch", "sign_head", "newest_head", "witness_head")
)
When = Literal["before", "after"]
Victim = Literal["worker", "tool_server", "command"]
SIDES: tuple[When, When] = ("before", "after")


WORKER: Victim = "worker"
SERVER: Victim = "tool_server"
COMMAND: Victim = "command"


@dataclass(frozen=True, slots=True)
class Boundary:
    """The n-th commit of that name in a process's life."""

    name: str
    n: int

    def __str__(self) -> str:
        """As a report has it."""
        return f"{self.name} {self.n}"

    def order(self, when: When) -> dict[str, str]:
        """Let a process end on one side of it."""
        return {AT: f"{when} {self}"}


def said(order: dict[str, str]) -> str:
    """What a process writes to its log right before it ends so."""
    return f"{order.get(BY, 'SIGKILL')} {order[AT]}\n"
