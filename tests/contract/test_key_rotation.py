"""Keys follow one another under load with no call refused, and a stolen one is refused from the next call on."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from host.domain.outcome import Outcome, Rejected, Success
from host.engine.parts import Request, new_id, new_jti
from host.stack import rotation
from host.stack.keys import KeyFiles, ensure_key_files, key_files_in, read_signing_key
from host.stack.signing import SigningFile
from host.tool_client.client import CallRequest, ToolClient
from host.tool_client.mint import Minter, SigningKey
from host.tool_client.readiness import why_refused
from shared_contracts.tools import TOOLS
from tests.support.calling import run
from tests.support.results import RESULTS
from tests.support.server import Server, StubDispatcher, running
from tests.support.tokens import ISSUER
from tool_server.call import Answered

ARGUMENTS = {"order_id": "A-1"}
CALLS, AT_ONCE, ROTATIONS = 300, 8, 3


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(StubDispatcher(answer=lambda *_: Answered(RESULTS["get_order"])), tmp_path) as server:
        ensure_key_files(key_files_in(tmp_path), ISSUER)
        yield server


@pytest.fixture
def files(server: Server) -> KeyFiles:
    return key_files_in(server.issuer.directory)


def minter_of(server: Server, files: KeyFiles) -> Minter:
    return Minter(SigningFile(files.signing, SigningKey.from_jwk), ISSUER, server.issuer.resource)


def asked(minter: Minter) -> CallRequest:
    contract = TOOLS["get_order"]
    request = Request(
        jti=new_jti(), tenant_id="tenant-a", subject="agent-1", workflow_id=new_id(), tool=contract, customer="C-1",
        resource="A-1", arguments=ARGUMENTS, attempt=1, requested_at=datetime.now(UTC), timeout_seconds=10.0,
        idempotency_key=None, correlation={}, approval=None, approved_version=None,
    )  # fmt: skip
    return CallRequest(contract, ARGUMENTS, minter.call(request), request.timeout_seconds, request.correlation)


async def follow(server: Server, files: KeyFiles) -> str:
    """One rotation, as the command does it."""
    with rotation.changing(files):
        following = rotation.publish_next(files, time.time())
        trying = Minter(SigningKey.from_jwk(following), ISSUER, server.issuer.resource)
        assert await why_refused(server.url, trying.probe, 10) is None
        return rotation.sign_with_next(files, time.time())


def test_keys_follow_one_another_under_load_and_no_call_is_refused(server: Server, files: KeyFiles) -> None:
    minter, left = minter_of(server, files), iter(range(CALLS))
    signed: list[str] = [str(read_signing_key(files.signing)["kid"])]

    async def scene() -> list[Outcome]:
        seen: list[Outcome] = []
        made = asyncio.Semaphore(0)
        async with ToolClient(server.url, minter.probe) as client:

            async def caller() -> None:
                for _ in left:
                    outcome = await client.call(asked(minter))
                    seen.append(outcome)
                    made.release()

            async def changer() -> None:
                for _ in range(ROTATIONS):
                    for _ in range(CALLS // (ROTATIONS + 2)):
                        await made.acquire()
                    signed.append(await follow(server, files))

            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(caller())
                group.create_task(changer())
        return seen

    assert Counter(type(one) for one in run(scene())) == {Success: CALLS}
    kids = Counter(caller.kid for caller, _, _ in server.dispatcher.calls)
    assert set(kids) == set(signed)
    assert len(set(signed)) == ROTATIONS + 1


def test_a_stolen_key_is_refused_from_the_next_call_on_and_the_host_goes_on_with_another(
    server: Server, files: KeyFiles
) -> None:
    minter = minter_of(server, files)
    stolen = Minter(SigningKey.from_jwk(read_signing_key(files.signing)), ISSUER, server.issuer.resource)

    async def scene() -> list[Outcome]:
        async with ToolClient(server.url, minter.probe) as client:
            before = [await client.call(asked(one)) for one in (minter, stolen)]
            old = str(read_signing_key(files.signing)["kid"])
            await follow(server, files)
            rotation.cut_off(files, old)
            return before + [await client.call(asked(one)) for one in (minter, stolen)]

    first, theirs, ours, refused = run(scene())
    assert [type(one) for one in (first, theirs, ours)] == [Success] * 3
    assert isinstance(refused, Rejected)
    assert refused.error.code == "token_invalid"


def test_a_key_that_the_tool_server_does_not_know_is_found_out_before_it_signs(server: Server, files: KeyFiles) -> None:
    following = rotation.publish_next(files, time.time())
    files.jwks.write_text(files.jwks.read_text().replace(following["kid"], "another"))
    stranger = Minter(SigningKey.from_jwk(following), ISSUER, server.issuer.resource)

    async def scene() -> str | None:
        return await why_refused(server.url, stranger.probe, 0.2)

    assert "refused our probe token" in str(run(scene()))
    assert read_signing_key(files.signing)["kid"] != following["kid"]
