"""What this proves: a tool server's death under a request is told from a hang-up, which only looks the same at first.

Only the first is no attempt of the case's, and neither of them says anything about a write's effect.
"""

from __future__ import annotations

import asyncio
import sys

import pytest

from host.domain.outcome import CallError, Rejected, Unknown
from host.tool_client.client import ToolClient
from tests.support.calling import PROBE, READ, WRITE, pair, request, run

SERVER = (sys.executable, "-m", "tests.support.hostile_server", "0", "hangs")


def _error(outcome: object) -> CallError:
    assert isinstance(outcome, Rejected | Unknown)
    return outcome.error


@pytest.mark.parametrize("tool", [READ, WRITE])
def test_a_server_that_is_killed_under_a_request_has_cut_it_off(tool: str) -> None:
    async def scene() -> object:
        process = await asyncio.create_subprocess_exec(*SERVER, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        async with asyncio.timeout(30):
            port = int((await process.stdout.readline()).split()[1])
            async with ToolClient(f"http://127.0.0.1:{port}/mcp", lambda: PROBE) as client:
                calling = asyncio.create_task(client.call(request(tool)))
                assert await process.stdout.readline() == b"call\n"
                process.kill()
                outcome = await calling
            await process.wait()
        return outcome

    outcome = run(scene())
    assert _error(outcome).cut_off
    assert _error(outcome).outcome == "cut_off"
    assert isinstance(outcome, Unknown) is (tool == WRITE)


@pytest.mark.parametrize("tool", [READ, WRITE])
@pytest.mark.parametrize("behaviour", ["closes", "resets"])
def test_a_server_that_hangs_up_and_still_listens_has_answered_badly(tool: str, behaviour: str) -> None:
    async def scene() -> CallError:
        async with pair(behaviour=behaviour) as (_, client):
            return _error(await client.call(request(tool)))

    error = run(scene())
    assert not error.cut_off
    assert error.outcome == ("connection_lost" if tool == WRITE else "no_answer")
