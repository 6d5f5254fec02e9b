"""`kessai eval`: run the cases in a place of the evaluation's own, decide by what was seen, compare two of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from host.cli import choices
from host.cli.launch import launch
from host.cli.options import Json, ReportKeys

CONCURRENCY, CONCURRENCY_MAX = 8, 64


Concurrency = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, max=CONCURRENCY_MAX, help="How many at a time.")
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="S", min=0, help="In which order they begin; else a new one.")
]
ReportTo = Annotated[
    Path | None, typer.Option("--report", metavar="DIR", help="Where the report goes; else ./evaluation-<time>.")
]


class RunByDefault(typer.core.TyperGroup):
    """`kessai eval` alone, or with options alone, is `kessai eval run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command's name in front where none was typed and no help was asked for."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


def run(  # noqa: PLR0913, PLR0917 - one parameter per option
    cases: Annotated[
        Path | None,
        typer.Option("--cases", metavar="PATH", help="A file of cases, or a directory of such files; else our own."),
    ] = None,
    faults: Annotated[
        bool, typer.Option("--faults", help="Only cases to which something is done; of ours, those beyond the six too.")
    ] = False,
    concurrency: Concurrency = CONCURRENCY,
    seed: Seed = None,
    report: ReportTo = None,
    changed: Annotated[
        str | None,
        typer.Option(
            "--changed",
            metavar="PART",
            autocompletion=choices.components,
            help="The one part that was changed since the report that this one is held against.",
        ),
    ] = None,
    rates: Annotated[
        Path | None, typer.Option("--rates", metavar="FILE", help="What things cost; else what we assume, and say so.")
    ] = None,
    tested: Annotated[
        Path | None,
        typer.Option("--contract-tests", metavar="FILE", help="What kessai contract-test --json wrote of this build."),
    ] = None,
    test_first: Annotated[
        bool, typer.Option("--contract-tests-first", help="Make them now, half a minute, before any case is run.")
    ] = False,
    without_updates: Annotated[
        bool, typer.Option("--without-updates", help="Remove every tool that updates: nothing may be done, by no case.")
    ] = False,
) -> None:
    """Run the cases of an evaluation against the real programs, and decide by what was seen whether they passed.

    It has a home of its own beside yours, with databases made anew for each run, so that nothing real is touched. What
    is done to a case on its way (no answer, a broken connection, a full mailbox, a day that passes) is done outside the
    programs, and noted there. The report is written whether it passed or not; kessai eval drop removes the home.

    With --faults cases without one are left out and others come in: the programs are killed, the database restarts,
    a commit's answer is lost, an answer comes too late, a tool server of older contracts stands there. Two minutes. It
    passes where every case of every fault ends as it has to, and is no evaluation that a release passes by.

    With --without-updates each case that would have acted has to end with a person and a draft, and the others as ever.

    Where each tool's own tests are given, or made first, no case is run unless they are of this build and passed.

    \b
    kessai eval
    kessai eval --faults --report /tmp/faults
    kessai eval --without-updates
    kessai eval run --cases cases.toml --concurrency 1 --seed 7
    """
    from host.commands import evaluate_run
    from host.settings import load

    wanted = evaluate_run.Wanted(
        cases, None, faults, concurrency, seed, report, changed, rates, tested, test_first, without_updates
    )  # fmt: skip
    sys.exit(launch(evaluate_run.run(load(), wanted)))


def retail(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Orders and right returns, as kessai-tools load has them.")
    ],
    concurrency: Concurrency = CONCURRENCY,
    seed: Seed = None,
    report: ReportTo = None,
) -> None:
    """Run every return of a retail shop's file that others know to be right, and refuse all that must be refused.

    Each return is run alone, sent twice, and under each of the six faults (the approval's expiry where a person is
    asked): one return and one notice, never a second one. Each order is asked for by another customer, and each that
    was not delivered by its own: nothing is made. Every case has an order to itself, a copy where the file's is taken.
    It runs where kessai eval runs, and passes if nothing is wrong; no release passes by it.

    \b
    kessai eval retail examples/retail/shop.json
    kessai eval retail retail.json --report /tmp/retail
    """
    from host.commands import evaluate_run
    from host.settings import load

    wanted = evaluate_run.Wanted(None, file, False, concurrency, seed, report, None, None, None, False)
    sys.exit(launch(evaluate_run.run(load(), wanted)))


def report(
    directory: ReportTo = None,
) -> None:
    """Make the last run's report again, from the databases that it left; nothing is run.

    States, calls and effects are counted in them anew and both sides are compared anew, so that it equals the first one
    unless somebody has changed a row, or a report. It names what no database says and is taken from the run's notes:
    times on the wall, and what wire, clock and mail server saw.

    \b
    kessai eval report --report again
    """
    from host.commands import evaluate_run
    from host.settings import load

    sys.exit(launch(evaluate_run.again(load(), directory)))


def drop() -> None:
    """Remove the evaluation's own home: its databases, keys and logs. Reports stay where they were written.

    Its seal-keys.json, without which nobody can tell who signed them, is gone too: keep a copy, or record first.

    \b
    kessai eval drop
    """
    from host.commands import evaluate_run
    from host.settings import load

    sys.exit(launch(evaluate_run.drop(load())))


def gate(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="A report.json of an evaluation.")],
    keys: ReportKeys = None,
    as_json: Json = False,
) -> None:
    """Decide by a report whether this release may touch a customer: six conditions, each with what it is known by.

    Every case is scored again and every number computed again; what the report says of itself is not taken over. One
    severe finding fails all of it. A report that proves too little is refused: too few cases, a fault that nothing
    shows to have happened, a cost of nothing, a stop that no case asks for, a signature that does not hold.

    A report is signed by the home in which it was made. That of this machine is known; for another's, or one that
    kessai eval drop has removed, name its seal-keys.json with --keys.

    \b
    kessai eval gate report.json
    kessai eval gate report.json --json | jq '.conditions[] | select(.held | not)'
    """
    from host.commands import evaluate
    from host.settings import load

    sys.exit(evaluate.gate(load(), report, keys or (), as_json=as_json))


def compare(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="The report.json before the change.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The report.json after it.")],
    directory: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Where comparison.json goes; else beside AFTER."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what one change mended and what it broke: the cases that had failed, their neighbours, and the others.

    The groups are chosen from the report before. Data, cases, faults and where they strike, seed, limits and how many
    run at a time have to be equal, and AFTER has to name the one part that was changed.

    What came of it is kept in comparison.json, with the cases of each group and the states and tools that chose them,
    over an earlier one. Of two that cannot be compared nothing is written.

    \b
    kessai eval compare before/report.json after/report.json
    """
    from host.commands import evaluate

    sys.exit(evaluate.compare(before, after, directory, as_json=as_json))


def html(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="A report.json of an evaluation.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where the page goes; else beside the report.")
    ] = None,
) -> None:
    """Write the page of a report: the gate's answer, pictures with their numbers, and what is wrong with each case.

    It is one file without a script that needs nothing from anywhere, and is the same for the same report. kessai eval
    writes it beside report.json; this makes it again, from the report alone.

    \b
    kessai eval html report.json
    kessai eval html before/report.json --out /tmp/before.html
    """
    from host.commands import evaluate_html

    sys.exit(evaluate_html.html(report, out))
