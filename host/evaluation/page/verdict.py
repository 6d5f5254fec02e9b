"""What stands around the pictures: the gate's answer, of what versions it is, and what all of it does not show.

Invariant: the answer is the gate's own; nothing is decided here, and nothing that the gate found is left out unsaid.
"""

from __future__ import annotations

from collections.abc import Mapping

from host.evaluation.documents import Claim, GateView, Shown
from host.evaluation.gate import named
from host.evaluation.page.cells import IDS_MAX, joined, linked, number, text
from host.handover.blocks import Cell, Note, Pairs, Table, Verbatim, at
from shared_contracts.evaluation_report import NO_MODEL, EvaluationReport

Blocks = tuple[Note | Pairs | Table, ...]
Places = Mapping[str, str]
SEVERE_MAX = 200
_WORDS = {True: "yes", False: "no", None: "not said"}
_FAULTS = {True: "shown", False: "not so", None: "not tried"}
_SIGNED = Note("Whether its report is the one that was signed is not looked at for this page: kessai eval gate does.")


def verdict(report: EvaluationReport, view: GateView, places: Places) -> Blocks:
    """Give the gate's answer, and by what."""
    made = Pairs(
        (
            ("made at", at(report.made_at)),
            ("what was run", text(named(report.scope))),
            ("build", text(report.build)),
            ("cases", number(len(report.cases))),
            ("seconds", number(report.seconds)),
        )
    )
    rows = tuple(
        (one.condition.value, "held" if one.held else "failed", text(one.said), number(len(one.ids)))
        for one in view.conditions
    )
    conditions = Table(("condition", "", "known by", "ids"), rows, "")
    return (_SIGNED, made, conditions, *_broken(view, places), *_refused(view), *_severe(view, places), *_faults(view))


def versions(report: EvaluationReport) -> Blocks:
    """Give what the report is of: two reports with another version of any part are two series."""
    of = report.conditions
    named = {
        "workflow release": of.workflow_release, "rules": of.policy, "rights": of.authz, "orders": of.order_snapshot,
        "planner": of.planner, "model": of.model, "changed part": of.changed_component,
        "cases' SHA-256": of.dataset_sha256, "seed": str(of.seed), "at a time": str(of.concurrency),
    }  # fmt: skip
    tools = tuple((text(tool), text(version)) for tool, version in sorted(of.tools.items()))
    limits = report.limits
    told = f"{limits.calls} calls, {limits.refused_proposals} refused proposals, {limits.active_seconds:g} s at work"
    pairs: tuple[tuple[Cell, Cell], ...] = tuple((name, text(value)) for name, value in named.items())
    return (Pairs((*pairs, ("limits", Verbatim(told)))), Table(("tool", "contract"), tools, "No tool is named."))


def both_sides(report: EvaluationReport) -> Blocks:
    """Give the three-way comparison, the contract tests and the stops."""
    of = report.compared
    sides = (("untracked", of.untracked), ("missing", of.missing), ("duplicate", of.duplicate))
    rows = tuple((kind, number(len(ids)), joined(ids)) for kind, ids in sides)
    tests = tuple(
        (text(one.tool), text(one.version), text(one.build), number(one.passed), number(one.of))
        for one in report.contract_tests
    )
    stops = tuple((text(one.cause), text(one.reason), text(str(one.workflow_id or ""))) for one in report.stops)
    return (
        Note("The host's ledger, the tool server's log and its business tables, held against each other by id."),
        Pairs((("compared", number(of.compared)), ("of other hosts", number(of.external)))),
        Table(("", "how many", "ids"), rows, ""),
        Table(
            ("contract tests of", "contract", "build", "passed", "of"),
            tests,
            "No contract test was run beside this evaluation.",
        ),
        Table(("what stopped all work", "why", "workflow"), stops, "Nothing stopped."),
        Pairs((("stopped at the end", joined(report.stopped)),)),
    )


def not_shown(report: EvaluationReport, view: GateView) -> Blocks:
    """Say what does not follow from it."""
    of = report.conditions
    model = (
        f"Nothing about any model: {of.planner} asks none. No number here says how a model would do."
        if of.model == NO_MODEL
        else f"Nothing about another model than {of.model}, nor about how it answers on another day."
    )
    whose = (
        "assumptions of this program, since none were given" if report.rates.basis == "assumed"
        else "settings of whoever evaluates"
    )  # fmt: skip
    rows = (
        model,
        f"Nothing about what it costs: the rates are {whose}, not measurements.",
        "Nothing about a shop's own systems and load: orders, tools, mail and approvers were the evaluation's own.",
        "Nothing about how long it takes elsewhere: seconds are of the machine that it ran on.",
        "Nothing about other requests than these: a rate is of these cases and not of those to come.",
    )
    return (*(Note(row) for row in rows), _claims(view.claims))


def _claims(claims: tuple[Claim, ...]) -> Table:
    def told(of: Shown) -> Cell:
        return text(f"{_WORDS[of.shown]}: {of.said}")

    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (one.subject.replace("_", " "), *map(told, (one.code_exists, one.contract_test_passes, one.live_system_tried)))
        for one in claims
    )
    return Table(("three conclusions about", "code exists", "contract test passes", "live system tried"), rows, "")


def _broken(view: GateView, places: Places) -> Blocks:
    broken = [one for one in view.conditions if not one.held]
    rows = tuple((one.condition.value, linked(id_, places)) for one in broken for id_ in one.ids[:IDS_MAX])
    more = sum(max(0, len(one.ids) - IDS_MAX) for one in broken)
    told = (Note(f"{more} more ids are not listed here; kessai eval gate has them all."),) if more else ()
    return (Table(("broken", "by"), rows, "No condition is broken."), *told)


def _refused(view: GateView) -> Blocks:
    rows = tuple((one.code, text(one.said), joined(one.ids)) for one in view.refused)
    return (Table(("refused", "because", "ids"), rows, "The report proves enough to be decided on."),)


def _faults(view: GateView) -> Blocks:
    rows = tuple(
        (one.what.replace("_", " "), _FAULTS[one.shown], text(one.said), joined(one.ids)) for one in view.faults_show
    )
    return (Table(("what the faults show", "", "by", "ids"), rows, "Nothing was done to any case."),)


def _severe(view: GateView, places: Places) -> Blocks:
    rows = tuple((linked(one.id, places), text(one.code), text(one.said)) for one in view.severe[:SEVERE_MAX])
    more = len(view.severe) - SEVERE_MAX
    told = (Note(f"{more} more severe findings are not listed here."),) if more > 0 else ()
    return (Table(("case", "severe", "seen"), rows, "Nothing severe was found."), *told)
