"""What is offered on the wire: the tools of the contracts that are complete, as `tools/list` shows them.

Invariant: annotations are hints for people, derived from the risk; nothing on either side decides by them.
"""

from __future__ import annotations

import mcp_types

from shared_contracts.contract import CONTRACT_META, ExecutesAt, Risk, Tool, blanks, offerable
from shared_contracts.tools import TOOLS

OFFER: dict[str, Tool] = {name: tool for name, tool in sorted(TOOLS.items()) if offerable(tool)}


def incomplete() -> list[str]:
    """Name the tools of this server that are offered to nobody because their contract has blanks."""
    return [name for name, tool in sorted(TOOLS.items()) if tool.executes_at is ExecutesAt.TOOL_SERVER and blanks(tool)]


def listed(tool: Tool) -> mcp_types.Tool:
    """Describe a tool for `tools/list`; `_meta` carries what a host compares before it trusts the pair."""
    return mcp_types.Tool(
        name=tool.name,
        description=tool.summary,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=mcp_types.ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.risk is Risk.IRREVERSIBLE_WRITE,
            idempotent_hint=not tool.writes or tool.idempotency_key != "",
            open_world_hint=tool.risk is Risk.IRREVERSIBLE_WRITE,
        ),
        _meta={CONTRACT_META: tool.mark},
    )
