"""The notice family: a mail per business intention, sent by the handler itself and told as what it came to.

    locks of key and return ─ row `sending`, committed ─ deliver outside any transaction ─ row: what came of it ─ answer

Answers: `sent`; `queued` where it surely did not leave yet (the relay goes on); refused `notice_rejected` or
`delivery_unknown`. Accepted is not delivered: bounces are not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from shared_contracts.notices import NoticeKind
from tool_server.call import Answer, Answered, Call, refused
from tool_server.letter import Letter, compose, message_id
from tool_server.mail import Channel, Delivery
from tool_server.outbox import recorded, recover, redeliver
from tool_server.store import notices as store
from tool_server.store.calls import refuse
from tool_server.store.pool import Connection, Pool, UnavailableError
from tool_server.store.reading import answer
from tool_server.tools import Handler

_RECOVERIES_MAX = 3  # a handler may die between our look and our recovery; more than that is a fault


@dataclass(frozen=True, slots=True)
class Post:
    """How this server sends: its channel, its address, and the domain of its Message-IDs."""

    channel: Channel
    sender: str
    domain: str


@dataclass(frozen=True, slots=True)
class _Notice:
    kind: NoticeKind
    return_id: str
    corrects: str | None


def handlers(post: Post) -> dict[str, Handler]:
    """Give the family's handlers, which send by `post`."""

    async def send_return_notice(pool: Pool, call: Call) -> Answer:
        return await _send(pool, post, call, _Notice(NoticeKind.RETURN, call.arguments["return_id"], None))

    async def send_correction_notice(pool: Pool, call: Call) -> Answer:
        corrected = _Notice(NoticeKind.CORRECTION, call.arguments["return_id"], call.arguments["corrects"])
        return await _send(pool, post, call, corrected)

    async def find_notice(pool: Pool, call: Call) -> Answer:
        return await _find(pool, post.channel, call)

    return {
        "send_return_notice": send_return_notice,
        "send_correction_notice": send_correction_notice,
        "find_notice": find_notice,
    }


async def _send(pool: Pool, post: Post, call: Call, wanted: _Notice) -> Answer:
    async with store.holding(pool, store.within_of(call), wait=True, return_id=wanted.return_id) as connection:
        assert connection is not None, "waiting either gets the lock or raises"  # noqa: S101 — no input can cause it
        made = await _compose(connection, post, call, wanted)
        begun = made if isinstance(made, str) else await store.begin_sending(connection, call, *made)
        if isinstance(begun, store.Begun):
            return await _finish(pool, connection, post.channel, call, begun)
    if isinstance(made, str):
        return refused(await refuse(pool, call, made))
    return answer(begun, {"reason": "return_was_told"} if begun == "key_reused" else None)


async def _compose(
    connection: Connection, post: Post, call: Call, wanted: _Notice
) -> tuple[dict[str, Any], bytes] | str:
    """Give the outbox row and the finished mail, or the code of the refusal."""
    material = await store.material(connection, call, wanted.return_id, wanted.corrects)
    told = {"created"} if wanted.kind is NoticeKind.RETURN else {"created", "cancelled"}
    if material is not None and material.known:
        return {"channel": post.channel.name}, b""  # the key's own notice is sent, not a new one
    if material is None or material.return_status not in told:
        return "not_found"
    if material.recipient is None:
        return "notice_rejected"
    tenant, key = _tenant_and_key(call)
    letter = Letter(
        message_id=message_id(tenant, key, post.domain),
        sender=post.sender,
        recipient=material.recipient,
        order_id=call.arguments["order_id"],
        return_id=wanted.return_id,
        cancelled=material.return_status == "cancelled",
        items=material.items,
        corrects=wanted.corrects,
        written_at=material.now,
    )
    row = {
        "return_id": wanted.return_id,
        "kind": wanted.kind.value,
        "corrects": wanted.corrects,
        "message_id": letter.message_id,
        "channel": post.channel.name,
        "destination_ref": f"customer://{call.details.customer}/mail",
    }
    return row, compose(letter)


async def _finish(pool: Pool, connection: Connection, channel: Channel, call: Call, begun: store.Begun) -> Answer:
    outcome, reason = None, None
    if begun.waiting is not None:
        outcome, reason = recorded(await _deliver(channel, begun.waiting, begun.before))
    try:
        record, reason = await store.conclude(connection, call, outcome, reason)
    except psycopg.OperationalError:
        record, reason = await store.conclude(pool, call, outcome, reason)  # our connection broke while the mail left
    match record["status"]:
        case "rejected":
            return refused("notice_rejected", _because(reason))
        case "unknown":
            return refused("delivery_unknown", _because(reason))
        case _:
            return Answered(record)


async def _deliver(channel: Channel, waiting: store.Waiting, before: str | None) -> Delivery:
    if before == "sending":  # we hold the lock, so whoever began this is dead
        return await redeliver(channel, waiting)
    return await channel.deliver(waiting.message_id, waiting.content)


async def _find(pool: Pool, channel: Channel, call: Call) -> Answer:
    for _ in range(_RECOVERIES_MAX):
        code, result, stale = await store.look_up(pool, call)
        if not stale:
            return answer(code, result)
        await recover(pool, channel, store.within_of(call))
    raise UnavailableError("the notice's handlers die faster than they can be found dead")


def _tenant_and_key(call: Call) -> tuple[str, str]:
    return call.caller.claims.tenant_id, str(call.details.idempotency_key)


def _because(reason: str | None) -> dict[str, str]:
    return {} if reason is None else {"reason": reason}
