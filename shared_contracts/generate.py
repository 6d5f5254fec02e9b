"""Writes the committed schemas beside this module: `python -m shared_contracts.generate`.

A test writes them again and compares, so that a change of the wire shows in the diff of a change.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from shared_contracts.base import Money, wire_schema
from shared_contracts.evaluation import EvaluationCase
from shared_contracts.evaluation_report import EvaluationReport
from shared_contracts.form import ToolForm
from shared_contracts.handover import Handover
from shared_contracts.record import Record
from shared_contracts.task_token import TaskClaims
from shared_contracts.tools import TOOLS

FOLDER = Path(__file__).with_name("schemas")


def schemas() -> dict[str, dict[str, Any]]:
    """Give every generated schema under its file name."""
    tools = {
        f"{tool.name}.{side}.json": schema
        for tool in TOOLS.values()
        for side, schema in (("input", tool.input_schema), ("output", tool.output_schema))
    }
    others: dict[str, type[BaseModel]] = {
        "money": Money,
        "record": Record,
        "handover": Handover,
        "evaluation_case": EvaluationCase,
        "evaluation_report": EvaluationReport,
        "task_token": TaskClaims,
        "tool_form": ToolForm,
    }
    return tools | {f"{name}.json": wire_schema(model) for name, model in others.items()}


def render(schema: dict[str, Any]) -> str:
    """Write a schema so that a diff shows what changed."""
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write(folder: Path) -> None:
    """Write all files; files that another module generates are left alone."""
    folder.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        (folder / name).write_text(render(schema), encoding="utf-8")


if __name__ == "__main__":
    write(FOLDER)
