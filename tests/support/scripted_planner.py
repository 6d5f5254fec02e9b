"""A planner that says what a test wants, turn by turn, and then what the workflow itself would propose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from host.domain.proposals import NOTHING_USED, PlannerView, Reply, ToolCall, ToolDefinition, Usage
from host.workflows.catalogue import CURRENT

# What is said: a decision, a fault, anything else at all; or a function of what the planner was shown.
Say = Any
Word = Callable[[PlannerView], Say]


@dataclass
class ScriptedPlanner:
    """`script` is used up turn by turn; `always` then speaks for ever; without it the workflow's own proposal does."""

    script: list[Say | Word] = field(default_factory=list)
    always: Word | None = None
    deterministic: bool = True
    usage: Usage = NOTHING_USED  # of each turn
    thinking: Callable[[], Awaitable[None]] | None = None
    views: list[PlannerView] = field(default_factory=list)
    shown: list[tuple[str, ...]] = field(default_factory=list)

    async def decide(self, state: PlannerView, tools: tuple[ToolDefinition, ...]) -> Reply:
        self.views.append(state)
        self.shown.append(tuple(tool.name for tool in tools))
        if self.thinking is not None:
            await self.thinking()
        if self.script:
            word = self.script.pop(0)
            return self._reply(word(state) if callable(word) else word)
        return self._reply(self.always(state) if self.always is not None else honest(state))

    def _reply(self, said: Say) -> Reply:
        return said if isinstance(said, Reply) else Reply(said, self.usage)


def honest(state: PlannerView) -> Any:
    """What the workflow would propose."""
    return CURRENT[state.kind].propose(state)


def with_arguments(**changes: Any) -> Word:
    """The workflow's own call with other arguments."""

    def word(state: PlannerView) -> Any:
        call = honest(state)
        return replace(call, arguments={**call.arguments, **changes}) if isinstance(call, ToolCall) else call

    return word


def calling(name: str, arguments: dict[str, Any], call_id: str | None = None) -> Word:
    """A call of the test's own, under a fresh id unless one is given."""
    return lambda state: ToolCall(f"x_{state.turn}" if call_id is None else call_id, name, arguments)
