"""Why somebody has to look at a case: one sentence, and one about what to do. Total over all that has a sheet."""

from __future__ import annotations

from typing import Any

from host.domain.control import ENDS, Control
from host.runbook_texts import explained
from shared_contracts.record import Record


def why(record: Record, engaged: list[str], *, compensates: bool) -> dict[str, Any]:
    """Explain a review by its reason, what is to be undone, what ran out of time, and what a stop holds."""
    control = Control(record.control_state)
    if record.handover_reason is not None:
        return _why(record.reason, record.handover_reason, *explained(record.reason))
    if compensates:
        sentence = "Something that stands outside has to be undone, by a finding or by a person's order."
        advice = "It is undone by itself within its deadline; under a stop a person has to release it."
        return _why(record.reason, None, sentence, advice)
    if control in ENDS:
        sentence = "Nobody said yes in time, and nothing was done after that."
        return _why(record.reason, None, sentence, "Ask anew where it is still wanted.")
    sentence = f"Work is stopped ({', '.join(engaged)}) while the case stands in {record.state}."
    return _why("stopped", None, sentence, "It goes on by itself after the stop; see what it had done by then.")


def _why(code: str, handover_reason: str | None, sentence: str, advice: str) -> dict[str, Any]:
    return {"code": code, "handover_reason": handover_reason, "sentence": sentence, "advice": advice}
