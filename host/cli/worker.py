"""`kessai worker` and `kessai migrate`: the parts that several machines run."""

from __future__ import annotations

from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json


def worker(
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, max=256, help="Workflows at the same time; default 1.")
    ] = None,
) -> None:
    """Take wake-ups off the queue and drive workflows until SIGTERM, which finishes the calls in hand.

    Start as many as you like, on as many machines: a workflow has one driver at a time, and what a killed worker had
    in hand goes on with another. Needs KESSAI_DSN, KESSAI_SERVER_URL, KESSAI_ISSUER and KESSAI_SIGNING_KEY_FILE;
    without them it works on this machine's own stack.

    \b
    kessai worker --concurrency 8
    """
    from host import settings
    from host.commands.worker import worker as work

    read = settings.load()
    chosen = read if concurrency is None else read.model_copy(update={"concurrency": concurrency})
    launch(work(chosen))


def migrate(
    roles_only: Annotated[
        bool, typer.Option("--roles-only", help="Make the roles and nothing else: before pg_restore of a dump.")
    ] = False,
    without_rollout: Annotated[
        bool,
        typer.Option("--without-rollout", help="In a new database: say that no rollout runs, so that all may ask."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the host's database to this program's schema and its roles to their rights; may be run at any time.

    Needs KESSAI_MIGRATE_DSN, the owner's; KESSAI_ROLE_PASSWORDS names a directory with one file per role. Without them
    it prepares this machine's own stack.

    A new database takes no case in until kessai rollout open 1, or until somebody says that no rollout runs.
    --without-rollout says it, for trying out; it changes nothing where anything was said before.
    """
    from host import settings
    from host.commands.worker import migrate as bring_up

    launch(bring_up(settings.load(), roles_only=roles_only, without_rollout=without_rollout, as_json=as_json))
