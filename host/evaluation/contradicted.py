"""What cannot be so in a report in which all looks well: a case that is another's, numbers that belie each other.

Invariant: only what no run can leave is named here, and only of cases with which nothing else is wrong: what is wrong
with those is said already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from shared_contracts.evaluation import NOTHING, belongs
from shared_contracts.evaluation_report import Compared, Entry

_MAKES = (("create_return", "returns"), ("send_return_notice", "notices"))


def shared(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Name the cases that have a workflow, or what was seen of a fault, with another case in common."""
    twice = {one for one, times in Counter(_own(entries)).items() if times > 1}
    return tuple(entry.id for entry in entries if twice & set(_of(entry)))


def contradicted(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Name the cases that are as expected by numbers that no run leaves."""
    return tuple(entry.id for entry in entries if not entry.problems and any(_contradictions(entry)))


def too_little(entries: Sequence[Entry], compared: Compared) -> bool:
    """Tell whether fewer rows were compared than the cases alone have requests and effects."""
    got = [entry.got for entry in entries]
    requests = sum(one.calls + one.engine_reads + one.undoing_calls for one in got)
    return compared.compared < requests + sum(one.effects.returns + one.effects.notices for one in got)


def _own(entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        yield from _of(entry)


def _of(entry: Entry) -> frozenset[str]:
    seen = () if entry.evidence is None else entry.evidence.details
    return frozenset({*map(str, entry.got.workflow_ids), *seen})


def _contradictions(entry: Entry) -> Iterator[bool]:
    expected, got = entry.expected, entry.got
    yield got.state not in got.reached
    yield got.calls < len(got.path) + got.retries
    yield from (tool in got.path and getattr(got.effects, made) == 0 for tool, made in _MAKES)
    yield entry.has_side_effect is not (expected.effects.returns + expected.effects.notices > 0)
    yield entry.needs_compensation is not expected.compensation
    yield expected.compensation is (expected.undone == NOTHING)
    yield expected.approver != (None if entry.decision is None else entry.decision.by)
    yield entry.automatable is not (expected.state == "COMPLETED" and entry.decision is None)
    yield not belongs(entry.category, entry.fault)
    yield not entry.needs_human and (entry.decision is not None or expected.state == "NEEDS_REVIEW")
