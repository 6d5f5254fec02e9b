"""Two evaluations, before a change and after it: what it mended, and what it broke.

Invariant: only what was run under equal conditions is compared, with one part changed; and what got worse is never
outweighed by what got better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from host.evaluation.counted import Rate
from host.evaluation.documents import CompareView, Comparison, Difference, Side, Unmatched, Verdict
from host.evaluation.gate import gate, incidents, rescored, unaccounted
from host.evaluation.groups import groups
from host.evaluation.metrics import matched, rate, rates
from shared_contracts.evaluation_report import Component, Conditions, Entry, EvaluationReport

# approvals: a run that asks a person less often is another series, whatever was changed to make it so
SAME = ("dataset_sha256", "seed", "concurrency", "order_snapshot", "policy", "authz", "approvals")
# what no case shows, and is worse all the same where it was not so before
_BESIDE = frozenset({"stop_unasked", "stop_engaged", "nothing_compared", "compared_too_little", "contract_test_failed"})
NOTICE_TOOLS = frozenset({"send_return_notice", "send_correction_notice", "find_notice"})
SAID: dict[Verdict, str] = {
    "fixed": "every case that had failed is as expected now, and nothing is worse",
    "partly_fixed": "some of the cases that had failed are as expected now, and nothing is worse",
    "no_effect": "nothing that had failed is mended: do not stack another change on this one; go back to the last"
    " workflow release whose evaluation passed, and change one part from there",
    "regression": "something is worse than before, whatever else was mended: do not release it",
}
NOTHING_FAILED = "nothing had failed before, so there was nothing to mend; nothing is worse"
REFUSED = "not compared: the two were not run under equal conditions, with one part changed"


def compare(before: EvaluationReport, after: EvaluationReport) -> CompareView:
    """Compare two reports; says why it does not where they cannot be."""
    old, new = rescored(before), rescored(after)
    refused = tuple(differences(before, after))
    comparison = None if refused else _compared(old, new, unaccounted(after.compared), tuple(_beside(before, after)))
    return CompareView(
        refused=refused,
        changed_component=after.conditions.changed_component,
        before=_side(before, old),
        after=_side(after, new),
        comparison=comparison,
        said=REFUSED if comparison is None else _said(comparison),
    )


def _beside(before: EvaluationReport, after: EvaluationReport) -> Iterator[str]:
    """Say what got worse beside the cases, each kind for itself: less of one makes nothing of another good."""
    known = {one.code: len(one.ids) for one in gate(before).refused}
    for one in gate(after).refused:
        if one.code in _BESIDE and len(one.ids) > known.get(one.code, -1):
            yield f"{one.code}: {one.said}"
    for kind in ("untracked", "missing", "duplicate"):
        was, now = (len(getattr(one.compared, kind)) for one in (before, after))
        if now > was:
            yield f"{kind}: {now} by the three-way comparison, {was} before"


def _compared(
    old: Sequence[Entry], new: Sequence[Entry], stray: tuple[str, ...], beside: tuple[str, ...]
) -> Comparison:
    chosen = groups(old)
    by_id = {entry.id: entry for entry in new}
    severe, known = incidents(new), {(one.id, one.code) for one in incidents(old)}
    fresh = tuple(one for one in severe if (one.id, one.code) not in known)
    broken = tuple(by_id[one] for one in (*chosen.neighbours, *chosen.controls) if not matched(by_id[one]))
    fixed, neighbours, controls = (_good(ids, by_id) for ids in (chosen.failed, chosen.neighbours, chosen.controls))
    return Comparison(
        groups=chosen,
        fixed=fixed,
        neighbours=neighbours,
        control_regression=rate(controls.n - controls.of, controls.n),
        severe=severe,
        new=fresh,
        worse=tuple(Unmatched(id=entry.id, problems=entry.problems) for entry in broken),
        unaccounted=stray,
        beside=beside,
        verdict=_verdict(fixed, worse=bool(broken or fresh or beside)),
    )


def _said(made: Comparison) -> str:
    nothing = made.verdict == "no_effect" and not made.groups.failed
    return NOTHING_FAILED if nothing else SAID[made.verdict]


def _verdict(fixed: Rate, *, worse: bool) -> Verdict:
    if worse:
        return "regression"
    if fixed.of == 0:
        return "no_effect"
    return "fixed" if fixed.of == fixed.n else "partly_fixed"


def _good(ids: tuple[str, ...], by_id: dict[str, Entry]) -> Rate:
    return rate(sum(matched(by_id[one]) for one in ids), len(ids))


def _side(report: EvaluationReport, entries: Sequence[Entry]) -> Side:
    return Side(
        made_at=report.made_at,
        build=report.build,
        workflow_release=report.conditions.workflow_release,
        matched=rates(entries).matched,
    )


def differences(before: EvaluationReport, after: EvaluationReport) -> Iterator[Difference]:
    """Find what is not equal and has to be, and what makes the change more than one."""
    old, new = before.conditions, after.conditions
    for name in SAME:
        yield from _differs(name, getattr(old, name), getattr(new, name))
    if after.made_at < before.made_at:  # the other way round what was broken reads as mended
        yield from _differs("the report before is the later one", before.made_at, after.made_at)
    yield from _differs("limits", before.limits.model_dump_json(), after.limits.model_dump_json())
    yield from _cases(before.cases, after.cases)
    yield from _changed(old, new)


def _differs(what: str, before: object, after: object) -> Iterator[Difference]:
    if before != after:
        yield Difference(what=what, before=str(before), after=str(after), ids=())


def _cases(before: Sequence[Entry], after: Sequence[Entry]) -> Iterator[Difference]:
    old, new = {entry.id: entry for entry in before}, {entry.id: entry for entry in after}
    for name, entries, known in (("before", before, old), ("after", after, new)):
        if len(entries) != len(known):
            yield Difference(what=f"cases {name} are not told apart", before="", after="", ids=())
    only = tuple(sorted(set(old) ^ set(new)))
    if only:
        yield Difference(what="cases", before=f"{len(old)}", after=f"{len(new)}", ids=only)
    for what, members in (("fault_positions", {"fault"}), ("expectations", {"category", "expected", "decision"})):
        asked = {
            one: tuple(side[one].model_dump_json(include=members) for side in (old, new)) for one in old if one in new
        }
        ids = tuple(one for one, (was, is_now) in asked.items() if was != is_now)
        if ids:
            yield Difference(what=what, before=asked[ids[0]][0], after=asked[ids[0]][1], ids=ids)


def _changed(old: Conditions, new: Conditions) -> Iterator[Difference]:
    """The one part that was changed may show in its own version, and nothing else may."""
    part = new.changed_component
    if part is None:
        yield Difference(what="changed_component", before="", after="none named", ids=())
    tools = tuple(sorted(n for n in {*old.tools, *new.tools} if old.tools.get(n) != new.tools.get(n)))
    if tools and not _may(part, tools):
        yield Difference(what="tools", before=_versions(old, tools), after=_versions(new, tools), ids=tools)
    if part != "planner":
        yield from _differs("planner", old.planner, new.planner)
        yield from _differs("model", old.model, new.model)


def _may(part: Component | None, tools: tuple[str, ...]) -> bool:
    return len(tools) == 1 if part == "tool" else part == "notification" and set(tools) <= NOTICE_TOOLS


def _versions(conditions: Conditions, tools: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {conditions.tools.get(name, 'none')}" for name in tools)
