"""Hold both databases and the mail against each other, with the auditors' own roles; every contradiction is named.

Invariant: nothing here believes what a worker or the tool server says of itself; it counts rows and files.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from email import message_from_bytes
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from host.domain.control import ENDS
from host.domain.step import key_of
from host.stack.roles import Side
from host.workflows.returns import RETURNS
from tests.crash.stand import Stand

Row = dict[str, Any]
RETURN, NOTICE = "create_return", "send_return_notice"


@dataclass(frozen=True)
class Books:
    """What each side has written down, and the Message-IDs of the mails that lie in the Maildir."""

    workflows: dict[UUID, Row]
    attempts: list[Row]
    effects: list[Row]
    returns: list[Row]
    notices: list[Row]
    log: list[Row]
    mails: list[str]

    def of(self, rows: list[Row], workflow: UUID) -> list[Row]:
        return [row for row in rows if row["workflow_id"] == workflow]


@dataclass(frozen=True)
class Verdict:
    """`faults` must be empty; `reviewed` are the workflows that a person has, with the reason."""

    faults: list[str]
    completed: int
    reviewed: dict[UUID, str]


def read_books(stand: Stand) -> Books:
    host, tools = stand.role(Side.HOST, "host_auditor"), stand.role(Side.TOOLS, "tools_auditor")
    with (
        psycopg.connect(host, autocommit=True, row_factory=dict_row) as ours,
        psycopg.connect(tools, autocommit=True, row_factory=dict_row) as theirs,
    ):
        workflows = ours.execute(
            "SELECT workflow_id, state, control_state, reason, created_at, updated_at FROM workflow"
        )
        attempts = ours.execute(
            "SELECT workflow_id, step, n, purpose, tool, jti, started_at, ended_at, outcome FROM attempt"
            " ORDER BY workflow_id, step, n"
        )
        effects = ours.execute("SELECT * FROM effect ORDER BY workflow_id, step, attempt")
        returns = theirs.execute("SELECT * FROM returns.returns WHERE idempotency_key IS NOT NULL")
        return Books(
            workflows={row["workflow_id"]: row for row in workflows.fetchall()},
            attempts=attempts.fetchall(),
            effects=effects.fetchall(),
            returns=returns.fetchall(),
            notices=theirs.execute("SELECT * FROM notices.audited").fetchall(),
            log=theirs.execute("SELECT * FROM calls.log WHERE use = 'call' ORDER BY seq").fetchall(),
            mails=_mails(stand),
        )


def _mails(stand: Stand) -> list[str]:
    """A mail is a file, so two files with one Message-ID are two mails."""
    files = (file for part in ("new", "cur") for file in (stand.parts.home.mail / part).iterdir())
    return [str(message_from_bytes(file.read_bytes())["Message-ID"]) for file in files]


def judge(books: Books, accepted: Collection[UUID]) -> Verdict:
    """Every accepted case has its one end and its effects once; nothing stands there that nobody asked for."""
    shelves = _sorted(books)
    faults = [
        *_lost(books, accepted),
        *_twice(books),
        *_unasked(books),
        *_unknown_calls(books),
        *(fault for row in books.workflows.values() for fault in _of_one(shelves, row)),
    ]
    states = {name: row["state"] for name, row in books.workflows.items()}
    reviewed = {name: row["reason"] for name, row in books.workflows.items() if states[name] == "NEEDS_REVIEW"}
    return Verdict(faults, sum(state == RETURNS.success for state in states.values()), reviewed)


def _lost(books: Books, accepted: Collection[UUID]) -> Iterator[str]:
    for workflow in accepted:
        row = books.workflows.get(workflow)
        if row is None:
            yield f"lost: {workflow} was accepted and is not there"
        elif row["control_state"] not in ENDS:
            yield f"stuck: {workflow} stands in {row['state']}/{row['control_state']} since {row['updated_at']}"
        elif row["state"] not in {RETURNS.success, "NEEDS_REVIEW"}:
            yield f"wrong end: {workflow} ended in {row['state']} ({row['reason']})"


def _twice(books: Books) -> Iterator[str]:
    counted = {
        "returns of one order": Counter(row["order_id"] for row in books.returns),
        "returns under one key": Counter(row["idempotency_key"] for row in books.returns),
        "notices of one kind of one return": Counter(f"{row['kind']} of {row['return_id']}" for row in books.notices),
        "mails of one notice": Counter(books.mails),
        "calls of one token in the log": Counter(
            row["jti"] for row in books.log if row["outcome"] not in {"begun", "token_used"}
        ),
    }
    for what, counts in counted.items():
        yield from (f"duplicate: {count} {what}, {name}" for name, count in counts.items() if count > 1)


def _unasked(books: Books) -> Iterator[str]:
    known = {row["idempotency_key"] for row in books.effects}
    for row in (*books.returns, *books.notices):
        if row["idempotency_key"] not in known:
            yield f"untracked effect: the ledger has no key {row['idempotency_key']}"
    told = {row["message_id"] for row in books.notices}
    yield from (f"untracked mail: no notice is {mail}" for mail in books.mails if mail not in told)


def _unknown_calls(books: Books) -> Iterator[str]:
    """Each call in the server's log is an attempt of ours, by its token, and of the same tool and workflow."""
    ours = {row["jti"]: row for row in books.attempts}
    for row in books.log:
        attempt = ours.get(row["jti"])
        if attempt is None:
            yield f"unknown call: {row['tool']} with token {row['jti']} of task {row['task_id']}"
        elif (attempt["tool"], str(attempt["workflow_id"])) != (row["tool"], row["task_id"]):
            yield f"foreign call: token {row['jti']} was made for {attempt['tool']} of {attempt['workflow_id']}"


@dataclass(frozen=True)
class _Shelves:
    """The books by what they are asked for."""

    returns: dict[str, list[Row]]
    notices: dict[str, list[Row]]
    effects: dict[UUID, list[Row]]
    attempts: dict[UUID, list[Row]]
    mails: frozenset[str]


def _sorted(books: Books) -> _Shelves:
    return _Shelves(
        _by(books.returns, "idempotency_key"),
        _by(books.notices, "idempotency_key"),
        _by(books.effects, "workflow_id"),
        _by(books.attempts, "workflow_id"),
        frozenset(books.mails),
    )


def _by(rows: list[Row], name: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[name]].append(row)
    return found


def _of_one(shelves: _Shelves, row: Row) -> Iterator[str]:
    """What the ledger says of a workflow's effects is what stands at the provider."""
    workflow, completed = row["workflow_id"], row["state"] == RETURNS.success
    effects = shelves.effects[workflow]
    doubtful = {effect["name"] for effect in effects if effect["outcome"] is None}
    stands = {
        RETURN: [found["return_id"] for found in shelves.returns[key_of(workflow, RETURN)]],
        NOTICE: [found["message_id"] for found in shelves.notices[key_of(workflow, NOTICE)]],
    }
    for name, found in stands.items():
        believed = [e["external_id"] for e in effects if e["name"] == name and e["outcome"] == "succeeded"]
        if found != believed and name not in doubtful:
            yield f"disagreement: {workflow} believes in {believed} of {name}, and there stands {found}"
        if completed and len(found) != 1:
            yield f"wrong count: {workflow} is COMPLETED with {len(found)} effects of {name}"
    if completed and any(e["outcome"] == "succeeded" and e["verified_at"] is None for e in effects):
        yield f"unverified: {workflow} is COMPLETED"
    if completed and (doubtful or any(attempt["outcome"] is None for attempt in shelves.attempts[workflow])):
        yield f"open: {workflow} is COMPLETED with something under way"
    for notice in shelves.notices[key_of(workflow, NOTICE)]:
        if (notice["message_id"] in shelves.mails) is not (notice["status"] == "sent"):
            yield f"mail and row differ: {notice['message_id']} of {workflow} is {notice['status']}"
        if completed and notice["status"] != "sent":
            yield f"unsent: {workflow} is COMPLETED and its notice is {notice['status']}"
