"""What the seals of a record say of it: each line is what was sealed, stands where it was sealed, and none is missing.

Invariant: only heads that are signed by a trusted key of their side are believed, and nothing that stands in the same
database outweighs one of them. Whatever cannot be shown is a finding; a finding names the lines that it is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise, zip_longest
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from host.domain.sealed import Chain, Finding, Kind, Line, Restored, Verdict, said_of
from shared_contracts.seal import Head, UnsealedError, chained, genesis, opened

CUTS = ("seal_cut", "calls.seal_cut")
RESTORES = ("seal_restored", "calls.seal_restored")
NAMED_MAX = 50  # lines of one finding
_GONE = "sealed lines are gone"
LONGEST_TRANSACTION = timedelta(minutes=15)  # an owner's; a step's is a thousandth of that
PENDING_SECONDS = 60.0  # what is new is sealed within a second, where anything works at all


class Walk:
    """One way through the lines of a record, a batch at a time: up to the next place that somebody has signed.

    Give it each line in its order, and ask for the verdict at the end.
    """

    def __init__(self, chain: Chain, keys: Mapping[str, Ed25519PublicKey]) -> None:
        self.of, self.keys, self.out = chain, keys, Verdict()
        self.heads: dict[int, Head] = {}
        self.witnessed: dict[int, list[Head]] = {}
        self.restored = {one.n for one in chain.restored}
        self.restores_told: dict[int, Restored] = {}  # by those acts themselves
        self.batch: list[Line] = []
        self.suspects: list[Line] = []  # their place is not the one that was written down
        self.explained = False  # something is wrong with this batch that has been named
        self.whole: Head | None = None  # the newest head behind which everything was sealed
        self.erasures: set[str] = set()
        self.doubted: dict[tuple[Kind, str], list[int]] = {}  # the heads that are not believed, by why
        cut = None if chain.cut is None else self._opened(chain.cut, "the head that it begins behind")
        base, self.last = (genesis(chain.side, str(chain.chain)), 0) if cut is None else (cut.chained, cut.n)
        self.place = self.written = base  # as it is, and as it was written down beside each line
        self.cut_told = cut is None  # that it begins there is an act itself, which stands behind it
        self.out.first = self.last + 1
        self._read_heads(self.last)

    def line(self, line: Line) -> None:
        """Take the next line."""
        gap = line.n != self.last + 1
        if line.n <= self.last:  # a database gives each number once and in order; an export may hold anything
            self._out_of_place(line)
            return
        if gap:
            self._gap(self.last + 1, line.n - 1)
        self.place = chained(self.place, line.n, line.source, line.row_id, line.sealed)
        fits = chained(self.written, line.n, line.source, line.row_id, line.sealed) == line.chained
        self._held(line, fits=fits or gap)
        self.written, self.last = line.chained, line.n
        self.out.lines += 1
        if self.last in self.heads or self.last in self.witnessed:
            self.place = self.written = self._signed(self.last, self.place)
        if self.last in self.restored:
            self.whole = None  # another cluster's transactions, and perhaps another clock

    def verdict(self) -> Verdict:
        """Say what came of it; no line follows."""
        self.out.last = self.last
        self._end(self.last)
        return self.out

    def _read_heads(self, begin: int) -> None:
        for text in self.of.heads:
            head = self._opened(text, "a head of it")
            if head is not None and head.n >= begin:
                self.heads[head.n] = head
        self.out.heads = len(self.heads)
        pairs = tuple(zip(self.of.restored, self.of.restored_there, strict=False))
        for seen, text in self.of.witnesses:
            head = self._opened(text, "a head that the other side keeps")
            if head is None or head.n <= begin:
                continue
            if any(seen <= there.seen and head.n > here.n for here, there in pairs):
                self.out.lost += 1
            else:
                self.witnessed.setdefault(head.n, []).append(head)
        for (kind, why), numbers in self.doubted.items():  # one key that is missing may have signed every one of them
            rows = () if len(numbers) == 1 else (f"{len(numbers)} heads",)
            self._find(kind, min(numbers), rows, why)

    def _opened(self, text: str, what: str) -> Head | None:
        try:
            head = opened(text, self.of.side, self.keys)
        except UnsealedError as error:
            self._doubt(Kind.UNSIGNED, 0, f"{what} is not to be believed: {error}")
            return None
        if head.chain != self.of.chain:
            self._doubt(Kind.REWRITTEN, head.n, f"{what} is of another chain")
            return None
        return head

    def _doubt(self, kind: Kind, n: int, why: str) -> None:
        self.doubted.setdefault((kind, why), []).append(n)

    def _gap(self, first: int, last: int) -> None:
        self.explained = True
        lines = f"line {first}" if first == last else f"lines {first} to {last}"
        self._find(Kind.REMOVED, first, (lines,), _GONE)

    def _out_of_place(self, line: Line) -> None:
        self.out.lines += 1
        one = Finding(self.of.side, Kind.REMOVED, line.n, (f"line {line.n}",), _GONE)
        if one in self.out.findings:
            self.out.findings.remove(one)
            self._find(Kind.REORDERED, line.n, (line.name,), f"it stands behind line {self.last}")
        else:
            self._find(Kind.INSERTED, line.n, (line.name,), f"it stands behind line {self.last}")

    def _held(self, line: Line, *, fits: bool) -> None:
        self.batch.append(line)
        said = said_of(line.sealed)
        if line.source == "audit" and said.get("action") == "words_erased":
            self.erasures.add(str(said.get("resource")))
        if line.source == "act" and said.get("relation") in CUTS and said.get("key") == {"n": self.out.first - 1}:
            self.cut_told = True
        if line.source == "act" and said.get("relation") in RESTORES:
            self._restore_told(said.get("key"))
        if line.erased:
            self.out.erased.append(line.row_id)
        if not fits:
            self.suspects.append(line)
        if line.known and line.stands is None:
            self._find(Kind.REMOVED, line.n, (line.name,), "its row is gone")
        elif line.known and line.stands is not None and line.stands != line.sealed:
            changed = sorted(_different(said, said_of(line.stands), erased=line.erased))
            if changed:
                self._find(
                    Kind.CHANGED, line.n, (line.name,), f"its row says another {', '.join(changed)} than was sealed"
                )
        self._dated(line, said)

    def _dated(self, line: Line, said: Mapping[str, Any]) -> None:
        """A row that was put in later can have the number or the time of before, and not both seals of before."""
        transaction, at = said.get("committed_in"), said.get("at")
        if self.whole is None or not isinstance(transaction, str) or not isinstance(at, str):
            return
        if int(transaction) < int(self.whole.horizon):
            self._find(Kind.INSERTED, line.n, (line.name,), "its transaction had ended when everything was sealed")
        elif datetime.fromisoformat(at) < datetime.fromisoformat(self.whole.at) - LONGEST_TRANSACTION:
            self._find(Kind.INSERTED, line.n, (line.name,), f"it says {at}, and came after {self.whole.at}")

    def _signed(self, n: int, place: str) -> str:
        """A place that was signed; gives where to go on from, which is what the record's own head says."""
        head = self.heads.get(n)
        if head is not None and head.chained != place:
            self._wrong_batch()
        elif self.suspects:
            for line in self.suspects:
                self._find(Kind.CHANGED, line.n, (line.name,), "its place in the chain was written over")
        true = place if head is None else head.chained
        for seen in self.witnessed.get(n, ()):
            if seen.chained == true:
                self.out.seen = n
            else:
                names = tuple(line.name for line in self.batch[:NAMED_MAX])
                self._find(Kind.REWRITTEN, n, names, "the other side keeps another head of these lines, signed as well")
        if head is not None and head.whole:
            self.whole = head
        self.batch, self.suspects, self.explained = [], [], False
        return true

    def _wrong_batch(self) -> None:
        if swapped := list(_out_of_order(self.batch)):
            for one, other in swapped:
                why = "they do not stand in the order in which they were sealed"
                self._find(Kind.REORDERED, one.n, (one.name, other.name), why)
        elif self.suspects:
            for line in self.suspects:
                self._find(Kind.CHANGED, line.n, (line.name,), "what is kept as sealed is not what was sealed")
        elif not self.explained:
            names = tuple(line.name for line in self.batch[:NAMED_MAX])
            self._find(Kind.CHANGED, self.batch[0].n, names, "these lines are not the ones that were signed")

    def _end(self, last: int) -> None:
        signed = max((n for n in self.heads if n <= last), default=self.out.first - 1)
        beyond = max((n for n in self.heads if n > last), default=0)
        seen = max((n for n in self.witnessed if n > last), default=0)
        if beyond or seen:
            who = "the other side has seen" if seen >= beyond else "it was signed"
            gone = (f"lines {last + 1} to {max(beyond, seen)}",)
            self._find(Kind.TRUNCATED, last + 1, gone, f"{who} up to line {max(beyond, seen)}, and it ends with {last}")
        waiting = dict(self.of.unsigned)
        if last > signed and waiting.get(last, PENDING_SECONDS) >= PENDING_SECONDS:
            names = (f"lines {signed + 1} to {last}",)
            self._find(Kind.UNSIGNED, signed + 1, names, "no signature covers these lines")
        for row in self.of.unsealed:
            if row.behind:
                why = "it is not sealed, and everything of its time was"
                self._find(Kind.INSERTED, 0, (f"{row.source} {row.row_id}",), why)
            elif row.seconds >= PENDING_SECONDS:
                why = f"it waits for its seal since {row.seconds:.0f} seconds"
                self._find(Kind.UNSEALED, 0, (f"{row.source} {row.row_id}",), why)
            else:
                self.out.waiting += 1
        if not self.cut_told and self.out.waiting == 0:  # that one of a moment ago may wait for its seal
            gone = (f"lines before {self.out.first}",)
            self._find(Kind.REMOVED, self.out.first, gone, "they were taken out, and nobody's act says so")
        if self.out.waiting == 0:
            self._restores()
        for row_id in self.out.erased:
            if f"audit:{row_id}" not in self.erasures:
                self._find(Kind.CHANGED, 0, (f"audit {row_id}",), "its words are gone, and nobody's act says so")

    def _restore_told(self, key: object) -> None:
        match key:
            case {"k": int(k), "n": int(n), "seen": int(seen)}:
                self.restores_told[k] = Restored(n, seen)
            case _:
                pass  # of before it named them, or nonsense

    def _restores(self) -> None:
        """A restore excuses what is gone, so that what each excuses has to be what an act of the record says."""
        told = [one for _, one in sorted(self.restores_told.items())]
        for said, one in zip_longest(self.of.restored, told):
            if said is not None and said != one:
                gone = (f"lines after {said.n}",)
                self._find(Kind.REMOVED, said.n, gone, "they are said to be lost by a restore, and no act says so")

    def _find(self, kind: Kind, n: int, rows: tuple[str, ...], why: str) -> None:
        self.out.findings.append(Finding(self.of.side, kind, n, rows, why))


def _different(said: Mapping[str, Any], now: Mapping[str, Any], *, erased: bool) -> Iterator[str]:
    for name in said.keys() | now.keys():
        was = said.get(name)
        if was != now.get(name) and not (erased and isinstance(was, str) and was.startswith("sha256:")):
            yield name


def _out_of_order(batch: list[Line]) -> Iterator[tuple[Line, Line]]:
    """Within a batch rows stand in the order of their transactions, then of their numbers."""
    rows = [(line, said_of(line.sealed)) for line in batch if line.source in {"audit", "call", "act"}]
    for (one, first), (other, second) in pairwise(rows):
        if {"committed_in", "id"} <= first.keys() & second.keys() and _order(one, first) > _order(other, second):
            yield one, other


def _order(line: Line, said: Mapping[str, Any]) -> tuple[int, str, int]:
    return int(said["committed_in"]), line.source, int(said["id"])
