"""A person's yes: how soon after it the approved call leaves on a running stack, and what it costs to verify.

Both sides hold an event to the same rules; the host besides against the call that it stored, the tool server against
an action that it builds anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.domain.state import Asked
from host.engine.approval import request_of, void
from host.engine.drive import load
from host.engine.parts import Parts
from shared_contracts.approval import LIFETIME, ApprovalEvent, action_digest, held_against, jwk_of, opened, sign
from tests.bench.cpu import QUIET_MS, yardstick
from tests.bench.figures import Figure
from tests.bench.returns import opened as driving
from tests.bench.stand import Stand, directory
from tests.bench.waiting import one_waiting

EFFECT_SECONDS_MAX, VERIFY_MS_MAX, TIMES = 1.0, 0.5, 500
GIVEN_UP_SECONDS = 120.0
EXAMPLES = Path(__file__).parents[2] / "examples" / "returns"
HIGH = ("high-value", "fault-approval-expiry")
APPROVER = "tanaka"


async def measure(made: Stand) -> list[Figure]:
    """Give the seconds of the first and the CPU milliseconds of the second."""
    async with driving(made, 1) as driver:
        host, server = await _verifying(driver.parts, await one_waiting(driver))
    with directory() as within:
        seconds = await _taking_effect(within)
    return [
        Figure("from the signed yes to the approved call's dispatch", max(seconds), "s", "≤", EFFECT_SECONDS_MAX),
        Figure("verifying an approval, host", *_scaled(host)),
        Figure("verifying an approval, tool server (without its reads)", *_scaled(server)),
    ]


def _scaled(ms: float) -> tuple[float, str, Any, float, float]:
    return ms * QUIET_MS / yardstick(), "ms", "≤", VERIFY_MS_MAX, ms


async def _verifying(parts: Parts, workflow_id: Any) -> tuple[float, float]:
    """Time both sides' checks of one good approval; raises RuntimeError where it does not hold."""
    key, state = Ed25519PrivateKey.generate(), await load(parts, workflow_id)
    asked, call = state.evidence.asked, state.in_hand()
    if asked is None:
        raise RuntimeError("nothing is asked")
    public = jwk_of(key.public_key())
    text = sign(_event(state.task, asked), key, public.kid)
    decided = replace(asked, event=text, key=(public.kid, APPROVER, public.x))
    known = replace(state, evidence=replace(state.evidence, asked=decided))
    tool, approvers = parts.registry[call.tool], parts.authorization.approvers

    def host() -> object:
        return void(parts, known, tool, call)

    def server() -> object:
        event = opened(text, lambda _kid: (APPROVER, key.public_key()))
        request = request_of(known, decided).model_copy(update={"action_digest": action_digest(asked.action)})
        return held_against(event, request, approvers, asked.read_at)

    return _each_ms(host), _each_ms(server)


def _event(task: Any, asked: Asked) -> ApprovalEvent:
    return ApprovalEvent(
        event_id="bench", workflow_id=str(task.workflow_id), version=asked.version, tenant_id=task.tenant_id,
        subject=task.principal, tool=asked.action.tool, resource=asked.action.resource,
        action_digest=asked.action_digest, decision="approve", reason="", approver=APPROVER,
        requested_at=asked.expires_at - LIFETIME, decided_at=asked.read_at, expires_at=asked.expires_at,
    )  # fmt: skip


def _each_ms(check: Callable[[], object]) -> float:
    if check() is not None:
        raise RuntimeError(f"the approval does not hold: {check()}")
    began = time.thread_time_ns()
    for _ in range(TIMES):
        check()
    return (time.thread_time_ns() - began) / 1e6 / TIMES


async def _taking_effect(within: Path) -> Sequence[float]:
    home = within / "home"
    settings = {"KESSAI_HOME": str(home), "KESSAI_APPROVERS": str(within / "keys")}
    await _kessai(settings, 0, "up")
    try:
        await _kessai(settings, 0, "approver", "add", APPROVER, "--no-passphrase")
        return [await _approved(settings, name) for name in HIGH]
    finally:
        await _kessai(settings, 0, "down")
        await _kessai(settings, 0, "empty", "--yes")


async def _approved(settings: dict[str, str], example: str) -> float:
    record = json.loads(await _kessai(settings, 10, "run", str(EXAMPLES / f"{example}.json"), "--json"))
    name, digest = record["workflow_id"], record["approvals"][-1]["action_digest"]
    taken = json.loads(
        await _kessai(settings, 0, "approve", name, "--as", APPROVER, "--yes", "--digest", digest, "--json")
    )
    done = json.loads(await _kessai(settings, 0, "run", name, "--json"))  # follows it to its end
    started = next(call["times"]["started"] for call in done["calls"] if call["tool"] == "create_return")
    return (datetime.fromisoformat(started) - datetime.fromisoformat(taken["decided_at"])).total_seconds()


async def _kessai(settings: dict[str, str], code: int, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KESSAI_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "host.cli", *arguments, env=environment | settings,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(GIVEN_UP_SECONDS):
        said, complained = await process.communicate()
    if process.returncode != code:
        raise RuntimeError(f"kessai {arguments[0]} ended with {process.returncode}: {complained.decode()[-2000:]}")
    return said.decode()
