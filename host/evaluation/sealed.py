"""Verifies both sides' sealed records, as they stand or from an export, and writes the export.

    what the host keeps of the tool server ──► the tool server, one instant ──► the host, one later instant

In this order nothing that one side keeps of the other can be newer than what is read of it. Invariant: keys come from
whoever verifies; none is read from a database or an export.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from host.domain.seal_walk import PENDING_SECONDS, Walk
from host.domain.sealed import Chain, Finding, Kind, Line, Restored, Unsealed, Verdict
from host.evaluation.audit import Auditors, reading
from host.store import sealed
from shared_contracts.seal import SealKeys, SideName, keys_of
from shared_contracts.strict_json import NotJsonError, strict_json

FORMAT = "kessai-record-1"
LINE_BYTES_MAX = 1 << 22  # an honest one has some thousand; what is longer is read as two, of which neither is one
SIDES: tuple[SideName, ...] = ("host", "tools")


class NotAnExportError(ValueError):
    """The file is no export, or not a whole one; the text says which line."""


@dataclass(frozen=True, slots=True)
class _Side:
    chain: Chain
    signed_to: int
    lines: Callable[[], AsyncIterator[Line]]

    @property
    def end(self) -> float:
        """Up to which line it is exported: what a head is about to cover waits for the next, what misses one shows."""
        about_to_be = all(seconds < PENDING_SECONDS for _, seconds in self.chain.unsigned)
        return self.signed_to if about_to_be else math.inf


async def verified(auditors: Auditors, keys: SealKeys) -> Mapping[SideName, Verdict]:
    """Verify both records as they stand, and each line against its row. Raises NotReadyError."""
    found: dict[SideName, Verdict] = {}
    async with _both(auditors) as both:
        for side, one in both.items():
            walk = Walk(one.chain, keys_of(keys, side))
            async for line in one.lines():
                walk.line(line)
            found[side] = walk.verdict()
    return found


async def exported(auditors: Auditors, write: Callable[[str], object]) -> Mapping[SideName, int]:
    """Write both records, a JSON document a line; gives how many lines each has. Raises NotReadyError, OSError."""
    counts: dict[SideName, int] = {}
    async with _both(auditors) as both:
        write(_text({"format": FORMAT}))
        for side, one in both.items():
            for document in _described(one.chain):
                write(_text({"side": side, **document}))
            counts[side] = 0
            async for line in one.lines():
                if line.n > one.end:
                    continue
                kept = [line.n, line.source, line.row_id, line.sealed, line.chained, line.erased]
                write(_text({"side": side, "line": kept}))
                counts[side] += 1
        write(_text({"end": counts}))
    return counts


def verified_export(texts: Iterable[bytes], keys: SealKeys) -> Mapping[SideName, Verdict]:
    """Verify an export by itself; raises NotAnExportError."""
    documents = _documents(texts)
    if next(documents, None) != {"format": FORMAT}:
        raise NotAnExportError("it does not begin as an export does")
    found: dict[SideName, Verdict] = {}
    counts: dict[str, int] = {}
    chains: dict[SideName, Chain] = {}
    kept: dict[SideName, list[Line]] = {side: [] for side in SIDES}
    ended: dict[SideName, str] = {}
    try:
        document = next(documents)
        for side in SIDES:
            described = []
            while document.get("side") == side and "line" not in document:
                described.append(document)
                document = next(documents)
            chains[side] = _chain(side, described)
            walk = Walk(chains[side], keys_of(keys, side))
            counts[side] = 0
            while document.get("side") == side:
                n, source, row_id, text, place, erased = document["line"]
                line = Line(n, source, row_id, text, place, erased=erased, stands=None, known=False)
                walk.line(line)
                if source == "kept":
                    kept[side].append(line)
                counts[side] += 1
                document = next(documents)
            found[side] = walk.verdict()
            ended[side] = walk.heads[max(walk.heads)].at if walk.heads else ""
        _agree_on_restores(chains["host"], chains["tools"])
        # what the host keeps is read first, so that its last lines may tell of newer heads than those
        found["host"].findings.extend(_heads_gone("host", kept["host"], chains["tools"], ended["host"]))
        found["tools"].findings.extend(_heads_gone("tools", kept["tools"], chains["host"], ""))
    except StopIteration:
        raise NotAnExportError("its end is missing") from None
    except NotAnExportError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # AttributeError: what should be text is none
        raise NotAnExportError(f"a line does not hold what it should ({type(error).__name__})") from error
    if document != {"end": counts} or next(documents, None) is not None:
        raise NotAnExportError("its end does not fit what comes before it")
    return found


def _agree_on_restores(host: Chain, tools: Chain) -> None:
    if (host.restored_there, tools.restored_there) != (tools.restored, host.restored):
        raise NotAnExportError("its two sides do not tell of the same restores")


def _heads_gone(side: SideName, kept: list[Line], of: Chain, ended: str) -> Iterator[Finding]:
    """An end that was cut off an export together with the copies of its heads: the other side's lines tell of them.

    A head beyond the copies may be one that was kept while it was exported: just before the end, where that is given.
    """
    listed = dict(of.witnesses)
    newest = max(listed, default=0)
    for line in kept:
        seen, said = int(line.row_id), strict_json(line.sealed.encode())
        if seen > newest and ended and _seconds(said["at"], ended) < PENDING_SECONDS:
            continue
        digest = hashlib.sha256(listed[seen].encode()).hexdigest() if seen in listed else ""
        if said.get("signed") != f"sha256:{digest}":
            why = "the head of the other side that this line tells of is not in the export"
            yield Finding(side, Kind.REMOVED, line.n, (line.name,), why)


def _seconds(since: str, until: str) -> float:
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()


@asynccontextmanager
async def _both(auditors: Auditors) -> AsyncIterator[Mapping[SideName, _Side]]:
    async with reading("KESSAI_AUDIT_HOST_DSN", auditors.host) as before:
        kept_by_host = await sealed.witnesses(before, "host")
    async with (
        reading("KESSAI_AUDIT_TOOLS_DSN", auditors.tools) as tools,
        _begun(tools),
        reading("KESSAI_AUDIT_HOST_DSN", auditors.host) as host,
    ):
        kept_by_tools = await sealed.witnesses(tools, "tools")
        of_host, of_tools = await sealed.restored(host, "host"), await sealed.restored(tools, "tools")
        chains = {
            "host": await sealed.chain(host, "host", kept_by_tools, of_tools),
            "tools": await sealed.chain(tools, "tools", kept_by_host, of_host),
        }
        yield {
            "host": _Side(chains["host"], await sealed.signed_to(host, "host"), lambda: sealed.lines(host, "host")),
            "tools": _Side(
                chains["tools"], await sealed.signed_to(tools, "tools"), lambda: sealed.lines(tools, "tools")
            ),
        }


@asynccontextmanager
async def _begun(connection: AsyncConnection[Any]) -> AsyncIterator[None]:
    """A snapshot is of when something is first read in it."""
    await connection.execute("SELECT 1")
    yield


def _described(chain: Chain) -> Iterator[dict[str, Any]]:
    yield {
        "chain": chain.chain,
        "cut": chain.cut,
        "restored": [[one.n, one.seen] for one in chain.restored],
        "restored_there": [[one.n, one.seen] for one in chain.restored_there],
        "unsealed": [[one.source, one.row_id, one.behind, one.seconds] for one in chain.unsealed],
    }
    yield from ({"head": head} for head in chain.heads)
    yield from ({"kept": list(one)} for one in chain.witnesses)


def _chain(side: SideName, documents: list[dict[str, Any]]) -> Chain:
    """Read what it says of a side. That an act or a head is about to come excuses nothing: anybody can write that."""
    about, *rest = documents
    unsealed = (Unsealed(*one) for one in about["unsealed"])
    return Chain(
        side=side,
        chain=about["chain"],
        cut=about["cut"],
        heads=tuple(one["head"] for one in rest if "head" in one),
        unsigned=(),
        witnesses=tuple((seen, signed) for seen, signed in (one["kept"] for one in rest if "kept" in one)),
        restored=tuple(Restored(*one) for one in about["restored"]),
        restored_there=tuple(Restored(*one) for one in about["restored_there"]),
        unsealed=tuple(one for one in unsealed if one.behind or one.seconds >= PENDING_SECONDS),
    )


def _documents(texts: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, text in enumerate(texts, start=1):
        try:
            document = strict_json(text)
        except NotJsonError as error:
            raise NotAnExportError(f"line {number}: {error}") from error
        if not isinstance(document, dict):
            raise NotAnExportError(f"line {number} is no JSON object")
        yield document


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"
