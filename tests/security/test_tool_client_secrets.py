"""A token reaches the tool server and nothing else: no log, no outcome, no error text, no traceback beside it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from host.domain.outcome import Outcome
from tests.support.calling import PROBE, READ, TOKEN, WRITE, client_of, request, run
from tests.support.hostile_server import FakeToolServer
from tests.support.hostile_wire import BEHAVIOURS

SECRETS = [*TOKEN.split("."), *PROBE.split(".")]


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_no_behaviour_of_a_server_brings_a_token_or_a_traceback_into_logs_or_outcomes(
    era: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async def one(behaviour: str, tool: str) -> Outcome:
        async with FakeToolServer(era=era, behaviour=behaviour) as server, client_of(server) as client:
            outcome = await client.call(request(tool, timeout_seconds=0.5))
            server.released.set()
            return outcome

    async def scene() -> list[Outcome]:
        outcomes = []
        for behaviour in sorted(BEHAVIOURS):
            outcomes += await asyncio.gather(one(behaviour, READ), one(behaviour, WRITE))
        return outcomes

    with caplog.at_level(logging.DEBUG):
        outcomes = run(scene())
    captured = capfd.readouterr()
    everything = "\n".join([caplog.text, captured.out, captured.err, *map(repr, outcomes)])
    assert not [secret for secret in SECRETS if secret in everything]
    assert "Traceback" not in everything
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("negotiate", sorted(BEHAVIOURS))
def test_no_failed_negotiation_brings_a_token_or_a_traceback_into_logs(
    negotiate: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> Outcome:
        async with FakeToolServer(negotiate=negotiate) as server, client_of(server) as client:
            outcome = await client.call(request(READ, timeout_seconds=0.5))
            server.released.set()
            return outcome

    with caplog.at_level(logging.DEBUG):
        outcome = run(scene())
    assert not [secret for secret in SECRETS if secret in caplog.text + repr(outcome)]
    assert "Traceback" not in caplog.text
