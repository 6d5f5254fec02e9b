"""The ConformancePlanner: a deterministic driver for the control plane. It is no agent, and uses no model.

It proposes what each workflow kind says is next. That a case goes through with it says everything about the
control plane and nothing about any model.
"""

from __future__ import annotations

from collections.abc import Iterable

from host.domain.proposals import NOTHING_USED, PlannerView, Reply, ToolDefinition
from host.domain.workflow import Workflow


class ConformancePlanner:
    """Asks the workflow's own `propose`."""

    deterministic = True

    def __init__(self, workflows: Iterable[Workflow]) -> None:
        """Take every release that a case may go on under."""
        self._workflows = {(one.kind, one.release): one for one in workflows}

    async def decide(self, state: PlannerView, tools: tuple[ToolDefinition, ...]) -> Reply:
        """Give the kind's proposal; the tools offered do not change it, authorization judges it."""
        del tools
        return Reply(self._workflows[state.kind, state.release].propose(state), NOTHING_USED)
