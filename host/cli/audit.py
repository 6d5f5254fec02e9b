"""`kessai audit`: what the sealed record is verified, exported and kept short with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json

Keys = Annotated[
    list[Path] | None,
    typer.Option("--keys", metavar="FILE", help="Public keys to believe: seal-keys.json. May be given again."),
]


def verify(
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Verify this export; no database is opened.")
    ] = None,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Show that nobody has changed, removed, put in, reordered or cut off a line of the record, on either side.

    Every line is held against its row and its place in the chain, every place against the signed heads, and those
    against what the other side has kept of them. What is wrong is named by its row.

    It reads as the two auditors, who may SELECT and nothing else: KESSAI_AUDIT_HOST_DSN and KESSAI_AUDIT_TOOLS_DSN.
    Without them it works on this machine's own stack. Without --keys it believes KESSAI_SEAL_KEYS_FILE, or this
    machine's own keys: whoever may write to this machine may change those, so an auditor brings a copy.

    \b
    kessai audit verify
    kessai audit verify --export record.jsonl --keys seal-keys.json
    """
    from host import settings
    from host.commands import audit

    sys.exit(launch(audit.verify(settings.load(), export, [] if keys is None else keys, as_json=as_json)))


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file; one that is there is not written over.")],
    as_json: Json = False,
) -> None:
    """Write the sealed record of both sides into a file that anybody can verify with the public keys alone.

    It carries ids, codes, times and digests, and no word of a customer, a planner or an operator.

    \b
    kessai audit export record.jsonl
    """
    from host import settings
    from host.commands import audit

    launch(audit.export(settings.load(), file, as_json=as_json))


def cut(
    keys: Keys = None,
    unverified: Annotated[
        bool,
        typer.Option(
            "--unverified", help="Do not look first: what told of a row that is gone is gone then. Export before."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Take out what is older than KESSAI_RECORD_DAYS days; the signed head of the cut stays, and the rest verifies.

    It verifies both sides first, with the connections and keys of kessai audit verify, and takes out nothing of a
    record that is not whole. It is the owner's act (KESSAI_MIGRATE_DSN, or this machine's own stack, where the tool
    server's log is cut too), and a line of the record itself. Export first what has to be kept elsewhere.

    \b
    KESSAI_RECORD_DAYS=730 kessai audit cut
    """
    from host import settings
    from host.commands import audit

    files = [] if keys is None else keys
    sys.exit(launch(audit.cut(settings.load(), files, verify_first=not unverified, as_json=as_json)))


def erase(
    number: Annotated[int, typer.Argument(metavar="ROW", min=1, help="The number of a row of the audit.")],
) -> None:
    """Erase the words of one row for good, such as a reason that somebody typed; the chain stays whole.

    What was sealed of them is a digest under a random salt, and the salt goes too. It is the owner's act, and a line of
    the record itself.

    \b
    kessai audit erase 4711
    """
    from host import settings
    from host.commands import audit

    launch(audit.erase(settings.load(), number))


def restored() -> None:
    """Take note that the host's database was restored from a dump: to be run once, before a worker works on it.

    What the tool server has seen beyond the dump is then no missing end. kessai restore does this itself; the other
    side's own is kessai-tools restored.

    \b
    kessai audit restored
    """
    from host import settings
    from host.commands import audit

    launch(audit.restored(settings.load()))
