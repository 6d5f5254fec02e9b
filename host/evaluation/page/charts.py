"""Numbers as SVG: stacked bars, a grid of squares, spans. Altair describes them, vl-convert draws them in this process.

Invariant: a picture holds no script, style, link or font; its colours are the page's variables, and so the page chooses
light or dark. The same numbers give the same bytes where the same fonts are installed: labels are measured by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import altair as alt
import vl_convert

from host.evaluation.page.spread import Spread
from host.handover.markdown import shown

WIDTH, ROW, LABEL_MAX = 560, 30, 40
INK, LINE, PAPER = "var(--ink)", "var(--line)", "var(--paper)"
_ROOT = re.compile(r'<svg [^>]*?width="(\d+)" height="(\d+)" viewBox="([^"]+)">')


class Name(NamedTuple):
    """What a picture is called in its page, its title, and what it says to whoever does not see it."""

    ident: str
    title: str
    told: str


class Square(NamedTuple):
    """One place of a grid; `held`: all of it, some of it, or there is nothing."""

    row: str
    column: str
    text: str
    held: bool | None


def bars(name: Name, rows: Sequence[tuple[str, Sequence[float]]], parts: Mapping[str, str], axis: str) -> str:
    """Draw a bar per row, in parts that each have their colour, with the sum at its end."""
    named = [(label(row), values) for row, values in rows]
    data = [
        {"row": row, "part": part, "order": n, "value": value}
        for row, values in named
        for n, (part, value) in enumerate(zip(parts, values, strict=True))
    ]
    sums = [{"row": row, "value": sum(values)} for row, values in named]
    scale = _from_zero(sum(values) for _, values in named)
    y = alt.Y("row:N", sort=[row for row, _ in named], title=None)
    x = alt.X("value:Q", title=axis, axis=alt.Axis(format=",.2f", tickMinStep=1), scale=scale)
    colour = alt.Color(
        "part:N",
        scale=alt.Scale(domain=list(parts), range=list(parts.values())),
        legend=alt.Legend(title=None, orient="top") if len(parts) > 1 else None,
    )
    stack = alt.Chart(alt.InlineData(values=data)).mark_bar(stroke=PAPER, strokeWidth=1)
    drawn = stack.encode(x=x, y=y, color=colour, order=alt.Order("order:Q"))
    at_end = alt.Chart(alt.InlineData(values=sums)).mark_text(align="left", dx=4, color=INK)
    text = at_end.encode(x=alt.X("value:Q"), y=y, text=alt.Text("value:Q", format=",.2f"))
    return _svg(name, alt.LayerChart(layer=[drawn, text]), len(named))


def grid(name: Name, squares: Sequence[Square]) -> str:
    """Draw a place per row and column, with what stands there written in it: the colour says nothing alone."""
    kinds = {True: "all", False: "not all", None: "no case"}
    data = [{"row": s.row, "column": s.column, "text": s.text, "held": kinds[s.held]} for s in squares]
    rows, columns = list(dict.fromkeys(s.row for s in squares)), list(dict.fromkeys(s.column for s in squares))
    x = alt.X("column:N", sort=columns, title=None, axis=alt.Axis(orient="top", labelAngle=0, domain=False))
    y = alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(domain=False))
    scale = alt.Scale(domain=list(kinds.values()), range=["var(--good)", "var(--bad)", "var(--none)"])
    chart = alt.Chart(alt.InlineData(values=data)).encode(x=x, y=y)
    colour = alt.Color("held:N", scale=scale, legend=alt.Legend(title="held in", orient="top"))
    filled = chart.mark_rect(stroke=PAPER, strokeWidth=2).encode(color=colour)
    text = chart.mark_text(color="var(--on)").encode(text="text:N")
    return _svg(name, alt.LayerChart(layer=[filled, text]), len(rows))


def spans(name: Name, rows: Sequence[tuple[str, Spread]], axis: str) -> str:
    """Draw for each row a line from the least to the most, a bar over its middle half, and a stroke at its middle."""
    data = [{"row": label(row), **spread._asdict()} for row, spread in rows]
    y = alt.Y("row:N", sort=[one["row"] for one in data], title=None)
    x = alt.X("low:Q", title=axis, scale=_from_zero(one.high for _, one in rows))
    chart = alt.Chart(alt.InlineData(values=data)).encode(y=y)
    whole = chart.mark_rule(color=INK).encode(x=x, x2="high:Q")
    half = chart.mark_bar(color="var(--blue)", height=12).encode(x="quarter:Q", x2="three_quarters:Q")
    middle = chart.mark_tick(color=INK, thickness=3, height=18).encode(x="middle:Q")
    return _svg(name, alt.LayerChart(layer=[whole, half, middle]), len(data))


def label(text: str) -> str:
    """Shorten what comes from elsewhere, without the letters that are not to be seen."""
    seen = shown(text)
    return seen if len(seen) <= LABEL_MAX else f"{seen[: LABEL_MAX - 1]}…"


def _from_zero(values: Iterable[float]) -> alt.Scale:
    """Begin at nothing, also where there is nothing but that."""
    most = max(values, default=0)
    return alt.Scale(domain=[0, most if most > 0 else 1], nice=True)


def _svg(name: Name, chart: alt.LayerChart, rows: int) -> str:
    words: dict[str, Any] = {"labelColor": INK, "titleColor": INK}
    drawn = (
        chart.properties(width=WIDTH, height=max(rows, 1) * ROW, background="transparent")
        .configure(aria=False, font="sans-serif")
        .configure_view(stroke=None)
        .configure_axis(**words, gridColor=LINE, tickColor=LINE, domainColor=LINE, labelLimit=300, labelFontSize=12)
        .configure_legend(**words, labelFontSize=12, symbolStrokeWidth=0)
    )
    svg = vl_convert.vegalite_to_svg(drawn.to_dict())
    found = _ROOT.match(svg)
    if found is None:
        raise AssertionError("vl-convert begins a picture otherwise")
    return _root(name, *found.groups()) + svg[found.end() :]


def _root(name: Name, width: str, height: str, box: str) -> str:
    """Give the picture a name that a screen reader says; what is inside is read in the table beside it."""
    title, told = f"{name.ident}-title", f"{name.ident}-told"
    return (
        f'<svg role="img" aria-labelledby="{title} {told}" width="{width}" height="{height}" viewBox="{box}">'
        f'<title id="{title}">{escape(name.title)}</title><desc id="{told}">{escape(name.told)}</desc>'
    )
