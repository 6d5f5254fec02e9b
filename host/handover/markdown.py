"""Sections as Markdown that reads well unrendered.

Invariant: nothing that came from outside can end its cell or be read as markup: it stands in a code span.
"""

from __future__ import annotations

from host.handover.blocks import Cell, Note, Pairs, Section, Table


def markdown(title: str, parts: tuple[Section, ...]) -> str:
    """Write a page."""
    return "\n\n".join((f"# {title}", *(_section(part) for part in parts))) + "\n"


def _section(part: Section) -> str:
    return "\n\n".join((f"## {part.title}", *(_block(block) for block in part.blocks)))


def _block(block: Note | Pairs | Table) -> str:
    match block:
        case Note(text):
            return text
        case Pairs(rows):
            return "\n".join(f"- {_cell(name)}: {_cell(value)}" for name, value in rows)
        case Table(head, rows, none):
            if not rows:
                return none
            lines = (head, tuple("---" for _ in head), *rows)
            return "\n".join(
                f"| {' | '.join(_cell(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines
            )


def _cell(cell: Cell) -> str:
    return cell if isinstance(cell, str) else f"`{shown(cell).replace('`', chr(39))}`"


def shown(cell: Cell) -> str:
    """Give the letters of a cell on one line, without those that move a cursor or turn the direction of writing."""
    text = cell if isinstance(cell, str) else cell.text
    return "".join(letter if letter.isprintable() else "�" for letter in " ".join(text.split()))
