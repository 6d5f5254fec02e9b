"""`kessai`: the host's command line. What is typed is here, one file per group; what it does, under the same name in
`host.commands`, is imported when it runs, so that help is quick.

Invariant: whatever a user can mend ends in one clear message and an exit code of the table, never in a traceback.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from host.cli import (
    approve,
    approvers,
    audit,
    backup,
    baseline,
    contract_test,
    crash_matrix,
    demo,
    diagnose,
    evaluate,
    handover,
    keys,
    machine,
    reapply,
    reconcile,
    records,
    review,
    rollout,
    run,
    stop,
    streams,
    tables,
    tokens,
    worker,
)
from host.cli.options import KEPT, flowing
from host.commands.exit_codes import table

CASES, READING, MACHINE, PARTS = "Cases", "Reading", "This machine's stack", "Parts"


def _version(asked: bool) -> None:
    if not asked:  # it is called before every command
        return
    from importlib.metadata import version

    from host.stack.build import installed_build

    typer.echo(f"kessai {version('kessai')}, build {installed_build().code}")
    raise typer.Exit


app = typer.Typer(
    name="kessai",
    help="The model proposes, the control plane authorises, the executor acts, the record proves.\n\n"
    "Begin with: kessai run examples/returns/normal.json",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# name, panel, and the function whose docstring is the help text
COMMANDS: tuple[tuple[str, str, Callable[..., None]], ...] = (
    ("run", CASES, run.run),
    ("baseline", CASES, baseline.baseline),
    ("approve", CASES, approve.approve),
    ("deny", CASES, approve.deny),
    ("withdraw", CASES, reapply.withdraw),
    ("reapply", CASES, reapply.reapply),
    ("review", CASES, review.review),
    ("compensate", CASES, review.compensate),
    ("stop", CASES, stop.stop),
    ("resume", CASES, stop.resume),
    ("check", CASES, rollout.check),
    ("show", READING, records.show),
    ("list", READING, records.list_workflows),
    ("explain", READING, records.explain),
    ("handover", READING, handover.handover),
    ("ledger", READING, records.ledger),
    ("reconcile", READING, reconcile.reconcile),
    ("diagnose", READING, diagnose.diagnose),
    ("contract-test", READING, contract_test.contract_test),
    ("crash-matrix", READING, crash_matrix.crash_matrix),
    ("demo", READING, demo.demo),
    ("tools", READING, tables.tools),
    ("states", READING, tables.states),
    ("up", MACHINE, machine.up),
    ("down", MACHINE, machine.down),
    ("status", MACHINE, machine.status),
    ("doctor", MACHINE, machine.doctor),
    ("backup", MACHINE, backup.backup),
    ("restore", MACHINE, backup.restore),
    ("empty", MACHINE, machine.empty),
    ("worker", PARTS, worker.worker),
    ("migrate", PARTS, worker.migrate),
    ("secrets", PARTS, machine.secrets),
)


def _help(name: str, function: Callable[..., None]) -> str:
    """Give a command's help, with its exit codes at the end."""
    return f"{flowing(function.__doc__)}\n\n{KEPT}\nExit codes\n{table(name)}"


for name, panel, function in COMMANDS:
    app.command(name, help=_help(name, function), rich_help_panel=panel)(function)

token = typer.Typer(help="Tokens for outside MCP hosts.", no_args_is_help=True)
token.command("issue", help=_help("token issue", tokens.issue))(tokens.issue)
token.command("list", help=_help("token list", tokens.list_tokens))(tokens.list_tokens)
app.add_typer(token, name="token", rich_help_panel=PARTS)

signing = typer.Typer(help="The keys that tokens are signed with, and whose tokens are trusted.", no_args_is_help=True)
signing.command("list", help=_help("keys list", keys.list_keys))(keys.list_keys)
signing.command("rotate", help=_help("keys rotate", keys.rotate))(keys.rotate)
# a key's id may begin with a dash
signing.command(
    "revoke",
    help=_help("keys revoke", keys.revoke),
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
)(keys.revoke)
app.add_typer(signing, name="keys", rich_help_panel=PARTS)

evaluation = typer.Typer(help="Run the evaluation, and say what it shows.", cls=evaluate.RunByDefault)
evaluation.command("run", help=_help("eval run", evaluate.run))(evaluate.run)
evaluation.command("retail", help=_help("eval retail", evaluate.retail))(evaluate.retail)
evaluation.command("report", help=_help("eval report", evaluate.report))(evaluate.report)
evaluation.command("drop", help=_help("eval drop", evaluate.drop))(evaluate.drop)
evaluation.command("gate", help=_help("eval gate", evaluate.gate))(evaluate.gate)
evaluation.command("html", help=_help("eval html", evaluate.html))(evaluate.html)
evaluation.command("compare", help=_help("eval compare", evaluate.compare))(evaluate.compare)
app.add_typer(evaluation, name="eval", rich_help_panel=READING)

release = typer.Typer(help="Which release has passed, and under which one new cases begin.", no_args_is_help=True)
release.command("record", help=_help("release record", rollout.record))(rollout.record)
release.command("rollback", help=_help("release rollback", rollout.rollback))(rollout.rollback)
release.command("list", help=_help("release list", rollout.list_releases))(rollout.list_releases)
app.add_typer(release, name="release", rich_help_panel=CASES)

stages = typer.Typer(help="Let cases in by stages, each closed by what it has shown.", no_args_is_help=True)
stages.command("status", help=_help("rollout status", rollout.status))(rollout.status)
stages.command("open", help=_help("rollout open", rollout.open_stage))(rollout.open_stage)
stages.command("close", help=_help("rollout close", rollout.close))(rollout.close)
stages.command("waive", help=_help("rollout waive", rollout.waive))(rollout.waive)
app.add_typer(stages, name="rollout", rich_help_panel=CASES)

record = typer.Typer(
    help="Show that the record is whole, on both sides; export it, cut it, erase words.", no_args_is_help=True
)
record.command("verify", help=_help("audit verify", audit.verify))(audit.verify)
record.command("export", help=_help("audit export", audit.export))(audit.export)
record.command("cut", help=_help("audit cut", audit.cut))(audit.cut)
record.command("restored", help=_help("audit restored", audit.restored))(audit.restored)
record.command("erase", help=_help("audit erase", audit.erase))(audit.erase)
app.add_typer(record, name="audit", rich_help_panel=READING)

approver = typer.Typer(help="Whose signed yes or no the host takes.", no_args_is_help=True)
approver.command("add", help=_help("approver add", approvers.add))(approvers.add)
approver.command("trust", help=_help("approver trust", approvers.trust))(approvers.trust)
approver.command("list", help=_help("approver list", approvers.list_approvers))(approvers.list_approvers)
# a key's id may begin with a dash
approver.command(
    "revoke",
    help=_help("approver revoke", approvers.revoke),
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
)(approvers.revoke)
app.add_typer(approver, name="approver", rich_help_panel=CASES)


@app.callback()
def _kessai(
    said: Annotated[  # typer calls it as soon as it is read
        bool, typer.Option("--version", help="Say which version and build this is.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@approver.callback()
def _approver() -> None:
    """Whose signed yes or no the host takes."""


@token.callback()
def _token() -> None:
    """Tokens for outside MCP hosts."""


def main() -> None:
    """Run the command line."""
    atexit.register(gc.freeze)  # to take apart what ends anyway takes longer than many a command
    streams.prepare()
    try:
        app(prog_name="kessai")  # also where it was started as a module
    except _expected() as error:
        _end(error)


def _expected() -> tuple[type[Exception], ...]:
    """Name what a user can mend; looked at only when something was raised."""
    from host.commands.failures import EXPECTED

    return EXPECTED


def _end(error: Exception) -> None:
    from host.commands.failures import tell

    sys.exit(tell(error))
