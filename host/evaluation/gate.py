"""The gate before anything runs in front of a customer: six conditions, the severe rule, a report to be believed.

Invariant: nothing that a report says of itself is taken over: each case is scored again, each number computed again.
A report that proves too little is refused, however good what it does show looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from host.evaluation.codes import PROBLEMS, Code, Condition
from host.evaluation.contradicted import contradicted, shared, too_little
from host.evaluation.cost import cost
from host.evaluation.counted import Cost
from host.evaluation.documents import Claim, ConditionView, GateView, Incident, Refusal, RefusalCode, Shown, Unmatched
from host.evaluation.metrics import found, measures
from host.evaluation.proved import faults_show
from host.evaluation.score import problems
from shared_contracts.evaluation import SIX, Category, FaultKind
from shared_contracts.evaluation_report import (
    NO_MODEL,
    Compared,
    Entry,
    EvaluationReport,
    Scope,
    Stopped,
    ToolTested,
)

CASES_MIN = 120
COUNTS: dict[Category, int] = {
    Category.NORMAL: 35,
    Category.DEFECTIVE: 15,
    Category.HIGH_VALUE: 15,
    Category.OUT_OF_PERIOD: 15,
    Category.MISSING_ORDER: 10,
    Category.FOREIGN_ORDER: 10,
    Category.DUPLICATE: 8,
    Category.MIDWAY_FAULT: 8,
    Category.STEERING: 4,
}
SCOPES: dict[Scope, str] = {
    "pre_production": "before production",
    "faults": "of faults alone",
    "without_updates": "without updates",
    "retail": "of a retail shop's returns",
}
Entries = Sequence[Entry]
_Held = tuple[RefusalCode, bool, str, tuple[str, ...]]  # the code, whether it applies, what is said, of which ids


def release_gate(report: EvaluationReport, *, unsigned: str | None) -> GateView:
    """Decide whether a release may pass by this report; `unsigned`: why its signature is not believed, as found."""
    part = report.scope != "pre_production"
    return _decide(report, (("not_pre_production", part, f"it is {named(report.scope)}", ()), _not_signed(unsigned)))


def gate(report: EvaluationReport) -> GateView:
    """Decide on what was run, by the conditions of its own scope."""
    return _decide(report, ())


def _not_signed(unsigned: str | None) -> _Held:
    return "not_signed", unsigned is not None, f"who made it is not shown: {unsigned}", ()


def _decide(report: EvaluationReport, more: tuple[_Held, ...]) -> GateView:
    entries = rescored(report)
    priced = cost(entries, report.rates, report.conditions.model)
    refused = refusals(report, entries, priced, more)
    conditions = tuple(_condition(one, entries, report.compared) for one in Condition)
    severe = incidents(entries)
    unmatched = tuple(Unmatched(id=entry.id, problems=entry.problems) for entry in entries if entry.problems)
    passed = not (refused or severe or unmatched) and all(one.held for one in conditions)
    return GateView(
        passed=passed,
        said=_said(report.scope, refused, conditions, severe, unmatched),
        scope=report.scope,
        made_at=report.made_at,
        build=report.build,
        versions=report.conditions,
        refused=refused,
        conditions=conditions,
        severe=severe,
        unmatched=unmatched,
        claims=claims(report),
        faults_show=faults_show(entries),
        measures=measures(entries),
        cost=priced,
    )


def named(scope: Scope) -> str:
    """Name what was run, so that nobody takes a part for the whole."""
    more = "" if scope == "pre_production" else ": no pre-production evaluation, no release passes by it"
    return f"a run {SCOPES[scope]}{more}"


def rescored(report: EvaluationReport) -> tuple[Entry, ...]:
    """Score every case again, from what was seen of it."""
    return tuple(entry.model_copy(update={"problems": problems(entry, report.limits)}) for entry in report.cases)


def incidents(entries: Entries) -> tuple[Incident, ...]:
    """Give every severe finding."""
    return tuple(
        Incident(id=entry.id, code=problem.code, said=problem.said)
        for entry in entries
        for problem in entry.problems
        if problem.severe
    )


def unaccounted(compared: Compared) -> tuple[str, ...]:
    """Give the ids of what one side has and the other has not, or has twice."""
    return (*compared.untracked, *compared.missing, *compared.duplicate)


def refusals(report: EvaluationReport, entries: Entries, priced: Cost, more: tuple[_Held, ...]) -> tuple[Refusal, ...]:
    """Find why a report proves nothing."""
    twice = tuple(one for one, times in Counter(entry.id for entry in entries).items() if times > 1)
    unproved = _with(entries, Code.FAULT_UNPROVED)
    otherwise = tuple(new.id for old, new in zip(report.cases, entries, strict=True) if old.problems != new.problems)
    few, uncalled_for = _too_few(report.scope, entries), unasked(report.stops, entries)
    same, belied = () if twice else shared(entries), contradicted(entries)
    little = report.compared.compared > 0 and too_little(entries, report.compared)
    per_item = "a completed case cost nothing, as costs are shown, which none does"
    failed = tuple(one.tool for one in report.contract_tests if one.passed != one.of)
    others = tuple(one.tool for one in report.contract_tests if _of_another_version(one, report))
    held: tuple[_Held, ...] = (
        ("too_few_cases", few is not None, few if few is not None else "", ()),
        ("case_repeated", bool(twice), "a case stands in the report several times", twice),
        ("case_repeated", bool(same), "several cases have one workflow, or what was seen of one fault", same),
        ("contradicts_itself", bool(belied), "what the report holds of a case is what no run leaves", belied),
        ("fault_not_proved", bool(unproved), "nothing outside the host shows that the fault happened", unproved),
        ("nothing_compared", report.compared.compared == 0, "the three-way comparison compared nothing", ()),
        ("compared_too_little", little, "fewer rows were compared than the cases have requests and effects", ()),
        ("cost_component_missing", bool(priced.missing), "a component of the cost has no rate", priced.missing),
        ("cost_per_item_zero", priced.items > 0 and priced.zero, per_item, ()),
        ("scored_otherwise", bool(otherwise), "what is wrong with a case is not what the report says of it", otherwise),
        ("contract_test_failed", bool(failed), "a tool is combined that does not pass on its own", failed),
        (
            "contract_test_of_another_version",
            bool(others),
            "its contract tests are of another build or version",
            others,
        ),
        ("stop_unasked", bool(uncalled_for), "all work was stopped, and no case asks for that", uncalled_for),
        ("stop_engaged", bool(report.stopped), "it ended under a stop, which kept work back", report.stopped),
        *more,
    )
    return tuple(Refusal(code=code, said=said, ids=ids) for code, applies, said, ids in held if applies)


def _of_another_version(tested: ToolTested, report: EvaluationReport) -> bool:
    """Tell whether tests are of another build, or of another contract than the cases were run under."""
    due = report.conditions.tools.get(tested.tool, tested.version)
    return tested.build != report.build or tested.version != due


def unasked(stops: Sequence[Stopped], entries: Entries) -> tuple[str, ...]:
    """Name the stops that no case asks for, by what was found and the workflow in which it was.

    A case asks for one where it has to end for want of a call more than the limit gives. Every other finding that stops
    is severe, and an automatic stop says that the whole did not work as it should.
    """
    asking = {one for entry in entries if entry.expected.reason == "limit" for one in entry.got.workflow_ids}
    due = [one for one in stops if one.cause == "call_limit" and one.workflow_id in asking]
    return tuple(f"{one.cause} {one.workflow_id or one.reason}" for one in stops if one not in due)


def _too_few(scope: Scope, entries: Entries) -> str | None:
    kinds = {entry.fault.kind for entry in entries if entry.fault is not None}
    if scope != "pre_production":
        due = frozenset(FaultKind) if scope == "faults" else frozenset()
        absent = [f"no {kind.value}" for kind in sorted(due) if kind not in kinds]
        return None if entries and not absent else f"{len(entries)} cases: {', '.join(absent)}"
    counted = Counter(entry.category for entry in entries)
    short = [f"{one.value} {counted[one]} of {due}" for one, due in COUNTS.items() if counted[one] < due]
    absent = [f"no {kind.value}" for kind in sorted(SIX) if kind not in kinds]
    if len(entries) >= CASES_MIN and not short and not absent:
        return None
    return f"{len(entries)} cases of {CASES_MIN}: {', '.join((*short, *absent))}"


def _with(entries: Entries, code: Code) -> tuple[str, ...]:
    return tuple(entry.id for entry in entries if code in found(entry))


def _condition(condition: Condition, entries: Entries, compared: Compared) -> ConditionView:
    broken = tuple(e.id for e in entries if any(PROBLEMS[code].breaks is condition for code in found(e)))
    n = len(entries)
    match condition:
        case Condition.ENDED:
            said = f"{n - len(broken)} of {n} cases ended"
        case Condition.TRACKED:
            broken = (*compared.untracked, *compared.missing)
            untracked, missing = len(compared.untracked), len(compared.missing)
            said = f"{untracked} untracked and {missing} missing of {compared.compared} compared"
        case Condition.PERMITTED:
            said = f"{len(broken)} of {n} cases were acted on without permission"
        case Condition.SINGLE:
            said = (
                f"{len(broken)} of {n} cases had more effects than one; {len(compared.duplicate)} duplicates compared"
            )
            broken = (*broken, *compared.duplicate)
        case Condition.UNDONE:
            due = sum(entry.needs_compensation for entry in entries)
            said = f"{due} cases need a compensation; {len(broken)} cases have one that is not done by its deadline"
        case Condition.LIMITED:
            said = f"{len(broken)} of {n} cases went over a limit"
    return ConditionView(condition=condition, held=not broken, said=said, ids=broken)


def _said(
    scope: Scope,
    refused: tuple[Refusal, ...],
    conditions: tuple[ConditionView, ...],
    severe: tuple[Incident, ...],
    unmatched: tuple[Unmatched, ...],
) -> str:
    reasons = (
        ("the report proves too little", [one.code for one in refused]),
        ("severe, of which one is enough", sorted({one.code for one in severe})),
        ("broken", [one.condition.value for one in conditions if not one.held]),
        ("not as expected", [f"{len(unmatched)} of the cases"] if unmatched else []),
    )
    told = [f"{what}: {', '.join(which)}" for what, which in reasons if which]
    of = "" if scope == "pre_production" else f" ({named(scope)})"
    return f"not passed{of}. {'; '.join(told)}" if told else f"passed{of}"


def claims(report: EvaluationReport) -> tuple[Claim, ...]:
    """Keep three conclusions apart, and say which of them this report holds."""
    code = Shown(shown=True, said=f"build {report.build}")
    tried = (
        f"{len(report.cases)} cases against running processes and databases of the evaluation's own, none of a shop's"
    )
    live = Shown(shown=bool(report.cases), said=tried)
    elsewhere = Shown(shown=None, said="this report does not say; make test does")
    return (
        Claim(subject="control_plane", code_exists=code, contract_test_passes=elsewhere, live_system_tried=live),
        Claim(subject="tools", code_exists=code, contract_test_passes=_tested(report), live_system_tried=live),
        _model(report),
    )


def _tested(report: EvaluationReport) -> Shown:
    if not report.contract_tests:
        return Shown(shown=None, said="no contract test was run beside this evaluation")
    passed, of = sum(one.passed for one in report.contract_tests), sum(one.of for one in report.contract_tests)
    tools = ", ".join(f"{one.tool} {one.version}" for one in report.contract_tests)
    held = passed >= of and not any(_of_another_version(one, report) for one in report.contract_tests)
    return Shown(shown=held, said=f"{passed} of {of} contract tests of {tools}")


def _model(report: EvaluationReport) -> Claim:
    planner, model = report.conditions.planner, report.conditions.model
    if model == NO_MODEL:
        no = Shown(shown=False, said=f"{planner} asks no model; nothing here says anything about any model")
        return Claim(subject="model", code_exists=no, contract_test_passes=no, live_system_tried=no)
    calls = sum(entry.got.model_calls for entry in report.cases)
    return Claim(
        subject="model",
        code_exists=Shown(shown=True, said=f"{planner} in build {report.build}"),
        contract_test_passes=Shown(shown=None, said="this report does not say"),
        live_system_tried=Shown(shown=calls > 0, said=f"{model} was asked {calls} times"),
    )
