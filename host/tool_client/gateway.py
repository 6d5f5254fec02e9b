"""The engine's only way out: one call's token, one request over MCP, one outcome."""

from __future__ import annotations

from host.domain.outcome import Outcome, Rejected
from host.engine.parts import Request
from host.tool_client.client import CallRequest, ToolClient
from host.tool_client.mint import Minter
from host.tool_client.pace import Pace
from host.tool_client.readiness import Listing


class Gateway:
    """Implements `host.engine.parts.Tools`; a tool that the server calls disabled is dropped at once.

    A token of ours that is refused for what it is, and not for what it asks, speaks of us and not of the case: nothing
    is available then until the next listing says otherwise. So does a call that was not executed since another contract
    stands there by now.
    """

    def __init__(self, client: ToolClient, minter: Minter, listing: Listing, pace: Pace) -> None:
        """Take what `host.wiring` has opened."""
        self._client = client
        self._minter = minter
        self._listing = listing
        self._pace = pace

    async def turn(self, tenant_id: str, principal: str) -> None:
        """Wait until a call of this principal may leave."""
        await self._pace.wait(tenant_id, principal)

    def available(self) -> frozenset[str]:
        """Name the tools of the newest listing."""
        return self._listing.available

    async def call(self, request: Request) -> Outcome:
        """Mint, send, classify."""
        token = self._minter.call(request)
        call = CallRequest(request.tool, request.arguments, token, request.timeout_seconds, request.correlation)
        outcome = await self._client.call(call)
        match outcome:
            case Rejected(error) if error.code == "tool_disabled":
                self._listing.drop(request.tool.name)
            case Rejected(error) if error.code == "token_invalid":
                self._listing.doubt()
            case Rejected(error) if error.code == "unavailable" and "contract" in error.details:
                self._listing.doubt()
            case _:
                pass
        return outcome
