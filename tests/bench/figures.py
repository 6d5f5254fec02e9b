"""What a bench found, each figure beside what it must reach, as a table for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

Sense = Literal["≤", "≥", "="]


@dataclass(frozen=True)
class Figure:
    """`value` is what is compared; for CPU it was scaled to a quiet machine, and `raw` is what was measured."""

    name: str
    value: float
    unit: str = ""
    sense: Sense | None = None
    bound: float | None = None
    raw: float | None = None

    def met(self) -> bool | None:
        """Tell whether the figure reaches its bound; None where it has none."""
        match self.sense:
            case "≤":
                return self.bound is not None and self.value <= self.bound
            case "≥":
                return self.bound is not None and self.value >= self.bound
            case "=":
                return self.value == self.bound
            case None:
                return None


def table(title: str, figures: Sequence[Figure]) -> Table:
    """Write the figures for people."""
    shown = Table("measure", "value", "must be", "", "as measured", title=title, title_justify="left")
    for column in shown.columns[1:3]:
        column.justify = "right"
    for figure in figures:
        bound = "" if figure.bound is None else f"{figure.sense} {_number(figure.bound)}"
        mark = {True: "yes", False: "NO", None: ""}[figure.met()]
        raw = "" if figure.raw is None else f"{_number(figure.raw)} {figure.unit}"
        shown.add_row(figure.name, f"{_number(figure.value)} {figure.unit}".rstrip(), bound, mark, raw)
    return shown


def as_json(machine: dict[str, Any], figures: Sequence[Figure]) -> dict[str, Any]:
    """Give the figures for programs."""
    return {"machine": machine, "figures": [asdict(figure) | {"met": figure.met()} for figure in figures]}


def show(title: str, figures: Sequence[Figure]) -> None:
    """Print the table, as wide as it is."""
    Console(width=130).print(table(title, figures))


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"
