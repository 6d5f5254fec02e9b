"""`eval gate` and `eval compare`: read reports, compute, show. Nothing is written and nothing else is read."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from host.commands import evaluate_sheets
from host.commands.exits import CommandError, Exit
from host.commands.output import console, write_json
from host.evaluation.compare import compare as compared
from host.evaluation.gate import gate as decided
from shared_contracts.base import M, dump, parse
from shared_contracts.evaluation_report import EvaluationReport
from shared_contracts.named_file import Unread, read_file
from shared_contracts.strict_json import NotJsonError, strict_json

REPORT_BYTES_MAX = 64_000_000  # ten thousand cases, which is as many as a report may hold
MEND = "Name the report.json that an evaluation wrote."
_TOLD_MAX = 5


def gate(path: Path, *, as_json: bool) -> Exit:
    """Decide on a report; raises CommandError."""
    view = decided(read_report(path))
    if as_json:
        write_json(dump(view))
    else:
        evaluate_sheets.gate(console(), view)
    return Exit.DONE if view.passed else Exit.FAILED


def compare(before: Path, after: Path, *, as_json: bool) -> Exit:
    """Compare two reports; raises CommandError."""
    view = compared(read_report(before), read_report(after))
    if as_json:
        write_json(dump(view))
    else:
        evaluate_sheets.compare(console(), view)
    if view.comparison is None:
        return Exit.BAD_INPUT
    return Exit.DONE if view.comparison.verdict == "fixed" else Exit.FAILED


def read_report(path: Path) -> EvaluationReport:
    """Read one; raises CommandError."""
    return read_document(path, EvaluationReport, "report of an evaluation", MEND)


def read_document(path: Path, model: type[M], what: str, mend: str) -> M:
    """Read a document that a command wrote; raises CommandError, which calls it `what` and says how to mend it."""
    content = read_file(path, REPORT_BYTES_MAX)
    if isinstance(content, Unread):
        raise CommandError(Exit.BAD_INPUT, f"{path} cannot be read: {content.why}", mend)
    return read_content(path, content, model, what, mend)


def read_content(path: Path, content: bytes, model: type[M], what: str, mend: str) -> M:
    """Read what the file at `path` held; raises CommandError."""
    try:
        document = strict_json(content)
        if not isinstance(document, dict):
            raise CommandError(Exit.BAD_INPUT, f"{path} is no {what}: it is no JSON object", mend)
        return parse(model, document)
    except NotJsonError as error:
        raise CommandError(Exit.BAD_INPUT, f"{path} is no {what}: {error}", mend) from error
    except ValidationError as error:
        told = f"{path} is no {what}: it has {error.error_count()} faults"
        raise CommandError(Exit.BAD_INPUT, told, "\n".join((*_faults(error), mend))) from error


def _faults(error: ValidationError) -> list[str]:
    """Name the first of them, by their place; what stands there is not repeated."""
    found = error.errors(include_input=False, include_url=False, include_context=False)[:_TOLD_MAX]
    return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found]
