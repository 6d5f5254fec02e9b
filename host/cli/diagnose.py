"""`kessai diagnose`, which changes nothing."""

from __future__ import annotations

import sys

from host.cli.launch import launch
from host.cli.options import Json, Name


def diagnose(name: Name, as_json: Json = False) -> None:
    """Name what deviated first in a case, and what followed from it.

    It reconciles first: the ledger, the tool server's log and its business tables, read as the two auditors, as
    kessai reconcile does. Each deviation has one of six labels (decision_boundary, candidate_generation, connection,
    idempotency, persistence, external_notification) and, where something may look done and is not, why. What the run
    itself went on from, such as a send that was repeated and answered, is told apart from it.

    Without KESSAI_DSN, KESSAI_AUDIT_HOST_DSN and KESSAI_AUDIT_TOOLS_DSN it works on this machine's own stack, also
    where nothing is up.

    \b
    kessai diagnose 0198c2f4-…
    kessai diagnose R-XV7Q-JDGT-0HW7 --json | jq .first_deviation.label
    """
    from host import settings
    from host.commands import diagnose as diagnosing

    sys.exit(launch(diagnosing.diagnosed(settings.load(), name, as_json=as_json)))
