"""A tool server's process that sends one notice and is killed on the way, at the point that it is told.

python -m tests.support.dying_sender POINT     with settings, call and point as JSON on standard input
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.tool_shop import Shop, ask
from tool_server.dispatch import Dispatcher
from tool_server.mail import Delivery, Maildir
from tool_server.post import open_post
from tool_server.settings import Settings
from tool_server.tools import notices
from tool_server.tools.notices import Post

BEFORE, AFTER, NEVER = "before_delivery", "after_delivery", "never"


class DyingMaildir(Maildir):
    """A Maildir whose process ends before or after the mail stands there."""

    def __init__(self, root: Path, point: str) -> None:
        super().__init__(root)
        self._point = point

    async def deliver(self, message_id: str, content: bytes) -> Delivery:
        if self._point == BEFORE:
            os.kill(os.getpid(), signal.SIGKILL)
        delivery = await super().deliver(message_id, content)
        if self._point == AFTER:
            os.kill(os.getpid(), signal.SIGKILL)
        return delivery


def plain(settings: Settings) -> dict[str, Any]:
    """Settings as JSON; their secrets too, for the process is ours."""
    values = settings.model_dump(mode="json")
    secrets = {name: getattr(settings, name) for name in values if name.endswith("_dsn")}
    return values | {name: one.get_secret_value() for name, one in secrets.items() if one is not None}


def started(shop: Shop, point: str, return_id: str, key: str) -> subprocess.Popen[bytes]:
    """Start the process; it sends at once."""
    told = {"settings": plain(shop.settings), "point": point, "return_id": return_id, "key": key}
    command = [sys.executable, "-m", "tests.support.dying_sender"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert process.stdin is not None
    process.stdin.write(json.dumps(told).encode())
    process.stdin.close()
    return process


async def _send(told: dict[str, Any]) -> None:
    settings = Settings(**told["settings"])
    tools = Dispatcher(settings)
    if settings.maildir is not None and settings.smtp_host is None:
        post = open_post(settings)
        dying = Post(DyingMaildir(settings.maildir, told["point"]), post.sender, post.domain)
        tools._handlers |= notices.handlers(dying)
    async with tools:
        arguments = {"order_id": "A-1", "return_id": told["return_id"]}
        await ask(tools, "send_return_notice", arguments, key=told["key"])


if __name__ == "__main__":
    asyncio.run(_send(json.load(sys.stdin)))
