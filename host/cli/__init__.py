"""`kessai`: the host's command line. What is typed is here, one file per group; what it does, under the same name in
`host.commands`, is imported when it runs, so that help is quick.

Invariant: whatever a user can mend ends in one clear message and an exit code of the table, never in a traceback.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable
from typing import Annotated, Any

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

# name, panel, what the group is made with, and its commands
GROUPS: tuple[tuple[str, str, dict[str, Any], dict[str, Callable[..., None]]], ...] = (
    (
        "token", PARTS, {"help": "Tokens for outside MCP hosts.", "no_args_is_help": True},
        {"issue": tokens.issue, "list": tokens.list_tokens},
    ),
    (
        "keys", PARTS,
        {"help": "The keys that tokens are signed with, and whose tokens are trusted.", "no_args_is_help": True},
        {"list": keys.list_keys, "rotate": keys.rotate, "revoke": keys.revoke},
    ),
    (
        "eval", READING, {"help": "Run the evaluation, and say what it shows.", "cls": evaluate.RunByDefault},
        {
            "run": evaluate.run, "retail": evaluate.retail, "report": evaluate.report, "drop": evaluate.drop,
            "gate": evaluate.gate, "html": evaluate.html, "compare": evaluate.compare,
        },
    ),
    (
        "release", CASES,
        {"help": "Which release has passed, and under which one new cases begin.", "no_args_is_help": True},
        {"record": rollout.record, "rollback": rollout.rollback, "list": rollout.list_releases},
    ),
    (
        "rollout", CASES,
        {"help": "Let cases in by stages, each closed by what it has shown.", "no_args_is_help": True},
        {"status": rollout.status, "open": rollout.open_stage, "close": rollout.close, "waive": rollout.waive},
    ),
    (
        "audit", READING,
        {
            "help": "Show that the record is whole, on both sides; export it, cut it, erase words.",
            "no_args_is_help": True,
        },
        {
            "verify": audit.verify, "export": audit.export, "cut": audit.cut, "restored": audit.restored,
            "erase": audit.erase,
        },
    ),
    (
        "approver", CASES, {"help": "Whose signed yes or no the host takes.", "no_args_is_help": True},
        {
            "add": approvers.add, "trust": approvers.trust, "list": approvers.list_approvers,
            "revoke": approvers.revoke,
        },
    ),
)  # fmt: skip
DASHED = {"ignore_unknown_options": True, "help_option_names": ["--help"]}  # a key's id may begin with a dash


def _help(name: str, function: Callable[..., None]) -> str:
    """Give a command's help, with its exit codes at the end."""
    return f"{flowing(function.__doc__)}\n\n{KEPT}\nExit codes\n{table(name)}"


for name, panel, function in COMMANDS:
    app.command(name, help=_help(name, function), rich_help_panel=panel)(function)

for name, panel, made, commands in GROUPS:
    group = typer.Typer(**made)
    for word, function in commands.items():
        said = _help(f"{name} {word}", function)
        group.command(word, help=said, context_settings=DASHED if word == "revoke" else None)(function)
    app.add_typer(group, name=name, rich_help_panel=panel)


@app.callback()
def _kessai(
    said: Annotated[  # typer calls it as soon as it is read
        bool, typer.Option("--version", help="Say which version and build this is.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


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
