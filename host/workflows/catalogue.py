"""Every workflow kind's release that this program carries; a new one is added beside the old.

An old release stays until no workflow of it is open: a workflow goes on under the release that it began with.
"""

from __future__ import annotations

from host.domain.gaps import complete
from host.domain.workflow import Workflow, states
from host.workflows.claims import CLAIMS
from host.workflows.returns import RETURNS

WORKFLOWS: tuple[Workflow, ...] = complete(RETURNS, CLAIMS)
CURRENT: dict[str, Workflow] = {workflow.kind: workflow for workflow in WORKFLOWS}
BY_RELEASE: dict[tuple[str, str], Workflow] = {(workflow.kind, workflow.release): workflow for workflow in WORKFLOWS}


def state_names() -> tuple[str, ...]:
    """Name every state of the kinds that there are, each once."""
    return tuple(sorted({state for workflow in CURRENT.values() for state in states(workflow)}))
