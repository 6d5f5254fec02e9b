"""`eval gate` and `eval compare`: read reports, compute, show; `gate` reads public keys beside.

Invariant: nothing is written but the comparison, with the groups that it chose, and over nothing but an earlier one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from host.commands import evaluate_sheets
from host.commands.exits import CommandError, Exit
from host.commands.output import console, say, write_json
from host.commands.seal_keys import unsigned_here
from host.evaluation.compare import compare as compared
from host.evaluation.documents import CompareView
from host.evaluation.gate import release_gate
from host.settings import Settings
from host.stack.files import write_whole
from shared_contracts.base import M, dump, parse
from shared_contracts.evaluation_report import FORMAT, EvaluationReport
from shared_contracts.named_file import Unread, read_file
from shared_contracts.strict_json import NotJsonError, strict_json
from shared_contracts.told import place

REPORT_BYTES_MAX = 64_000_000  # ten thousand cases, which is as many as a report may hold
WHAT, MEND = "report of an evaluation", "Name the report.json that an evaluation wrote."
COMPARISON, COMPARISON_MODE = "comparison.json", 0o644  # nothing in it is secret or a person's
_TOLD_MAX = 5


def gate(settings: Settings, path: Path, keys: Sequence[Path], *, as_json: bool) -> Exit:
    """Decide on a report; raises CommandError."""
    report = read_report(path)
    view = release_gate(report, unsigned=unsigned_here(settings, report, keys))
    if as_json:
        write_json(dump(view))
    else:
        evaluate_sheets.gate(console(), view)
    return Exit.DONE if view.passed else Exit.FAILED


def compare(before: Path, after: Path, directory: Path | None, *, as_json: bool) -> Exit:
    """Compare two reports and keep what came of it, beside the later one or in a directory; raises CommandError."""
    view = compared(read_report(before), read_report(after))
    file = (after.parent if directory is None else directory) / COMPARISON
    if view.comparison is not None:
        _keep(file, view)
    if as_json:
        write_json(dump(view))
    else:
        evaluate_sheets.compare(console(), view)
    if view.comparison is None:
        return Exit.BAD_INPUT
    say(f"comparison  {file}")
    return Exit.DONE if view.comparison.verdict == "fixed" else Exit.FAILED


def _keep(file: Path, view: CompareView) -> None:
    mend = "Name another directory with --report."
    try:
        if file.exists() and not _is_comparison(file):
            raise CommandError(Exit.BAD_INPUT, f"{file} is there and is no comparison", f"It was left as it is. {mend}")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(dump(view), ensure_ascii=False, indent=2) + "\n", COMPARISON_MODE)
    except OSError as error:
        raise CommandError(Exit.BAD_INPUT, f"{file} cannot be written: {error.strerror}", mend) from error


def _is_comparison(file: Path) -> bool:
    try:
        read_document(file, CompareView, "comparison", "")
    except CommandError:
        return False
    return True


def read_report(path: Path) -> EvaluationReport:
    """Read one; raises CommandError."""
    return read_report_in(path, _content(path, MEND))


def read_report_in(path: Path, content: bytes) -> EvaluationReport:
    """Read what the file at `path` held; raises CommandError, which names another version by itself."""
    document = _document(path, content, WHAT, MEND)
    written = document.get("format")
    if isinstance(written, str) and written != FORMAT and written.startswith("kessai-evaluation/"):
        what = f"{path} is no {WHAT} that this program reads: it is {written[:40]}, and this program reads {FORMAT}"
        raise CommandError(Exit.BAD_INPUT, what, "Run kessai eval again; what another build wrote is read by that one.")
    return _model(path, document, EvaluationReport, WHAT, MEND)


def read_document(path: Path, model: type[M], what: str, mend: str) -> M:
    """Read a document that a command wrote; raises CommandError, which calls it `what` and says how to mend it."""
    return _model(path, _document(path, _content(path, mend), what, mend), model, what, mend)


def _content(path: Path, mend: str) -> bytes:
    content = read_file(path, REPORT_BYTES_MAX)
    if isinstance(content, Unread):
        raise CommandError(Exit.BAD_INPUT, f"{path} cannot be read: {content.why}", mend)
    return content


def _document(path: Path, content: bytes, what: str, mend: str) -> dict[str, Any]:
    try:
        document = strict_json(content)
    except NotJsonError as error:
        raise CommandError(Exit.BAD_INPUT, f"{path} is no {what}: {error}", mend) from error
    if not isinstance(document, dict):
        raise CommandError(Exit.BAD_INPUT, f"{path} is no {what}: it is no JSON object", mend)
    return document


def _model(path: Path, document: dict[str, Any], model: type[M], what: str, mend: str) -> M:
    try:
        return parse(model, document)
    except ValidationError as error:
        told = f"{path} is no {what}: it has {error.error_count()} faults"
        raise CommandError(Exit.BAD_INPUT, told, "\n".join((*_faults(error), mend))) from error


def _faults(error: ValidationError) -> list[str]:
    """Name the first of them, by their place; what stands there is not repeated."""
    found = error.errors(include_input=False, include_url=False, include_context=False)[:_TOLD_MAX]
    return [f"{place(one['loc'])}: {one['msg']}" for one in found]
