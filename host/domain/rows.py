"""What one commit writes, as it gathers: for each table the rows that it gains or changes. Pure.

One statement writes a row once, so what becomes known of the same call within a step is added to its row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from host.domain.control import Execution
from host.domain.kept import kept_json
from host.domain.outcome import CallError
from host.domain.state import CallRecord, State
from host.domain.uttered import Offer
from host.domain.wait import Wait

# For each table the rows that a commit adds to it or changes in it; each names its workflow.
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


class Gathered:
    """The rows of one workflow's step."""

    def __init__(self, workflow_id: str) -> None:
        """Begin with none."""
        self._workflow_id = workflow_id
        self._tables: dict[str, list[dict[str, Any]]] = {}
        self._turn: dict[str, Any] = {}

    def uncontested(self) -> Gathered:
        """Copy all but what the commit would look into; the copies gather on independently."""
        copy = Gathered(self._workflow_id)
        copy._tables = {
            table: [dict(row) for row in rows] for table, rows in self._tables.items() if table != "contests"
        }
        copy._turn = dict(self._turn)
        return copy

    @property
    def dirty(self) -> bool:
        """Tell whether anything happened that must not be forgotten; decisions and alerts go with what they led to."""
        return bool(self._tables.keys() - {"decisions", "audit", "contests", "offers"})

    def add(self, table: str, **row: Any) -> dict[str, Any]:
        """Gather one row more, and give it."""
        added = {"workflow_id": self._workflow_id, **row}
        self._tables.setdefault(table, []).append(added)
        return added

    def turn(self, offer: Offer, said: Mapping[str, Any], *, kept: bool) -> None:
        """Keep what a planner was shown, where it is new, and gave; the next move tells of it."""
        self._turn = {"offered": offer.sha256, "said": dict(said)}
        if not kept:
            self.add("offers", sha256=offer.sha256, definitions=offer.definitions)

    def move(self, **row: Any) -> None:
        """Gather a move of the two machines, with the turn that led to it."""
        self.add("checkpoints", **row, **self._turn)
        self._turn = {}

    def open_call(self, call: CallRecord) -> None:
        """Say what was proposed."""
        self.add(
            "calls_opened",
            step=call.step,
            undoes=call.undoes,
            call_id=call.call_id,
            tool=call.tool,
            contract_version=call.contract_version,
            arguments=dict(call.arguments),
            fingerprint=call.fingerprint,
            execution_state=call.execution.value,
            stamps=[],
        )

    def close_effect(self, **row: Any) -> None:
        """Say what became of the one effect in hand; what is known last stands."""
        self._tables.pop("effects_closed", None)
        self.add("effects_closed", **row)

    def mark_call(
        self,
        step: int,
        execution: Execution,
        result: Mapping[str, Any] | None,
        error: CallError | None,
        stamps: tuple[str, ...],
    ) -> None:
        """Say what is known of a call, in the row that opens it or else in the one that updates it."""
        opened = self._of("calls_opened", step)
        if opened is not None:
            opened |= {"execution_state": execution.value, "stamps": [*opened["stamps"], *stamps]}
            return
        updated = self._of("calls_updated", step)
        if updated is None:
            updated = self.add("calls_updated", step=step, result=None, stamps=[])
        updated |= {
            "execution_state": execution.value,
            "result": updated["result"] if result is None else dict(result),
            "error": error_record(error),
            "stamps": [*updated["stamps"], *stamps],
        }

    def _of(self, table: str, step: int) -> dict[str, Any] | None:
        return next((row for row in self._tables.get(table, ()) if row["step"] == step), None)

    def under(self, state: State, wait: Wait | None, **driven: Any) -> Rows:
        """Give all of it, under the row that says where the workflow stands and who drives it; a wait lets go of it."""
        task, control, trace = state.task, state.control, state.trace
        workflow = {
            "workflow_id": self._workflow_id,
            "version": trace.version,
            "fence": trace.fence,
            "seq": trace.seq,
            "state": task.state,
            "control_state": control.control.value,
            "resume_state": task.resume_state,
            "reason": task.reason,
            "refusals_in_a_row": control.refusals_in_a_row,
            "recoveries": control.recoveries,
            "tokens": control.tokens,
            "cost_micros": control.cost_micros,
            "release": wait is not None,
            "wake_reason": wait.reason if wait is not None and wait.after_seconds is not None else None,
            "wake_after": wait.after_seconds if wait is not None else None,
            **driven,
        }
        return {"workflows": [workflow], **self._tables}


def error_record(error: CallError | None) -> dict[str, Any] | None:
    """Give what is kept of an error."""
    if error is None:
        return None
    details = kept_json(error.details)
    return {
        "code": error.code,
        "category": error.category.value,
        "message": error.message,
        "details": {} if details is None else details,
    }
