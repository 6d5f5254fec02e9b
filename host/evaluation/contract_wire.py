"""A wire between the engine and a tool server that counts requests, and loses or changes answers, for single tools.

Invariant: the tool server has worked on every request to the end; only what comes back is touched.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from aiohttp import ClientSession, web

from host.evaluation.relay import cut, listening, passed
from host.stack.ports import LOOPBACK


@dataclass
class Wire:
    """`asked`: requests by tool. `lost`: how many of a tool's next answers are lost.

    `said`: a field of a tool's answers and what it says instead.
    """

    upstream: str
    port: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    lost: dict[str, int] = field(default_factory=dict)
    said: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the engine finds the tool server."""
        return f"http://{LOOPBACK}:{self.port}/mcp"

    @contextmanager
    def losing(self, **answers: int) -> Iterator[None]:
        """Lose so many answers of each tool in the block."""
        self.lost = dict(answers)
        try:
            yield
        finally:
            self.lost = {}

    @contextmanager
    def saying(self, tools: tuple[str, ...], name: str, value: str) -> Iterator[None]:
        """Say something else in one field of what these tools answer in the block."""
        self.said = dict.fromkeys(tools, (name, value))
        try:
            yield
        finally:
            self.said = {}

    async def answer(self, http: ClientSession, request: web.BaseRequest) -> web.StreamResponse:
        """Pass a request on, and what came back unless something else is due."""
        tool = request.headers.get("Mcp-Name", "")
        self.asked[tool] += 1
        answer = await passed(http, request, self.upstream)
        if self.lost.get(tool, 0) > 0:
            self.lost[tool] -= 1
            return cut(request)
        instead = self.said.get(tool)
        return answer if instead is None else _changed(answer, *instead)


@asynccontextmanager
async def wire(upstream: str) -> AsyncIterator[Wire]:
    """Listen on a free loopback port for as long as the block lasts."""
    made = Wire(upstream)
    async with listening(made.answer) as made.port:
        yield made


def _changed(answer: web.Response, name: str, value: str) -> web.Response:
    """The same status and the same answer but for one field of its result; an answer without one stays as it is."""
    body = answer.body
    try:
        message = json.loads(body) if isinstance(body, bytes) else None
    except ValueError:
        return answer
    match message:
        case {"result": {"structuredContent": dict(content)}}:
            for record in (content, content.get("record")):
                if isinstance(record, dict) and name in record:
                    record[name] = value
            return web.Response(status=answer.status, headers=answer.headers, body=json.dumps(message).encode())
        case _:
            return answer
