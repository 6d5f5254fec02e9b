"""`eval run`, `report` and `drop`: read cases, run them in a place of their own, write the report, decide.

Invariant: what the command ends with is what the gate says of the report that it has just written.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_args

from host.commands import evaluate_beside, evaluate_html, evaluate_sheets, report_file
from host.commands.exits import CommandError, Exit
from host.commands.output import console, say
from host.commands.progress import Bar, bar, interruptible
from host.evaluation.gate import gate
from host.rights import read_authorization
from host.settings import Settings, home_root
from shared_contracts.base import dump
from shared_contracts.evaluation_cases import CaseSet, Refused, case_set, read_cases
from shared_contracts.evaluation_drafts import UPDATES, without_updates
from shared_contracts.evaluation_report import Component, EvaluationReport, Scope
from shared_contracts.evaluation_retail import read_retail

if TYPE_CHECKING:
    from host.evaluation.conduct import Run

REPORT = "report.json"
OURS = Path(__file__).parents[1] / "data" / "evaluation"
BEYOND = OURS / "beyond"  # faults beyond the six, in cases beside the 120
SEED_MAX = 2**31 - 1
INTERRUPTED = (
    "what worked was stopped, and no report was written. Run kessai eval again; kessai eval drop removes the "
    "evaluation's home."
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was typed; None: nothing was."""

    cases: Path | None
    retail: Path | None  # a shop's file, of which the cases are made
    faults: bool
    concurrency: int
    seed: int | None
    report: Path | None
    changed: str | None
    rates: Path | None
    tested: Path | None  # what `contract-test --json` wrote
    test_first: bool
    without_updates: bool = False


async def run(settings: Settings, wanted: Wanted) -> Exit:
    """Run an evaluation; raises CommandError, StackError, NotReadyError, SettingsError."""
    (cases, data), changed = _cases(wanted), _changed(wanted)
    rates = evaluate_beside.rates(wanted.rates)
    told = evaluate_beside.tests_of_file(wanted.tested)
    from host.commands.log import configure  # here, since the engine and the wire take a second to import
    from host.evaluation.evaluate import Beside, evaluated
    from host.evaluation.plan import PACKAGED, UnfitError, over_retail, plan

    configure()
    seed = secrets.randbelow(SEED_MAX) if wanted.seed is None else wanted.seed
    authorization = read_authorization(settings.authz_file)
    try:
        over = PACKAGED if data is None else over_retail(data)
        todo = plan(settings, authorization, cases, wanted.concurrency, seed, changed, over)
        todo = replace(todo, removed=UPDATES if wanted.without_updates else frozenset())
        file = _file(wanted.report)
        tested = await evaluate_beside.tests_made(settings) if wanted.test_first else told
        with interruptible(INTERRUPTED), bar("cases", len(todo.cases)) as shown:
            report = await evaluated(
                settings, authorization, todo, Beside(_scope(wanted), rates, tested), _teller(shown)
            )
    except UnfitError as error:
        mend = "\n".join((*error.problems[1:], "No report was written."))
        raise CommandError(Exit.BAD_INPUT, error.problems[0], mend) from error
    return _written(report, file)


def _scope(wanted: Wanted) -> Scope:
    if wanted.retail is not None:
        return "retail"
    if wanted.without_updates:
        return "without_updates"
    return "faults" if wanted.faults else "pre_production"


async def again(settings: Settings, directory: Path | None) -> Exit:
    """Make the last run's report again; raises CommandError, StackError, NotReadyError."""
    from host.evaluation.notes import NOT_COUNTED  # here, since the engine takes a second to import
    from host.evaluation.plan import UnfitError
    from host.evaluation.report import recomputed

    file = _file(directory)
    try:
        report = await recomputed(settings)
    except UnfitError as error:
        raise CommandError(Exit.BAD_INPUT, error.problems[0], "Run kessai eval. No report was written.") from error
    say("counted again in the databases of the last run; taken from its notes, since no database says it:")
    for one in NOT_COUNTED:
        say(f"  {one}")
    return _written(report, file)


def _written(report: EvaluationReport, file: Path) -> Exit:
    """Write a report and its page, and decide by it."""
    view, of = gate(report), report.conditions
    with report_file.written(file, dump(report), report_file.ANYBODYS):
        evaluate_sheets.gate(console(), view)
        say(f"{len(report.cases)} cases in {report.seconds:.1f} s, {of.concurrency} at a time, seed {of.seed}")
    evaluate_html.beside(report, file)
    return Exit.DONE if view.passed else Exit.FAILED


async def drop(settings: Settings) -> Exit:
    """Remove the evaluation's home; raises StackError."""
    from host.evaluation import place

    root = place.home_of(home_root(settings))
    removed = await place.drop(root)
    say(f"removed {root}" if removed else f"there is nothing at {root}")
    return Exit.DONE


def _cases(wanted: Wanted) -> tuple[CaseSet, bytes | None]:
    """Give the cases, and what they need loaded."""
    if wanted.retail is not None:
        made = _read(read_retail(wanted.retail))
        return made.cases, made.data
    path = OURS if wanted.cases is None else wanted.cases
    read = _read(read_cases(path))
    if wanted.faults:
        beyond = _read(read_cases(BEYOND)).cases if wanted.cases is None else ()
        read = case_set((*(case for case in read.cases if case.fault is not None), *beyond))
    if not read.cases:
        raise CommandError(Exit.BAD_INPUT, f"{path}: no case has a fault", "Nothing was started.")
    return without_updates(read) if wanted.without_updates else read, None


def _read(read: T | Refused) -> T:
    if isinstance(read, Refused):
        mend = "\n".join((*read.problems[1:], "Nothing was started."))
        raise CommandError(Exit.BAD_INPUT, read.problems[0], mend)
    return read


def _changed(wanted: Wanted) -> Component | None:
    found: Component | None = next((one for one in get_args(Component) if one == wanted.changed), None)
    if found is None and wanted.changed is not None:
        mend = f"The parts are: {', '.join(get_args(Component))}."
        raise CommandError(Exit.BAD_INPUT, f"--changed {wanted.changed!r} is no part", mend)
    return found


def _file(directory: Path | None) -> Path:
    """Name the report's file, which holds nothing secret and no person's; raises CommandError."""
    at = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return report_file.place(Path(f"evaluation-{at}") if directory is None else directory, REPORT, report_file.ANYBODYS)


def _teller(shown: Bar) -> Callable[[Run], None]:
    def through(run: Run) -> None:
        shown.advance(1)
        for line in run.said:
            shown.tell(f"{run.prepared.case.id}: {line}")

    return through
