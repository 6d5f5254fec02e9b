"""Which cases a comparison looks at: those that had failed, their neighbours, and the others as controls.

Invariant: the groups come from the report before alone, so that nobody chooses them by what came out after. A neighbour
or a control was as expected before; every case is in one group.
"""

from __future__ import annotations

from collections.abc import Sequence

from host.evaluation.codes import Code
from host.evaluation.documents import Groups
from host.evaluation.metrics import found, matched
from host.evaluation.score import ENDS
from shared_contracts.evaluation_report import Entry

_CREATE, _NOTIFY = "create_return", "send_return_notice"
_BY_EFFECT: dict[Code, str] = {
    Code.WRONG_RETURN: _CREATE,
    Code.DUPLICATE_RETURN: _CREATE,
    Code.APPROVAL_BYPASSED: _CREATE,
    Code.WRONG_NOTICE: _NOTIFY,
    Code.DUPLICATE_NOTICE: _NOTIFY,
}
# what is missing follows from a way that broke off before; only where none did it is a finding of its own
_BY_LACK: dict[Code, str] = {Code.RETURN_MISSING: _CREATE, Code.NOTICE_MISSING: _NOTIFY}


def groups(entries: Sequence[Entry]) -> Groups:
    """Choose. A neighbour passed through a state in which a failed case went wrong, or called the tool where it did.

    Every case is received and reads its order, so what all share makes nobody a neighbour: what counts is the last
    state that a failed case was in before its end, and the tools at which it left its way.
    """
    failed = [entry for entry in entries if not matched(entry)]
    states = {state for entry in failed for state in _states(entry)}
    tools = {tool for entry in failed for tool in _tools(entry)}
    fine = [entry for entry in entries if matched(entry)]
    near = {e.id for e in fine if states & {*e.got.reached, e.got.state} or tools & set(e.got.path)}
    return Groups(
        failed=tuple(entry.id for entry in failed),
        neighbours=tuple(entry.id for entry in fine if entry.id in near),
        controls=tuple(entry.id for entry in fine if entry.id not in near),
        states=tuple(sorted(states)),
        tools=tuple(sorted(tools)),
    )


def _states(entry: Entry) -> set[str]:
    """Give the state in which it went wrong: the last before its end, or where it stands."""
    before = [state for state in entry.got.reached if state not in ENDS]
    return set(before[-1:])


def _tools(entry: Entry) -> set[str]:
    """Give the tools at which it went wrong: where its way parts from the expected one, and whose effects are wrong."""
    expected, got = entry.expected.path, entry.got.path
    parted = next((n for n, (one, other) in enumerate(zip(expected, got, strict=False)) if one != other), None)
    at = parted if parted is not None else min(len(expected), len(got))
    tools = {path[at] for path in (expected, got) if at < len(path)}
    codes = found(entry)
    tools |= {tool for code, tool in _BY_EFFECT.items() if code in codes}
    if not tools:
        tools = {tool for code, tool in _BY_LACK.items() if code in codes}
    if not tools and entry.fault is not None and entry.fault.tool is not None:
        tools = {entry.fault.tool}
    return tools
