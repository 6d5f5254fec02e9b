"""What a run cost: five components, together and per correctly completed case.

Invariant: a component without a rate is missing, not free; only a model that there is none of costs nothing. What an
item costs is judged as it is shown: next to nothing is nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

from host.evaluation.counted import Cost, CostName, CostPart
from host.evaluation.metrics import completed
from shared_contracts.evaluation_report import NO_MODEL, CostRates, Entry

_CENT = Decimal("0.01")


def cost(entries: Sequence[Entry], rates: CostRates, model: str) -> Cost:
    """Price what was used. An attempt beyond the first is a call, and its retry comes on top."""
    calls = sum(e.got.calls + e.got.engine_reads for e in entries)
    minutes = sum(map(_decisions, entries)) * _exact(rates.minutes_per_decision)
    asked = sum(e.got.model_calls for e in entries)
    used: tuple[tuple[CostName, Decimal, str, float], ...] = (
        ("model", Decimal(asked), "calls", rates.model_call),
        ("tools", Decimal(calls), "calls", rates.tool_call),
        ("retries", Decimal(sum(e.got.retries for e in entries)), "retries", rates.retry),
        ("approvers", minutes, "minutes", rates.approver_minute),
        ("compensation", Decimal(sum(e.got.undoing_calls for e in entries)), "calls", rates.compensation_call),
    )
    none = model == NO_MODEL and asked == 0
    total = sum((quantity * _exact(each) for _, quantity, _, each in used), Decimal(0))
    items = sum(map(completed, entries))
    per_item = None if items == 0 else half_up(total / items)
    return Cost(
        basis=rates.basis,
        currency=rates.currency,
        parts=tuple(_part(*one, said=NO_MODEL if none and one[0] == "model" else "") for one in used),
        total=half_up(total),
        items=items,
        per_item=per_item,
        zero=(half_up(total) if per_item is None else per_item) == 0,
        missing=_missing(rates, without=none),
    )


def _decisions(entry: Entry) -> int:
    """Count how often somebody decided: whoever was asked again about what had changed has done so twice."""
    again = entry.decision is not None and entry.decision.again is not None
    return 0 if entry.got.approver is None else 1 + again


def half_up(value: Decimal) -> float:
    """Round to two decimals; the half goes up."""
    return float(value.quantize(_CENT, ROUND_HALF_UP))


def _missing(rates: CostRates, *, without: bool) -> tuple[CostName, ...]:
    priced: dict[CostName, bool] = {
        "model": without or rates.model_call > 0,
        "tools": rates.tool_call > 0,
        "retries": rates.retry > 0,
        "approvers": rates.approver_minute > 0 and rates.minutes_per_decision > 0,
        "compensation": rates.compensation_call > 0,
    }
    return tuple(name for name, has in priced.items() if not has)


def _part(name: CostName, quantity: Decimal, unit: str, each: float, *, said: str) -> CostPart:
    spent = half_up(quantity * _exact(each))
    return CostPart(name=name, quantity=float(quantity), unit=unit, rate=each, cost=spent, said=said)


def _exact(price: float) -> Decimal:
    """Take a rate as it was written, not as the fraction that stands for it."""
    return Decimal(repr(price))
