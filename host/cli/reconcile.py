"""`kessai reconcile`, which changes nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json


def reconcile(
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="DIR", help="Also write reconcile.json there; one that is there is not written over."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Hold the ledger, the tool server's log and its business tables against each other, by id.

    Untracked is what the tool server did and no ledger asked for, missing what the ledger believes and the tool server
    has not, duplicate what one intention made more than once. Calls of tokens that were issued to outside hosts are
    counted apart. What is under way meanwhile is counted, and not judged.

    It reads as the two auditors, who may SELECT and nothing else: KESSAI_AUDIT_HOST_DSN and KESSAI_AUDIT_TOOLS_DSN.
    Without them it works on this machine's own stack, also where nothing is up.

    \b
    Examples
      kessai reconcile
      kessai reconcile --json | jq .untracked
      kessai reconcile --report reports/2026-08-01
    """
    from host import settings
    from host.commands import reconcile as comparing

    sys.exit(launch(comparing.reconcile(settings.load(), report, as_json=as_json)))
