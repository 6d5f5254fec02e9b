"""Reports in files as a home leaves them, signed with a key of the tests' own, and the file that it is known by."""

from __future__ import annotations

import json
from pathlib import Path

from shared_contracts.base import dump
from shared_contracts.evaluation_report import EvaluationReport
from shared_contracts.evaluation_signature import signed
from tests.support.records import fits
from tests.support.sealing import signers

HOST, _, KEYS = signers()


def written(folder: Path, name: str, content: EvaluationReport) -> str:
    """Write a report, signed."""
    document = dump(signed(content, HOST))
    fits(document, "evaluation_report.json")
    file = folder / name
    file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    return str(file)


def believing(folder: Path) -> tuple[str, str]:
    """Give the option that names the key."""
    file = folder / "seal-keys.json"
    file.write_text(json.dumps(dump(KEYS)), encoding="utf-8")
    return "--keys", str(file)
