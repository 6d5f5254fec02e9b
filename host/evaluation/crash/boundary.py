"""Ends this very process before or after one of its commits, or writes all of them down. Only the nursery loads it.

    {"at": "before commit_steps 3"}   killed before the third commit of that name is asked for; `after`: once it is done
    {"at": …, "by": "SIGSTOP"}        held there instead
    {"trace": file}                   a line per transaction that wrote: its name, its place and its number

A commit is named by the function that its last statement calls. Invariant: whatever this process commits passes
here, and a test holds the trace's numbers against the database's own log of commits. No setting and no variable of a
program leads here: who is not born by the nursery has never loaded this module.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from host.evaluation.crash.names import AT, BY, LINK, TRACE

Around = Callable[[Any, str, Callable[[], Awaitable[Any]]], Awaitable[Any]]
Linked = Callable[[Callable[[], None]], None]
_CALLED = re.compile(r"\b(?:FROM|SELECT)\s+(?:unnest\()?\s*([a-z_]\w*(?:\.\w+)?)\s*\(")
_ENTERED = re.compile(r"calls\.enter\(.*?\) AS \w+, (?:LATERAL )?")  # it bounds what follows, and is no act itself
_NUMBER = "SELECT pg_current_xact_id_if_assigned()::text"
_execute = psycopg.AsyncCursor.execute
_leave = psycopg.AsyncTransaction.__aexit__
_commit = psycopg.AsyncConnection.commit
_link = os.link
_last: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_counted: Counter[str] = Counter()


def install(order: Mapping[str, str]) -> None:
    """Take this process's commits in hand, as it was ordered; an order that says something else raises."""
    if AT in order:
        when, name, number = order[AT].split()
        _dying(when, name, int(number), order.get(BY, "SIGKILL"))
    elif order:
        _noting(Path(order[TRACE]))


def name_of(query: object) -> str:
    """Name a statement by what it calls first; by its first words where it calls nothing."""
    text = query if isinstance(query, str) else str(query)
    found = _CALLED.search(_ENTERED.sub("", text, count=1))
    return "_".join(text.split()[:3]) if found is None else re.sub(r"_v\d+$", "", found[1])


def _next(of: str) -> int:
    """Count one; two commits of a name may be under way, and the number of the one is not that of the other."""
    _counted[of] += 1
    return _counted[of]


def _dying(when: str, name: str, number: int, by: str) -> None:
    sent = signal.Signals[by]

    def reached(moment: str, of: str, n: int) -> None:
        if (moment, of, n) == (when, name, number):
            sys.stderr.write(f"{by} {moment} {of} {number}\n")
            sys.stderr.flush()
            os.kill(os.getpid(), sent)

    async def around(_connection: Any, of: str, commit: Callable[[], Awaitable[Any]]) -> Any:
        n = _next(of)
        reached("before", of, n)
        done = await commit()
        reached("after", of, n)
        return done

    def linked(link: Callable[[], None]) -> None:
        n = _next(LINK)
        reached("before", LINK, n)
        link()
        reached("after", LINK, n)

    _take_over(around, blocks=False)
    _watch_mail(linked)


def _noting(file: Path) -> None:
    """A transaction has a number as soon as it wrote something; a read has none."""

    def note(of: str, n: int, number: str | None) -> None:
        line = {"name": of, "n": n, "xid": None if number is None else int(number)}
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    async def around(connection: Any, of: str, commit: Callable[[], Awaitable[Any]]) -> Any:
        n = _next(of)
        row = await (await _execute(connection.cursor(row_factory=tuple_row), _NUMBER)).fetchone()
        if row is not None and row[0] is not None:
            note(of, n, str(row[0]))
        return await commit()

    def linked(link: Callable[[], None]) -> None:
        note(LINK, _next(LINK), None)
        link()

    _take_over(around, blocks=True)
    _watch_mail(linked)


def _watch_mail(linked: Linked) -> None:
    """A file that appears in a Maildir is no commit, and yet what cannot be undone."""

    def link(source: Any, target: Any, **how: Any) -> None:
        if Path(target).parent.name == "new":
            linked(lambda: _link(source, target, **how))
        else:
            _link(source, target, **how)

    name = "link"  # of another type than ours, which a plain assignment would have to deny
    setattr(os, name, link)


def _take_over(around: Around, *, blocks: bool) -> None:
    """Pass each commit through `around`; with `blocks` also that of a single statement is one it can ask before."""

    async def execute(cursor: Any, query: Any, *given: Any, **named: Any) -> Any:
        connection = cursor.connection
        name = _last[connection] = name_of(query)
        if not (connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE):
            return await _execute(cursor, query, *given, **named)
        if blocks:
            async with connection.transaction():
                return await _execute(cursor, query, *given, **named)
        return await around(connection, name, lambda: _execute(cursor, query, *given, **named))

    async def leave(block: Any, kind: Any, error: Any, trace: Any) -> Any:
        if kind is not None or not block._outer_transaction:  # noqa: SLF001 - a savepoint commits nothing
            return await _leave(block, kind, error, trace)
        return await around(block.connection, _last[block.connection], lambda: _leave(block, kind, error, trace))

    async def commit(connection: Any) -> None:
        if connection.info.transaction_status == TransactionStatus.INTRANS:
            await around(connection, _last[connection], lambda: _commit(connection))

    owned = ((psycopg.AsyncCursor, execute), (psycopg.AsyncTransaction, leave), (psycopg.AsyncConnection, commit))
    for (owner, ours), name in zip(owned, ("execute", "__aexit__", "commit"), strict=True):
        setattr(owner, name, ours)
