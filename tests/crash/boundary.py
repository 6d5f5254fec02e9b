"""Ends this very process before or after one of its commits, or writes all of them down. Only launchers load it.

CRASH_AT=before commit_steps 3 kills it before the third commit of that name is asked for, with `after` once it is
done; CRASH_BY=SIGSTOP holds it there instead. CRASH_TRACE=file writes a line per transaction that wrote: its name and
its transaction's number.

A commit is named by the function that its last statement calls. Invariant: whatever this process commits passes
here, and a test holds the trace's numbers against the database's own log of commits.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from tool_server.mail import Maildir

AT, BY, TRACE = "CRASH_AT", "CRASH_BY", "CRASH_TRACE"
LINK = "maildir_link"  # no commit, and yet what cannot be undone: the mail appears
Around = Callable[[Any, str, Callable[[], Awaitable[Any]]], Awaitable[Any]]
_CALLED = re.compile(r"\b(?:FROM|SELECT)\s+(?:unnest\()?\s*([a-z_]\w*(?:\.\w+)?)\s*\(")
_NUMBER = "SELECT pg_current_xact_id_if_assigned()::text"
_execute = psycopg.AsyncCursor.execute
_leave = psycopg.AsyncTransaction.__aexit__
_commit = psycopg.AsyncConnection.commit
_link = Maildir._link
_last: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_counted: Counter[str] = Counter()


def install() -> None:
    """Take this process's commits in hand, if its environment asks for it."""
    if AT in os.environ:
        when, name, number = os.environ[AT].split()
        _take_over(_dying(when, name, int(number)), blocks=False)
    elif TRACE in os.environ:
        _take_over(_noting(Path(os.environ[TRACE])), blocks=True)


def name_of(query: object) -> str:
    """Name a statement by what it calls first; by its first words where it calls nothing."""
    text = query if isinstance(query, str) else str(query)
    found = _CALLED.search(text)
    return " ".join(text.split()[:3]) if found is None else re.sub(r"_v\d+$", "", found[1])


def _dying(when: str, name: str, number: int) -> Around:
    by = os.environ.get(BY, "SIGKILL")

    def reached(moment: str, of: str) -> None:
        if (moment, of, _counted[of]) == (when, name, number):
            sys.stderr.write(f"{by} {moment} {of} {number}\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.Signals[by])

    async def around(_connection: Any, of: str, commit: Callable[[], Awaitable[Any]]) -> Any:
        _counted[of] += 1
        reached("before", of)
        done = await commit()
        reached("after", of)
        return done

    def link(maildir: Any, file: str, content: bytes) -> None:
        _counted[LINK] += 1
        reached("before", LINK)
        _link(maildir, file, content)
        reached("after", LINK)

    name_of_link = "_link"  # of another type than ours, which a plain assignment would have to deny
    setattr(Maildir, name_of_link, link)
    return around


def _noting(file: Path) -> Around:
    """A transaction has a number as soon as it wrote something; a read has none."""

    async def around(connection: Any, of: str, commit: Callable[[], Awaitable[Any]]) -> Any:
        row = await (await _execute(connection.cursor(row_factory=tuple_row), _NUMBER)).fetchone()
        if row is not None and row[0] is not None:
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"name": of, "xid": int(row[0])}) + "\n")
        return await commit()

    return around


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
        if kind is not None or not block._outer_transaction:
            return await _leave(block, kind, error, trace)
        return await around(block.connection, _last[block.connection], lambda: _leave(block, kind, error, trace))

    async def commit(connection: Any) -> None:
        if connection.info.transaction_status == TransactionStatus.INTRANS:
            await around(connection, _last[connection], lambda: _commit(connection))

    owned = ((psycopg.AsyncCursor, execute), (psycopg.AsyncTransaction, leave), (psycopg.AsyncConnection, commit))
    for (owner, ours), name in zip(owned, ("execute", "__aexit__", "commit"), strict=True):
        setattr(owner, name, ours)
