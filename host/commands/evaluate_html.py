"""`eval html`: the page of a report, beside it or where it is wanted. Nothing but the report is read.

Invariant: a page can be made again at any time, so that one is replaced; what is no such page is left as it is.
"""

from __future__ import annotations

from pathlib import Path

from host.commands.evaluate import read_report
from host.commands.exits import CommandError, Exit
from host.commands.output import say
from host.stack.files import write_whole
from shared_contracts.evaluation_report import EvaluationReport

MODE = 0o644  # nothing in it is secret or a person's
EXTRA = frozenset({"altair", "vl_convert"})
BEGINS = b"<!DOCTYPE html>"
MEND = "Install kessai with its extra `report`, such as: pip install 'kessai[report]'"


def html(path: Path, out: Path | None) -> Exit:
    """Write the page of a report; raises CommandError."""
    report, file = read_report(path), path.with_suffix(".html") if out is None else out
    page = drawn(report)
    if page is None:
        raise CommandError(Exit.NOT_READY, "what draws the pictures is not installed", MEND)
    _write(file, page)
    say(f"page    {file}")
    return Exit.DONE


def beside(report: EvaluationReport, path: Path) -> None:
    """Write the page beside a report that was just written, or say in one line how to come by it."""
    file, page = path.with_suffix(".html"), drawn(report)
    if page is None:
        say(f"page    none. {MEND}; then: kessai eval html {path}")
        return
    _write(file, page)
    say(f"page    {file}")


def drawn(report: EvaluationReport) -> str | None:
    """Write the page; None where what draws the pictures is not installed, which only the page needs."""
    try:
        from host.evaluation.page.write import write
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        return None
    return write(report)


def _write(file: Path, page: str) -> None:
    mend = "Name another file with kessai eval html REPORT --out FILE."
    try:
        if not _replaceable(file):
            raise CommandError(Exit.BAD_INPUT, f"{file} is there and is no page", f"It was left as it is. {mend}")
        write_whole(file, page, MODE)
    except OSError as error:
        raise CommandError(Exit.BAD_INPUT, f"{file} cannot be written: {error.strerror}", mend) from error


def _replaceable(file: Path) -> bool:
    if not file.exists():
        return True
    if not file.is_file():
        return False
    with file.open("rb") as there:
        return there.read(len(BEGINS)) == BEGINS
