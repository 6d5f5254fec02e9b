"""Sections as one HTML page that needs nothing beside itself: no script, no style, font or picture from elsewhere.

Invariant: every letter that is not this file's own passes through `escape`; the policy in the head forbids the rest.
"""

from __future__ import annotations

from html import escape

from host.handover.blocks import Cell, Note, Pairs, Section, Table, Verbatim
from host.handover.markdown import shown

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1b1b1b; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #bbb; }
table { border-collapse: collapse; margin: .75rem 0; } .wide { overflow-x: auto; }
th, td { border: 1px solid #ccc; padding: .25rem .5rem; text-align: left; vertical-align: top; }
th { background: #f0f0f0; font-weight: 600; } code { font-family: ui-monospace, monospace; font-size: .85em; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dd { margin: 0; }
@media (max-width: 45rem) { dl { display: block; } }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #eee; } th { background: #2a2a2a; } }
@media print { body { margin: 0; max-width: none; } .wide { overflow: visible; } }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html(title: str, parts: tuple[Section, ...]) -> str:
    """Write a page."""
    body = "\n".join(_section(part) for part in parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _section(part: Section) -> str:
    return f"<section>\n<h2>{escape(part.title)}</h2>\n{''.join(_block(block) for block in part.blocks)}</section>"


def _block(block: Note | Pairs | Table) -> str:
    match block:
        case Note(text):
            return f"<p>{escape(text)}</p>\n"
        case Pairs(rows):
            inner = "\n".join(f"<dt>{_cell(name)}</dt><dd>{_cell(value)}</dd>" for name, value in rows)
            return f"<dl>\n{inner}\n</dl>\n"
        case Table(head, rows, none):
            if not rows:
                return f"<p>{escape(none)}</p>\n"
            heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
            lines = "\n".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
            inner = f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{lines}\n</tbody>"
            return f'<div class="wide"><table>\n{inner}\n</table></div>\n'


def _cell(cell: Cell) -> str:
    text = escape(shown(cell))
    return f"<code>{text}</code>" if isinstance(cell, Verbatim) else text
