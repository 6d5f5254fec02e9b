"""What was seen of one case: its record, its calls and effects at the tool server, and the mail that was accepted.

    host's rows ──► states, reasons, attempts, decisions, what the customer is told
    tool server ──► which tools answered, what stands there, and for whom

Invariant: nothing is judged here, and what was done outside is counted where it was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from host.domain.workflow import Workflow
from host.evaluation.score import FOR_A_PERSON
from host.handover.html import html
from host.handover.sections import sections
from host.handover.sheet import NoHandover, hand_over
from host.record import assemble
from host.store.trial_tools import Made, Provider, Undone
from shared_contracts.evaluation import Effects, EvaluationCase
from shared_contracts.evaluation_report import Got
from shared_contracts.record import Compensation, Record, Versions
from shared_contracts.tools import TOOLS

Row = Mapping[str, Any]
NOWHERE = ""  # of a case that was never taken in
_SUCCEEDED = frozenset({"succeeded", "verified"})


@dataclass(frozen=True, slots=True)
class Workflows:
    """The workflows of one case, with what lies around each."""

    rows: tuple[tuple[Row, Row], ...]
    kinds: Mapping[tuple[str, str], Workflow]

    def records(self) -> list[Record]:
        """Assemble them."""
        return [assemble(row, self.kind(row)) for row, _ in self.rows]

    def kind(self, row: Row) -> Workflow:
        """Give the release that a workflow runs under."""
        return self.kinds[row["workflow"]["kind"], row["workflow"]["release"]]

    def ids(self) -> tuple[UUID, ...]:
        """Name them."""
        return tuple(UUID(row["workflow"]["workflow_id"]) for row, _ in self.rows)


@dataclass(frozen=True, slots=True)
class Sent:
    """How often each message about a case's order was taken by the mail server, and which it took of all cases."""

    about: Mapping[str, int]
    taken: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outside:
    """What stands at the provider for one case: under its own keys, or on its order under nobody's."""

    own: tuple[Made, ...]
    stray: tuple[Made, ...]
    undone: tuple[Undone, ...]

    def ids(self, kind: str) -> list[str]:
        """Name what stands there."""
        return [one.id for one in (*self.own, *self.stray) if one.kind == kind]


def versions(workflows: Workflows) -> list[Versions]:
    """Give the data versions that the case's workflows were pinned to."""
    return [record.versions for record in workflows.records()]


def keys_of(provider: Provider, ids: Iterable[UUID]) -> frozenset[str]:
    """Give the keys that these workflows' calls came with."""
    tasks = {str(one) for one in ids}
    called = (one for one in provider.calls if one.task_id in tasks and one.purpose is None)
    return frozenset(one.idempotency_key for one in called if one.idempotency_key is not None)


def outside(case: EvaluationCase, provider: Provider, own: frozenset[str], everybodys: frozenset[str]) -> Outside:
    """Find what was made for a case; `own` are its keys, `everybodys` those of all cases."""
    whose = _whose(case)
    mine = tuple(one for one in provider.made if one.idempotency_key in own)
    stray = tuple(one for one in provider.made if one.idempotency_key not in everybodys and _at(one) == whose)
    made = {(one.tenant_id, one.id) for one in (*mine, *stray)}
    return Outside(mine, stray, tuple(one for one in provider.undone if (one.tenant_id, one.id) in made))


def got(
    case: EvaluationCase,
    workflows: Workflows,
    provider: Provider,
    made: Outside,
    sent: Sent,
    seconds: float,
) -> Got:
    """Put together what was seen; `sent` is what the mail server saw."""
    records = workflows.records()
    calls = [call for record in records for call in record.calls]
    proposed = [call for call in calls if call.undoes is None]
    logged = _logged(provider, workflows)
    first = records[0] if records else None
    return Got(
        workflow_ids=workflows.ids(),
        state=NOWHERE if first is None else first.state,
        reason=NOWHERE if first is None else first.reason,
        gaps=tuple(gap for record in records for gap in _gaps(record)),
        reached=tuple(dict.fromkeys(point.to.state for record in records for point in record.checkpoints)),
        path=tuple(call.tool for call in proposed if call.execution_state in _SUCCEEDED and call.tool in logged),
        calls=_attempts(workflows, provider, proposals=True),
        model_calls=0,
        refused_proposals=sum(len(row["refusals"]) for row, _ in workflows.rows),
        engine_reads=_attempts(workflows, provider, proposals=False),
        undoing_calls=sum(len(call.attempts) for call in calls if call.undoes is not None),
        retries=sum(max(0, len(call.attempts) - 1) for call in proposed),
        effects=Effects(
            returns=len(made.ids("return")),
            notices=_notices(made, sent),
        ),
        undone=Effects(
            returns=sum(one.kind == "return" for one in made.undone),
            notices=sum(one.kind == "notice" for one in made.undone),
        ),
        approver=_approver(records),
        compensation=_compensation(records, made.undone),
        wrong_returns=_wrong_returns(case, made),
        wrong_notices=_wrong_notices(case, made),
        handover=_sheet(workflows),
        handover_reason=None if first is None else first.handover_reason,
        return_ids=tuple(made.ids("return")),
        told_ja=NOWHERE if first is None else first.customer_message.ja,
        seconds=round(seconds, 3),
        active_seconds=max((row["workflow"]["active_ms"] for row, _ in workflows.rows), default=0) / 1000,
    )  # fmt: skip


def _gaps(record: Record) -> list[str]:
    """Find where the history does not go on: a move that is missing, or that begins where none ended."""
    history = record.checkpoints
    ends = [None, *(point.to for point in history[:-1])]
    return [
        f"{record.workflow_id}/{n}"
        for n, (point, before) in enumerate(zip(history, ends, strict=True), 1)
        if point.seq != n or point.from_ != before
    ]


def _notices(made: Outside, sent: Sent) -> int:
    """Count the notices that left, and those of which nobody knows; a correction is none.

    What a row says was sent and no mail server has taken has told nobody anything.
    """
    corrections = set(made.ids("correction"))
    left = [one for one in (*made.own, *made.stray) if one.kind == "notice" and (one.in_doubt or one.id in sent.taken)]
    return max(len(left), sum(times for one, times in sent.about.items() if one not in corrections))


def _logged(provider: Provider, workflows: Workflows) -> set[str]:
    """Name the tools that answered well to a proposal, as the tool server wrote it down."""
    tasks = {str(one) for one in workflows.ids()}
    return {one.tool for one in provider.calls if one.task_id in tasks and one.purpose is None and one.outcome == "ok"}


def _attempts(workflows: Workflows, provider: Provider, *, proposals: bool) -> int:
    """Count requests by their tokens: what the ledger sent and what the log has, which may differ."""
    tasks = {str(one) for one in workflows.ids()}
    undoing = {
        (row["workflow"]["workflow_id"], c["step"]) for row, _ in workflows.rows for c in row["calls"] if c["undoes"]
    }
    sent = [(row["workflow"]["workflow_id"], attempt) for row, _ in workflows.rows for attempt in row["attempts"]]
    undone = {attempt["jti"] for workflow_id, attempt in sent if (workflow_id, attempt["step"]) in undoing}
    tokens = {attempt["jti"] for _, attempt in sent if (attempt["purpose"] == "call") is proposals}
    tokens |= {one.jti for one in provider.calls if one.task_id in tasks and (one.purpose is None) is proposals}
    return len(tokens - undone)


def _approver(records: Sequence[Record]) -> str | None:
    decided = [one.approver for record in records for one in record.approvals if one.approver is not None]
    return decided[-1] if decided else None


def _compensation(records: Sequence[Record], undone: Sequence[Undone]) -> Any:
    """Give the worst that came of any, each by the time that the contract of its tool gives."""
    return worst(
        came_of(one, TOOLS[call.tool].compensate_within_hours, undone)
        for record in records
        for one in record.compensations
        for call in record.calls
        if call.step_id == one.step_id
    )


def worst(came: Iterable[str]) -> str | None:
    """Tell what counts of several undoings: what was ordered anew and done later was impossible, or late, before."""
    seen = set(came)
    return next((one for one in ("impossible", "overdue", "required", "done") if one in seen), None)


def came_of(ordered: Compensation, hours: int, undone: Sequence[Undone]) -> str:
    """Tell what came of an undoing that has so many hours: what was done at the provider after them is overdue."""
    due_at = ordered.ordered_at + timedelta(hours=hours)
    late = ordered.state == "done" and any(one.at > due_at for one in undone)
    return "overdue" if late else ordered.state


def _wrong_returns(case: EvaluationCase, made: Outside) -> tuple[str, ...]:
    asked = _asked(case)
    own = (one for one in made.own if one.kind == "return")
    return tuple(one.id for one in own if _at(one) != _whose(case) or sorted(one.about) != asked)


def _wrong_notices(case: EvaluationCase, made: Outside) -> tuple[str, ...]:
    returns = made.ids("return")
    own = (one for one in made.own if one.kind == "notice")
    return tuple(one.id for one in own if _at(one) != _whose(case) or not set(one.about) <= set(returns))


def _asked(case: EvaluationCase) -> list[str]:
    """Say what is asked for as the provider says what was made: the reason, and how much of each line."""
    lines = (f"{line['line_id']} {line['quantity']}" for line in case.request.get("lines", ()))
    return sorted([str(case.request.get("reason")), *lines])


def _sheet(workflows: Workflows) -> bool | None:
    """Make the sheets that are due, whole; None where none is."""
    made: bool | None = None
    for row, around in workflows.rows:
        sheet = hand_over(row, around, workflows.kind(row), workflows.kinds)
        if not isinstance(sheet, NoHandover):
            made = html("handover", sections(sheet)) != "" and made is not False
        elif row["workflow"]["state"] in FOR_A_PERSON:
            made = False
    return made


def _whose(case: EvaluationCase) -> tuple[str, str, str]:
    request = case.request
    return case.tenant, str(request.get("order_id")), str(request.get("customer_id"))


def _at(made: Made) -> tuple[str, str, str]:
    return made.tenant_id, made.order_id, made.customer_id
