"""Every family's handlers; a new family is one line here.

Invariant: a name has one handler. Two families that claim the same one are found out before the first call.
"""

from __future__ import annotations

from tool_server.errors import ToolServerError
from tool_server.tools import Handler, claims, notices, orders, policies, returns
from tool_server.tools.notices import Post


class TwiceHandledError(ToolServerError):
    """Two families have a handler of the same name."""


def handlers(post: Post) -> dict[str, Handler]:
    """Give the handler of each tool; those of notices send by `post`."""
    families = (orders.HANDLERS, policies.HANDLERS, returns.HANDLERS, notices.handlers(post), claims.HANDLERS)
    found: dict[str, Handler] = {}
    for family in families:
        twice = found.keys() & family.keys()
        if twice:
            raise TwiceHandledError(f"more than one family handles {', '.join(sorted(twice))}")
        found |= family
    return found
