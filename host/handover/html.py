"""Sections as one HTML page that needs nothing beside itself: no script, no style, font or picture from elsewhere.

Invariant: every letter that is not this file's own passes through `escape`; the policy in the head forbids the rest.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape

from host.handover.blocks import Cell, Link, Note, Pairs, Section, Table, Verbatim
from host.handover.markdown import shown

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --line: #ccc; --head: #f0f0f0; --link: #0b57d0; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #161616; --ink: #eee; --line: #555; --head: #2a2a2a; --link: #8ab4f8; }
}
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
body { color: var(--ink); background: var(--paper); } a { color: var(--link); }
h1 { font-size: 1.4rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; margin: .75rem 0; } .wide { overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .25rem .5rem; text-align: left; vertical-align: top; }
th { background: var(--head); font-weight: 600; } code { font-family: ui-monospace, monospace; font-size: .85em; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dd { margin: 0; }
@media (max-width: 45rem) { dl { display: block; } }
@media print { body { margin: 0; max-width: none; } .wide { overflow: visible; } }
"""


def html(title: str, parts: tuple[Section, ...]) -> str:
    """Write a page."""
    return page(title, "\n".join(_section(part) for part in parts))


def page(title: str, body: str, style: str = "") -> str:
    """Put a body of our own making under its title. The browser is told to take this one style and nothing else."""
    style = _STYLE + style
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _section(part: Section) -> str:
    return (
        f"<section>\n<h2>{escape(part.title)}</h2>\n{''.join(block(one, part.title) for one in part.blocks)}</section>"
    )


def block(one: Note | Pairs | Table, label: str) -> str:
    """Write what stands under a title; a table that is too wide is moved by keys too, and read out under its label."""
    match one:
        case Note(text):
            return f"<p>{escape(shown(text))}</p>\n"
        case Pairs(rows):
            inner = "\n".join(f"<dt>{_cell(name)}</dt><dd>{_cell(value)}</dd>" for name, value in rows)
            return f"<dl>\n{inner}\n</dl>\n"
        case Table(head, rows, none):
            if not rows:
                return f"<p>{escape(none)}</p>\n"
            heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
            lines = "\n".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
            inner = f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{lines}\n</tbody>"
            wide = f'<div class="wide" tabindex="0" role="region" aria-label="{escape(shown(label))}">'
            return f"{wide}<table>\n{inner}\n</table></div>\n"


def _cell(cell: Cell) -> str:
    text = escape(shown(cell))
    match cell:
        case Verbatim():
            return f"<code>{text}</code>"
        case Link(place=place):
            return f'<a href="#{escape(place)}">{text}</a>'
        case str():
            return text
