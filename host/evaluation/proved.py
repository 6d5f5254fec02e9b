"""What the faults of an evaluation show: that it stops, that it recovers, that it does not exceed its permission.

Invariant: a fault that nothing shows to have happened shows nothing, and each statement names the cases that break it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from host.evaluation.codes import PROBLEMS, Aspect, Code, Condition
from host.evaluation.documents import FaultsShow
from host.evaluation.metrics import found
from shared_contracts.evaluation_report import Entry

_What = Literal["stops", "recovers", "within_permission"]
_ENDS = frozenset({Aspect.END, Aspect.RETRIES})


def faults_show(entries: Sequence[Entry]) -> tuple[FaultsShow, ...]:
    """Hold the three statements against the cases to which something was done; none where nothing was."""
    struck = [entry for entry in entries if entry.fault is not None]
    if not struck:
        return ()
    on = [entry for entry in struck if entry.expected.state == "COMPLETED"]
    ended = [entry for entry in struck if entry.expected.state != "COMPLETED"]
    return (
        _said("stops", ended, _wrong(ended, _ENDS), "that had to end before they were done ended so"),
        _said("recovers", on, _wrong(on, _ENDS), "that had to go on were completed, with as many retries as allowed"),
        _said("within_permission", struck, _beyond(struck), "did no more than they may, and nothing twice"),
    )


def _said(what: _What, of: Sequence[Entry], wrong: tuple[str, ...], said: str) -> FaultsShow:
    shown = None if not of else not wrong
    return FaultsShow(what=what, shown=shown, said=f"{len(of) - len(wrong)} of {len(of)} cases {said}", ids=wrong)


def _wrong(entries: Sequence[Entry], aspects: frozenset[Aspect]) -> tuple[str, ...]:
    return tuple(
        entry.id
        for entry in entries
        if Code.FAULT_UNPROVED in found(entry) or any(PROBLEMS[code].aspect in aspects for code in found(entry))
    )


def _beyond(entries: Sequence[Entry]) -> tuple[str, ...]:
    broken = {Condition.PERMITTED, Condition.SINGLE, Condition.LIMITED}
    return tuple(
        entry.id
        for entry in entries
        if Code.FAULT_UNPROVED in found(entry) or any(PROBLEMS[code].breaks in broken for code in found(entry))
    )
