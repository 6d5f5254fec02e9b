"""What `kessai contract-test --json` prints: each update tool with its six tests and its checklist.

Invariant: a tool passed where every test and every item held; nothing else says so.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from shared_contracts.base import Contract, Label

Test = Literal[
    "normal", "extra_field", "permission_violation", "duplicate_execution", "ambiguous_failure", "post_condition",
]  # fmt: skip
ITEMS = 9


class Trial(Contract):
    """One of the six: whether it held, and what it is known by: ids and the tool server's counters."""

    name: Test
    held: bool
    said: str


class Item(Contract):
    """One of the nine of the checklist."""

    number: Annotated[int, Field(ge=1, le=ITEMS)]
    what: str
    held: bool
    said: str


class ToolTested(Contract):
    """One update tool under the contract that it was tested by."""

    tool: Label
    version: Label
    schema_digest: str
    passed: bool
    trials: Annotated[tuple[Trial, ...], Field(min_length=6, max_length=6)]
    items: Annotated[tuple[Item, ...], Field(min_length=ITEMS, max_length=ITEMS)]


class ContractTests(Contract):
    """`kessai contract-test`: passed where every tool that was asked for has; of which build, and when."""

    passed: bool
    made_at: AwareDatetime
    build: str
    tools: Annotated[tuple[ToolTested, ...], Field(min_length=1)]
