"""Whether this tool server can be worked with, found out before a case is accepted and not at its first call.

A tool that is not listed was disabled: the server is ready, the tool is not available. A tool that is listed
under another version or schema than ours makes the server not ready. What is compared is the digest of our own
contract; names, descriptions and schemas from the wire decide nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from host.domain.outcome import HttpStatus, Lost, NotMcp, NotSent, RpcError, TimedOut, WireResult, code_of
from host.tool_client.client import Listed, ToolClient
from shared_contracts.contract import Tool
from shared_contracts.errors import ERRORS, Category

CHECK_SECONDS = 5.0
AGAIN_SECONDS = 0.1
REFRESH_SECONDS = 5.0  # how long a disabled tool may still be proposed; its calls are refused at once


class Reason(StrEnum):
    """Why a tool server is not ready."""

    UNREACHABLE = "tool_server_unreachable"
    REFUSED = "tool_server_refused_token"
    NOT_MCP = "tool_server_not_mcp"
    PROTOCOL = "protocol_mismatch"
    NO_TOOLS = "tools_capability_missing"
    CONTRACT = "contract_mismatch"


@dataclass(frozen=True, slots=True)
class Ready:
    """`available` are the needed tools that the server offers now; `protocol` is the revision spoken."""

    protocol: str
    available: frozenset[str]


@dataclass(frozen=True, slots=True)
class NotReady:
    """What is wrong, with what, and what to do about it."""

    reason: Reason
    what: str
    mend: str


async def check(
    client: ToolClient, needed: Mapping[str, Tool], timeout_seconds: float = CHECK_SECONDS
) -> Ready | NotReady:
    """Negotiate where that is to be done, list, and compare with our own contracts."""
    listed = await client.list_tools(timeout_seconds)
    return _compare(listed, needed) if isinstance(listed, Listed) else _not_listed(listed)


async def why_refused(url: str, token: Callable[[], str], seconds: float) -> str | None:
    """Say why a tool server does not answer these tokens, asked until it does or the time is over; None: it does."""
    until = asyncio.get_running_loop().time() + seconds
    async with ToolClient(url, token) as client:
        while isinstance(seen := await check(client, {}, seconds), NotReady):
            if asyncio.get_running_loop().time() > until:
                return seen.what
            await asyncio.sleep(AGAIN_SECONDS)
    return None


def _compare(listed: Listed, needed: Mapping[str, Tool]) -> Ready | NotReady:
    if not listed.offers_tools:
        return NotReady(Reason.NO_TOOLS, "The server does not offer the tools capability.", "Check KESSAI_SERVER_URL.")
    for name in sorted(needed.keys() & listed.contracts.keys()):
        tool, mark = needed[name], listed.contracts[name]
        if mark != tool.mark:
            return NotReady(
                Reason.CONTRACT,
                f"The server offers another contract of {name} than version {tool.version} of ours.",
                "Deploy host and tool server of one release.",
            )
    return Ready(listed.protocol, frozenset(needed.keys() & listed.contracts.keys()))


def _not_listed(seen: WireResult) -> NotReady:
    """Classed by the row of the error table that fits; `seen` itself says what exactly was met."""
    row = ERRORS[code_of(seen)]
    match row.category:
        case Category.TRANSIENT | Category.UNKNOWN_EFFECT:
            return NotReady(
                Reason.UNREACHABLE,
                f"The tool server cannot be asked: {_said(seen)}.",
                "Start it, or read its log; check KESSAI_SERVER_URL.",
            )
        case Category.AUTHORIZATION:
            return NotReady(
                Reason.REFUSED,
                f"The tool server refused our probe token: {_said(seen)}.",
                "Issuer, key set and audience that it trusts must be those of our settings; check both clocks.",
            )
        case Category.PROTOCOL if row.code == "version_mismatch":
            return NotReady(
                Reason.PROTOCOL,
                f"Host and tool server have no revision of MCP in common: {_said(seen)}.",
                "Deploy host and tool server of one release.",
            )
        case _:
            return NotReady(
                Reason.NOT_MCP,
                f"What answers at the tool server's address does not speak MCP as we do: {_said(seen)}.",
                "Check KESSAI_SERVER_URL and what stands between.",
            )


def _said(seen: WireResult) -> str:
    """For a person; what an answer claims is quoted."""
    match seen:
        case HttpStatus(status=status, report=report):
            return f"HTTP {status}" + ("" if report is None else f", {report.message!r}")
        case RpcError(number=number, report=report):
            return f"error {number}" + ("" if report is None else f", {report.message!r}")
        case NotSent(why=why):
            return f"no request left, {why.replace('_', ' ')}"
        case Lost(why=why):
            return f"the connection was lost, {why.replace('_', ' ')}"
        case TimedOut():
            return "no answer in time"
        case NotMcp(why=why):
            return why.replace("_", " ")
        case _:
            return type(seen).__name__


class Listing:
    """What may be proposed now. `refresh` is called outside calls, every REFRESH_SECONDS.

    A server that does not answer keeps its last listing: whether it answers is found out by the call, which
    may be tried again. Any other failure empties it.
    """

    def __init__(self, client: ToolClient, needed: Mapping[str, Tool]) -> None:
        self._client = client
        self._needed = needed
        self.available: frozenset[str] = frozenset()
        self._dropped: set[str] = set()  # while a listing is under way, which may be older than the server's word

    async def refresh(self) -> Ready | NotReady:
        """List again."""
        self._dropped.clear()
        found = await check(self._client, self._needed)
        if isinstance(found, Ready):
            self.available = found.available - self._dropped
        elif found.reason is not Reason.UNREACHABLE:
            self.available = frozenset()
        return found

    def doubt(self) -> None:
        """Take all tools out until the next listing: the server does not take us, or is of another release by now."""
        self.available = frozenset()

    def drop(self, name: str) -> None:
        """Take a tool out at once, on the server's word that it is disabled."""
        self.available -= {name}
        self._dropped.add(name)
