"""Runs `kessai eval` on a few cases of the data set, as they stand there or changed."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from host.evaluation import place
from host.stack import assembly
from host.stack.postgres import PostgresChoice
from host.stack.roles import Side
from shared_contracts.base import dump, parse
from shared_contracts.evaluation import EvaluationCase
from shared_contracts.evaluation_report import EvaluationReport
from tests.support.cli import COMMAND, ROOT, Cli, Said
from tests.support.evaluation_set import BEYOND, CASES

PACKAGES = ("host", "tool_server", "shared_contracts")


def chosen(*ids: str) -> list[EvaluationCase]:
    """Cases of the data set and those beside it, by their ids."""
    by_id = {case.id: case for case in (*CASES, *BEYOND)}
    return [by_id[one] for one in ids]


def changed(case: EvaluationCase, **changes: Any) -> EvaluationCase:
    return parse(EvaluationCase, {**dump(case), **changes})


def written(folder: Path, cases: Iterable[EvaluationCase]) -> Path:
    """A set's file. TOML has no null: what is null is left out, and nobody is spelt."""
    file = folder / "cases.toml"
    file.write_text("\n".join(f"[[case]]\n{_members(dump(case))}" for case in cases), encoding="utf-8")
    return file


def _members(document: dict[str, Any]) -> str:
    if document["expected"]["approver"] is None:
        document["expected"]["approver"] = "nobody"
    return "".join(f"{name} = {_value(value)}\n" for name, value in document.items() if value is not None)


def _value(value: Any) -> str:
    match value:
        case dict():
            inner = ", ".join(f"{name} = {_value(one)}" for name, one in value.items() if one is not None)
            return f"{{ {inner} }}"
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)  # of text, numbers and truths both spell the same


@dataclass(frozen=True)
class Evaluated:
    """What the command said, and its report."""

    said: Said
    report: EvaluationReport

    def problems(self) -> dict[str, list[str]]:
        """What is wrong, by case."""
        return {case.id: [one.code for one in case.problems] for case in self.report.cases if case.problems}


def evaluate(cli: Cli, folder: Path, cases: Iterable[EvaluationCase], *options: str) -> Evaluated:
    """Run these cases; the report goes into the folder."""
    said = cli("eval", "--cases", str(written(folder, cases)), "--report", str(folder), "--seed", "7", *options)
    file = folder / "report.json"
    assert file.exists(), said.err
    return Evaluated(said, parse(EvaluationReport, json.loads(file.read_text(encoding="utf-8"))))


@contextmanager
def on_a_terminal(cli: Cli, *options: str) -> Iterator[int]:
    """An evaluation whose standard error is a terminal; gives the end from which it is read, and kills it."""
    shown, theirs = pty.openpty()
    begun = subprocess.Popen(
        [*COMMAND, "eval", *options], env=cli.environment(TERM="xterm"), cwd=ROOT,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield shown
    finally:
        begun.kill()
        begun.wait(10)
        os.close(shown)


def until_called(place_of: Cli) -> None:
    """Until the tool server of a run under way has logged a call."""
    until = time.monotonic() + 60
    with psycopg.connect(place_of.dsn("tools", "tools_auditor"), autocommit=True) as connection:
        while connection.execute("SELECT FROM calls.log LIMIT 1").fetchone() is None:
            assert time.monotonic() < until, "nothing was called"
            time.sleep(0.05)


def worked_on(cli: Cli) -> set[str]:
    """The requests of which the pair that the last run left has a row, on either side."""

    async def read() -> set[str]:
        async with place.kept(place.home_of(cli.home), PostgresChoice(None, None)) as parts:
            with psycopg.connect(assembly.owner_dsn(parts, Side.HOST)) as owner:
                cases = dict(owner.execute("SELECT workflow_id::text, request_id FROM workflow").fetchall())
            with psycopg.connect(assembly.owner_dsn(parts, Side.TOOLS)) as owner:
                tasks = {str(task) for (task,) in owner.execute("SELECT task_id FROM calls.log").fetchall()}
        return {cases.get(task, task) for task in (*cases, *tasks)}

    return asyncio.run(read())


def copied(folder: Path) -> Path:
    """The programs' code once more, for a defect to be planted in."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def planted(code: Path, file: str, before: str, after: str) -> None:
    """Change one place of the copy, which has to be there once."""
    text = (code / file).read_text(encoding="utf-8")
    assert text.count(before) == 1, file
    (code / file).write_text(text.replace(before, after), encoding="utf-8")
