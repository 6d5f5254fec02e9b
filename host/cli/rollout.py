"""`kessai release`, `kessai rollout` and `kessai check`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json, Name, ReportKeys
from host.cli.stop import Operator, Reason

Stage = Annotated[int, typer.Argument(metavar="STAGE", help="1, 2 or 3.", show_default=False)]
Why = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the record.")]


class Found(StrEnum):
    """What a person found."""

    OK = "ok"
    WRONG = "wrong"


def record(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="A report.json of an evaluation.")],
    by: Operator,
    reason: Why = None,
    keys: ReportKeys = None,
    as_json: Json = False,
) -> None:
    """Record by the report of kessai eval that a release has passed; new cases begin under it from then on.

    The gate decides anew, from the report's entries. What it does not let through is not recorded, nor what nobody
    has signed, or is of another build, data or cases, or without every tool's contract tests. A report counts
    once: what a rollback has left behind needs a new one. Only the owner records: see KESSAI_MIGRATE_DSN.

    \b
    kessai release record reports/2026-08-01/report.json --as sato
    """
    from host import settings
    from host.commands import releases

    sys.exit(launch(releases.record(settings.load(), report, keys or (), by, reason, as_json=as_json)))


def rollback(
    by: Operator,
    reason: Reason,
    release: Annotated[
        str | None,
        typer.Argument(metavar="RELEASE", help="An earlier one; else the last that passed.", show_default=False),
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Where several have releases.")] = None,
    as_json: Json = False,
) -> None:
    """Let new cases begin under an earlier release that has passed and that the program still carries.

    Open cases go on under the release that they began with. Without a name it is the last other one that passed.

    \b
    kessai release rollback --as sato --reason "Cases go to people that need none."
    kessai release rollback returns-1 --as sato --reason "The same."
    """
    from host import settings
    from host.commands import releases

    sys.exit(launch(releases.rollback(settings.load(), release, kind, by, reason, as_json=as_json)))


def list_releases(as_json: Json = False) -> None:
    """Show under which release each kind's new cases begin, and what was recorded and rolled back.

    \b
    kessai release list
    """
    from host import settings
    from host.commands import releases

    sys.exit(launch(releases.show(settings.load(), as_json=as_json)))


def status(
    form: Annotated[
        str | None,
        typer.Option(
            "--form", metavar="FILE", help="Also write the production migration evaluation form, as Markdown."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show where the rollout stands: the open stage and what it lacks, what a person has to check, and the history.

    \b
    kessai rollout status
    kessai rollout status --form migration.md
    """
    from host import settings
    from host.commands import rollout

    sys.exit(launch(rollout.status(settings.load(), form, as_json=as_json)))


def open_stage(stage: Stage, by: Operator, reason: Why = None, as_json: Json = False) -> None:
    """Open a stage: 1 takes in 10 cases of internal requesters, 2 takes 20 of cooperating ones too, 3 takes 50 of all.

    A requester's audience stands in the authorization set. The releases that are recorded are what is rolled out; a
    stage comes after the one before it was passed under the same.

    \b
    kessai rollout open 1 --as sato
    """
    from host import settings
    from host.commands import rollout

    sys.exit(launch(rollout.open_stage(settings.load(), stage, by, reason, as_json=as_json)))


def close(
    stage: Stage,
    by: Operator,
    reason: Reason,
    abandon: Annotated[bool, typer.Option("--abandon", help="Give it up, unpassed; the next is stage 1.")] = False,
    as_json: Json = False,
) -> None:
    """Close a stage as passed, where all of its cases have ended, both sides agree, and nothing is still to be undone.

    None of them may have been found wrong, and the last stage wants all of its 50 checked. It compares both sides as
    kessai reconcile does. No time that goes by passes a stage.

    \b
    kessai rollout close 1 --as sato --reason "All ten were looked at."
    """
    from host import settings
    from host.commands import rollout

    sys.exit(launch(rollout.close(settings.load(), stage, by, reason, abandon=abandon, as_json=as_json)))


def waive(by: Operator, reason: Reason, as_json: Json = False) -> None:
    """Say that no rollout runs, as where something is tried out: everybody's cases come in, and nothing counts them.

    \b
    kessai rollout waive --as sato --reason "A demonstration; nobody's orders."
    """
    from host import settings
    from host.commands import rollout

    sys.exit(launch(rollout.waive(settings.load(), by, reason, as_json=as_json)))


def check(
    name: Name,
    verdict: Annotated[Found, typer.Argument(metavar="ok|wrong", help="What you found.", show_default=False)],
    by: Operator,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="What is wrong; it stands in the record.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Keep what you found when you looked at a case that has ended: right, or wrong and in what.

    kessai rollout status names the cases that wait for it. What was found stays; another person may check as well.

    \b
    kessai check 0198c2f4-… ok --as sato
    kessai check 0198c2f4-… wrong --as sato --reason "The notice names another amount."
    """
    from host import settings
    from host.commands import rollout

    launched = rollout.check(settings.load(), name, verdict.value, by, reason, as_json=as_json)
    sys.exit(launch(launched))
