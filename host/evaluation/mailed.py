"""Which mails are a case's: those about its order that no other case has sent, and those of its own that are astray.

Invariant: a mail is another case's only where a row of that case's own, about this very order, has its id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from host.evaluation.notes import NotedCase, Notes
from host.evaluation.seen import Outside
from host.store.trial_tools import Provider

V = TypeVar("V")


def taken(notes: Notes) -> frozenset[str]:
    """Name every message that the mail server has taken."""
    return frozenset((*notes.unplaced, *(message for noted in notes.cases for message in noted.mailed)))


def own(noted: NotedCase, provider: Provider, others: Collection[str]) -> NotedCase:
    """Leave out what other cases have sent about an order that is theirs too; `others` are the keys of their calls."""
    order = str(noted.case.request["order_id"])
    theirs = {one.id for one in provider.made if one.idempotency_key in others and one.order_id == order}
    return noted.model_copy(
        update={
            "mailed": _without(noted.mailed, theirs),
            "named": _without(noted.named, theirs),
            "astray": tuple(one for one in noted.astray if one not in theirs),
        }
    )


def wrong(noted: NotedCase, made: Outside, return_ids: Collection[str], unplaced: Collection[str]) -> Iterator[str]:
    """Name those that went to somebody else, that name another return, or that name no order of any case."""
    yield from noted.astray
    if return_ids:
        yield from (one for one, named in noted.named.items() if not set(named) & set(return_ids))
    yield from (one for one in made.ids("notice") if one in unplaced)


def nobodys(notes: Notes, provider: Provider) -> tuple[str, ...]:
    """Name the messages without an order that no row knows either."""
    known = {one.id for one in provider.made}
    return tuple(one for one in notes.unplaced if one not in known)


def _without(of: Mapping[str, V], theirs: Collection[str]) -> dict[str, V]:
    return {one: value for one, value in of.items() if one not in theirs}
