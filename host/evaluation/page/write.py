"""A report of an evaluation as one page that needs nothing beside itself: the gate's answer, pictures, tables, cases.

Invariant: everything on it is computed from the report's entries when it is written, by what the gate decides with; the
same report gives the same page. What came from a case is escaped on its way, in tables and in pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from html import escape

from host.evaluation.gate import SCOPES, gate, rescored
from host.evaluation.page import cases
from host.evaluation.page.figures import Figure, figures
from host.evaluation.page.verdict import Blocks, both_sides, not_shown, verdict, versions
from host.handover.blocks import Note
from host.handover.html import block, page
from host.handover.markdown import shown
from shared_contracts.evaluation_report import Entry, EvaluationReport

BUILD_LETTERS = 12  # enough to tell builds apart; all of it stands below
_STYLE = """
:root { --good: #1a7f37; --bad: #bc4c00; --severe: #b00020; --blue: #0969da; --ochre: #8a5d00; --violet: #8250df; }
:root { --none: #656d76; --on: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --good: #3fb950; --bad: #f0883e; --severe: #ff7b72; --blue: #58a6ff; --ochre: #d29922; --violet: #bc8cff; }
  :root { --none: #8b949e; --on: #111; }
}
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; } figure { margin: 1rem 0; padding-left: 1rem; overflow-x: auto; }
svg { max-width: 100%; height: auto; overflow: visible; } td code { font-variant-numeric: tabular-nums; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; padding: 0; }
.answer { font-weight: 700; border: 2px solid; padding: .5rem .75rem; }
.passed { color: var(--good); } .failed { color: var(--severe); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
@media print {
  :root { --paper: #fff; --ink: #000; --line: #999; --head: #eee; --link: #000; --none: #656d76; --on: #fff; }
  :root { --good: #1a7f37; --bad: #bc4c00; --severe: #b00020; --blue: #0969da; --ochre: #8a5d00; --violet: #8250df; }
  body, svg, th { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } nav { display: none; }
}
"""


def write(report: EvaluationReport) -> str:
    """Write the page."""
    view, entries = gate(report), rescored(report)
    places = cases.places(entries)
    drawn = figures(view, entries)
    parts = (
        ("verdict", "Verdict", _blocks("Verdict", verdict(report, view, places))),
        ("not-shown", "What this report does not show", _blocks("Conclusions", not_shown(report, view))),
        *((one.name.ident, one.name.title, _figure(one)) for one in drawn),
        ("wrong", "Cases that are not as expected", _wrong(entries)),
        ("versions", "Versions and conditions", _blocks("Versions", versions(report))),
        ("sides", "Both sides compared", _blocks("Both sides", both_sides(report))),
        ("all", "All cases", _listed(entries)),
    )
    answer = "passed" if view.passed else "failed"
    links = "".join(f'<li><a href="#{ident}">{escape(title)}</a></li>' for ident, title, _ in parts)
    sections = "\n".join(
        f'<section aria-labelledby="{ident}">\n<h2 id="{ident}">{escape(title)}</h2>\n{inner}</section>'
        for ident, title, inner in parts
    )
    body = (
        f'<main>\n<p class="answer {answer}">{escape(shown(view.said))}</p>\n'
        f'<nav aria-label="Parts of this page"><ul>{links}</ul></nav>\n{sections}\n</main>'
    )
    return page(_title(report, passed=view.passed), body, _STYLE)


def _title(report: EvaluationReport, *, passed: bool) -> str:
    made = f"{report.made_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    word = "passed" if passed else "not passed"
    return f"Evaluation {SCOPES[report.scope]}, {made}, build {shown(report.build[:BUILD_LETTERS])}: {word}"


def _blocks(label: str, blocks: Blocks) -> str:
    return "".join(block(one, label) for one in blocks)


def _figure(of: Figure) -> str:
    svg = f"<figure>{of.svg}</figure>\n" if of.svg else ""
    return f"<p>{escape(of.name.told)}</p>\n{svg}{_blocks(of.name.title, of.beside)}"


def _wrong(entries: Sequence[Entry]) -> str:
    seen = cases.shown(entries)
    count = sum(bool(entry.problems) for entry in entries)
    more = f", of which {len(seen)} are shown; report.json holds the others" if count > len(seen) else ""
    said = f"{count} of {len(entries)} cases are not as expected{more}. Each says what was due and what was seen."
    told = said if count else f"None of the {len(entries)} cases."
    return _blocks("", (Note(told),)) + "".join(_case(entry, f"case-{n}") for n, entry in enumerate(seen, 1))


def _case(entry: Entry, place: str) -> str:
    blocks = (cases.found(entry), cases.beside(entry), cases.about(entry))
    return f'<h3 id="{place}">{escape(shown(entry.id))}</h3>\n{_blocks(entry.id, blocks)}'


def _listed(entries: Sequence[Entry]) -> str:
    more = len(entries) - cases.LISTED_MAX
    told = (Note(f"{more} more cases are not listed here; report.json holds them."),) if more > 0 else ()
    return _blocks("All cases", (*told, cases.listed(entries)))
