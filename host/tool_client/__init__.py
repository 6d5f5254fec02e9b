"""The host's only door to a tool server: tokens, wire, outcomes. No other package imports mcp, httpx2 or aiohttp."""
