"""Whether a report is of this program: its build, contracts, rules and limits, its own cases, and each tool tested.

Invariant: a release passes by what was tried of itself alone. What another build, other data or other expectations
have shown is named, and so is a tool that was not tried on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shared_contracts.evaluation_cases import CaseSet
from shared_contracts.evaluation_report import Entry, EvaluationReport, RunLimits, ToolTested

_ASKED = {
    "category", "automatable", "needs_human", "has_side_effect", "needs_compensation", "decision", "fault", "expected",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Own:
    """What this program is: `updating` are the tools that are tried on their own, by so many `tests` each."""

    build: str
    pinned: Mapping[str, str]
    tools: Mapping[str, str]
    limits: RunLimits
    cases: CaseSet
    updating: Mapping[str, str]
    tests: int


def anothers(report: EvaluationReport, own: Own) -> tuple[str, ...]:
    """Say what of a report is not of this program."""
    return tuple(_differing(report, own))


def untested(report: EvaluationReport, own: Own) -> tuple[str, ...]:
    """Name each tool that updates and has not passed all of its contract tests in this build."""
    due = {
        name: ToolTested(tool=name, version=version, build=own.build, passed=own.tests, of=own.tests)
        for name, version in own.updating.items()
    }
    return tuple(name for name, passed in due.items() if passed not in report.contract_tests)


def _differing(report: EvaluationReport, own: Own) -> Iterator[str]:
    conditions = report.conditions
    if report.scope != "pre_production":
        yield f"it is of a run that no release passes by: {report.scope}"
    if report.build != own.build:
        yield f"it is of build {report.build}, and {own.build} is installed"
    yield from (
        f"it is of {name} {getattr(conditions, name)}, and an evaluation is of {due}"
        for name, due in own.pinned.items()
        if getattr(conditions, name) != due
    )
    others = sorted(set(conditions.tools.items()) ^ set(own.tools.items()))
    if others:
        yield f"it is of other contracts than this program's: {', '.join(dict.fromkeys(name for name, _ in others))}"
    if report.limits != own.limits:
        yield "it is of other limits than this program's"
    if conditions.dataset_sha256 != own.cases.sha256:
        yield "it is of other cases than this program's"
    known, asked = {case.id: case for case in own.cases.cases}, {entry.id: entry for entry in report.cases}
    changed = [one for one in sorted({*known, *asked}) if one not in known or _other(asked.get(one), known[one])]
    if changed:
        yield f"{len(changed)} cases ask for something else than this program's: {', '.join(changed[:5])}"


def _other(entry: Entry | None, case: object) -> bool:
    return entry is None or any(getattr(entry, name) != getattr(case, name) for name in _ASKED)
