"""Delivery under the key's live lock, and what becomes of rows whose handler died.

    nobody alive, row `sending`:  Maildir → delivered again under its one name, no second mail → sent
                                  SMTP    → may have left → unknown, and never sent again by itself

Invariant: a message is only ever delivered by whoever holds its key's lock, outside of any transaction. A notice
whose return was cancelled while it waited is given up; only a correction tells of a cancelled return.
"""

from __future__ import annotations

from tool_server.mail import Channel, Delivery, Lost, NotSent, Rejected, Sent
from tool_server.store import notices as store
from tool_server.store.bounds import Bounds
from tool_server.store.pool import Pool


def recorded(delivery: Delivery) -> tuple[str, str | None]:
    """Give the row's status, and the reason, that a delivery leads to."""
    match delivery:
        case Sent():
            return "sent", None
        case Rejected(reason):
            return "rejected", reason
        case NotSent(reason):
            return "pending", reason
        case Lost(reason):
            return "unknown", reason


async def redeliver(channel: Channel, waiting: store.Waiting) -> Delivery:
    """Deliver a message that somebody may have delivered before he died; only where that is no second mail."""
    if channel.repeatable and waiting.channel == channel.name:
        return await channel.deliver(waiting.message_id, waiting.content)
    return Lost("handler died")


async def recover(pool: Pool, channel: Channel, within: Bounds) -> None:
    """Settle a row that says `sending` while nobody alive holds it."""
    async with store.holding(pool, within, wait=False) as connection:
        if connection is None:
            return
        await store.drop_cancelled(connection, within)
        waiting = await store.left_sending(connection, within)
        if waiting is not None:
            await store.settle(connection, within, *recorded(await redeliver(channel, waiting)))


async def deliver_due(pool: Pool, channel: Channel, within: Bounds) -> bool:
    """Deliver a waiting message that no live handler holds; tell whether it was tried."""
    async with store.holding(pool, within, wait=False) as connection:
        if connection is None:
            return False
        await store.drop_cancelled(connection, within)
        waiting = await store.take(connection, within, channel.name)
        if waiting is None:
            return False
        delivery = await channel.deliver(waiting.message_id, waiting.content)
        await store.settle(connection, within, *recorded(delivery))
        return True
