"""Why somebody has to look at a case: one sentence, and one about what to do. Total over all that has a sheet."""

from __future__ import annotations

from typing import Any

from host.handover.ways import Facts
from host.runbook_texts import explained
from shared_contracts.record import Record


def why(record: Record, facts: Facts, engaged: list[str]) -> dict[str, Any]:
    """Explain a review by its reason, what is to be undone, what ran out of time, and what a stop holds."""
    if record.handover_reason is not None:
        return _why(record.reason, record.handover_reason, *explained(record.reason))
    if facts.compensates:
        sentence = "Something that stands outside has to be undone, by a finding or by a person's order."
        advice = "It is undone by itself within its deadline; under a stop a person has to let it through."
        return _why(record.reason, None, sentence, advice)
    if facts.over:
        sentence = "Nobody said yes in time, and nothing was done after that."
        return _why(record.reason, None, sentence, "Ask anew where it is still wanted.")
    if facts.stopped:
        sentence = f"Work is stopped ({', '.join(engaged)}) while the case stands in {record.state}."
        return _why(
            "stopped",
            None,
            sentence,
            "See what it had done by then; an approval's time and a compensation's deadline run on.",
        )
    sentence = f"A stop was lifted, and the case, in {record.state}, was not released yet."
    return _why("held", None, sentence, "Release the cases of a state by parts, the oldest first.")


def _why(code: str, handover_reason: str | None, sentence: str, advice: str) -> dict[str, Any]:
    return {"code": code, "handover_reason": handover_reason, "sentence": sentence, "advice": advice}
