"""The documents about an evaluation as tables for people. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from host.commands.output import add, table
from host.evaluation.counted import Cost, Measures, PerItem, Rate, Rates
from host.evaluation.documents import CompareView, Comparison, GateView, Incident, Shown, Unmatched
from shared_contracts.evaluation_report import Conditions
from shared_contracts.printed import plain

_IDS_MAX = 12
_RATES = tuple(Rates.model_fields)


def gate(to: Console, view: GateView) -> None:
    """Show what the gate says, and by what."""
    _line(to, view.said, good=view.passed)
    _versions(to, view.versions, view.build)
    if view.refused:
        made = table("refused", "because", "ids", title="\nwhy the report proves too little")
        for refusal in view.refused:
            add(made, refusal.code, refusal.said, _ids(refusal.ids))
        to.print(made)
    made = table("condition", "", "known by", "ids", title="\nconditions")
    for one in view.conditions:
        add(made, one.condition.value, "held" if one.held else "failed", one.said, _ids(one.ids))
    to.print(made)
    _severe(to, view.severe, "severe: one of these fails everything")
    _differing(to, view.unmatched, "not as expected")
    _measures(to, view.measures)
    if view.faults_show:
        made = table("it", "", "by", "ids", title="\nwhat the faults show")
        for show in view.faults_show:
            word = {True: "shown", False: "not so", None: "not tried"}[show.shown]
            add(made, show.what.replace("_", " "), word, show.said, _ids(show.ids))
        to.print(made)
    _cost(to, view.cost)
    made = table("of", "code exists", "contract test passes", "live system tried", title="\nthree conclusions")
    for claim in view.claims:
        shown = (claim.code_exists, claim.contract_test_passes, claim.live_system_tried)
        add(made, claim.subject.replace("_", " "), *map(_shown, shown))
    to.print(made)


def compare(to: Console, view: CompareView) -> None:
    """Show what came of a change."""
    good = view.comparison is not None and view.comparison.verdict == "fixed"
    _line(to, view.said if view.comparison is None else f"{view.comparison.verdict}: {view.said}", good=good)
    made = table("report", "made at", "build", "release", "matched")
    for name, one in (("before", view.before), ("after", view.after)):
        add(made, name, one.made_at.isoformat(), one.build, one.workflow_release, _rate(one.matched))
    to.print(made)
    if view.refused:
        made = table("differs", "before", "after", "ids", title="\nnot equal")
        for difference in view.refused:
            add(made, difference.what, difference.before, difference.after, _ids(difference.ids))
        to.print(made)
    if view.comparison is not None:
        _comparison(to, view.comparison, view.changed_component or "")


def _comparison(to: Console, made: Comparison, changed: str) -> None:
    chosen = made.groups
    rows = table("group", "cases", "", title=f"\nafter the change of one part: {plain(changed)}")
    add(rows, "failed before", len(chosen.failed), f"{_rate(made.fixed)} fixed")
    add(rows, "neighbours", len(chosen.neighbours), f"{_rate(made.neighbours)} as expected")
    add(rows, "controls", len(chosen.controls), f"{_rate(made.control_regression)} worse")
    add(rows, "severe incidents", len(made.severe), f"{len(made.new)} of them new")
    add(rows, "unaccounted for", len(made.unaccounted), _ids(made.unaccounted))
    to.print(rows)
    _pair(to, "neighbours by", ", ".join((*chosen.states, *chosen.tools)) or "nothing: no case had failed")
    for one in made.beside:
        _pair(to, "worse beside the cases", one)
    _severe(to, made.new, "new severe incidents")
    _differing(to, made.worse, "worse than before")


def _line(to: Console, said: str, *, good: bool) -> None:
    to.print(Text(plain(said), style="bold green" if good else "bold red"), soft_wrap=True)


def _pair(to: Console, name: str, value: str) -> None:
    to.print(Text(f"{name}  ", style="dim"), Text(plain(value)), sep="", soft_wrap=True)


def _versions(to: Console, of: Conditions, build: str) -> None:
    told = {"build": build, "release": of.workflow_release, "rules": of.policy, "rights": of.authz}
    more = {"orders": of.order_snapshot, "planner": of.planner, "model": of.model, "seed": of.seed}
    _pair(to, "versions", " · ".join(f"{name} {value}" for name, value in (told | more).items()))
    _pair(to, "tools", " · ".join(f"{name} {version}" for name, version in sorted(of.tools.items())))


def _severe(to: Console, incidents: Iterable[Incident], title: str) -> None:
    rows = [(one.id, one.code, one.said) for one in incidents]
    _rows(to, ("case", "severe", "seen"), rows, title)


def _differing(to: Console, cases: Iterable[Unmatched], title: str) -> None:
    rows = [(case.id, one.code, one.said) for case in cases for one in case.problems]
    _rows(to, ("case", "problem", "seen"), rows, title)


def _rows(to: Console, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], title: str) -> None:
    if rows:
        made = table(*columns, title=f"\n{title}")
        for row in rows:
            add(made, *row)
        to.print(made)


def _measures(to: Console, of: Measures) -> None:
    made = table("cases", "n", *(name.replace("_", " ") for name in _RATES), title="\nrates: percent (of/n)")
    for name, n, these in (("all", of.n, of.rates), *((one.category.value, one.n, one.rates) for one in of.categories)):
        add(made, name, n, *_cells(these))
    to.print(made)
    made = table("state", "reached", "ended", "no further", "lost", title="\nhow far they came")
    for state in of.funnel:
        add(made, state.state, state.reached, state.ended, state.furthest, state.lost)
    to.print(made)
    made = table("fault", "n", "proved", "end", "effects", "retries", "compensation", "told", title="\nfaults")
    for row in of.faults:
        held = (row.proved, row.end, row.effects, row.retries, row.compensation, row.told)
        add(made, row.kind.value, row.n, *held)
    to.print(made)
    if of.handover_reasons:
        made = table("why a person has it", "cases", title="\nhandovers, the most frequent first")
        for reason in of.handover_reasons:
            add(made, reason.handover_reason or "none recorded", reason.cases)
        to.print(made)
    more = {"attempts beyond the first": of.retries, "engine's own reads": of.engine_reads}
    more |= {"undoing calls": of.undoing_calls, "refused proposals": of.refused_proposals}
    _pair(to, "calls", f"{of.calls} · " + " · ".join(f"{name} {n}" for name, n in more.items()))


def _cells(of: Rates) -> list[str]:
    return [_rate(getattr(of, name)) for name in _RATES]


def _rate(of: Rate | PerItem) -> str:
    """Show a rate with what it was counted from; of nothing there is none."""
    return f"{'none' if of.value is None else of.value} ({of.of}/{of.n})"


def _cost(to: Console, of: Cost) -> None:
    made = table(
        "component", "quantity", "", "rate", of.currency, "", title=f"\ncost, in minor units, by {of.basis} rates"
    )
    for part in of.parts:
        add(made, part.name, f"{part.quantity:g}", part.unit, f"{part.rate:g}", f"{part.cost:.2f}", part.said)
    add(made, "together", "", "", "", f"{of.total:.2f}", "")
    each = "none" if of.per_item is None else f"{of.per_item:.2f}"
    add(made, "per item", of.items, "rightly completed", "", each, "")
    to.print(made)


def _shown(one: Shown) -> str:
    word = {True: "yes", False: "no", None: "not said"}[one.shown]
    return f"{word}: {one.said}"


def _ids(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - _IDS_MAX} more" if len(ids) > _IDS_MAX else ""
    return ", ".join(ids[:_IDS_MAX]) + more
