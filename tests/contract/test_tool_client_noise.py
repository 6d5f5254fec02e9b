"""Bytes that no list of faults foresaw: a good answer, cut, doubled and flipped at random."""

from __future__ import annotations

import random

import pytest

from host.domain.outcome import Rejected, Success, Unknown
from tests.support.calling import READ, WRITE, pair, request, run, told
from tests.support.results import RESULTS

ROUNDS = 60


def _spoilt(answer: bytes, dice: random.Random) -> bytes:
    spoilt = bytearray(answer)
    for _ in range(dice.randint(1, 4)):
        at, length = dice.randrange(len(spoilt) + 1), dice.randint(1, 30)
        match dice.randrange(4):
            case 0:
                del spoilt[at : at + length]
            case 1:
                spoilt[at:at] = spoilt[at : at + length]
            case 2:
                spoilt[at:at] = dice.randbytes(length)
            case _:
                spoilt[at : at + 1] = bytes([dice.randrange(256)])
    return bytes(spoilt)


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_an_outcome_and_harms_no_later_call(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - a test that failed must fail again

    async def scene() -> set[str]:
        kinds: set[str] = set()
        async with pair(by_order={"noisy": "garbled"}) as (server, client):
            server.garble = lambda answer: _spoilt(answer, dice)
            for _ in range(ROUNDS):
                written = await client.call(request(WRITE, "noisy", timeout_seconds=1.0))
                # No row of the table that proves a refusal can come out of a spoilt success.
                assert isinstance(written, Success | Unknown)
                kinds.add(type(written).__name__)
                assert told(await client.call(request(READ))) == ("Success", "")
                read = await client.call(request(READ, "noisy", timeout_seconds=1.0))
                assert isinstance(read, Success | Rejected)
                if isinstance(read, Success):
                    assert read.result.keys() == RESULTS[READ].keys()
                assert told(await client.call(request(READ))) == ("Success", "")
        return kinds

    assert "Unknown" in run(scene())
