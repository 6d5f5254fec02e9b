"""What stands outside, what of it was undone, and whom else it concerns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from host.domain.workflow import Workflow
from shared_contracts.contract import Risk
from shared_contracts.tools import TOOLS

Row = Mapping[str, Any]


def effects_of(row: Row) -> list[dict[str, Any]]:
    """List every intent to change something, and the step that undid it."""
    workflow_id = row["workflow"]["workflow_id"]
    undoing = _undoing(row)
    return [
        {
            **{name: effect[name] for name in _COPIED},
            "step_id": f"{workflow_id}.{effect['step']}",
            "id_kind": TOOLS[effect["name"]].external_id,
            "mismatch": sorted(effect["mismatch"] or ()),
            "undone_by": f"{workflow_id}.{undoing[effect['step']]}" if effect["step"] in undoing else None,
        }
        for effect in row["effects"]
    ]


_COPIED = (
    "name", "attempt", "idempotency_key", "outcome", "external_id", "opened_at", "closed_at", "verified_at", "units",
)  # fmt: skip


def _undoing(row: Row) -> dict[int, int]:
    """Map a step to the one that undid it; what cannot be taken back, such as a message, is corrected, not undone."""
    undoes = {call["step"]: call["undoes"] for call in row["calls"] if call["undoes"] is not None}
    made = {effect["step"]: TOOLS[effect["name"]] for effect in row["effects"]}
    return {
        undoes[effect["step"]]: effect["step"]
        for effect in row["effects"]
        if effect["verified_at"] is not None
        and effect["step"] in undoes
        and undoes[effect["step"]] in made
        and made[undoes[effect["step"]]].compensate_with == effect["name"]
        and made[undoes[effect["step"]]].risk is Risk.REVERSIBLE_WRITE
    }


def impact(
    row: Row,
    effects: Iterable[Row],
    others: Iterable[Row],
    workflow: Workflow,
    kinds: Mapping[tuple[str, str], Workflow],
) -> dict[str, Any]:
    """Tell how far it reaches."""
    listed, around = list(effects), list(others)
    units = set(workflow.units(row["workflow"]["case_body"])).union(*(effect["units"] for effect in listed))
    in_doubt = {unit for effect in listed if effect["outcome"] is None for unit in effect["units"]}
    return {
        "outside": _outside(listed),
        "units": sorted(units),
        "other_cases": [_other(other, units, in_doubt, kinds) for other in around],
        "other_cases_in_all": around[0]["in_all"] if around else 0,
    }


def _outside(effects: list[Row]) -> list[dict[str, Any]]:
    """List what stands, or may: neither what was undone nor what undid it."""
    undoing = {effect["undone_by"] for effect in effects}
    return [
        {
            **{name: effect[name] for name in ("name", "step_id", "id_kind", "external_id")},
            "verification": _verification(effect),
        }
        for effect in effects
        if effect["outcome"] in {None, "succeeded"} and effect["undone_by"] is None and effect["step_id"] not in undoing
    ]


def _verification(effect: Row) -> str:
    if effect["outcome"] is None:
        return "in_doubt"
    if effect["mismatch"]:
        return "wrong"
    return "unverified" if effect["verified_at"] is None else "verified"


def _other(
    other: Row, units: set[str], in_doubt: set[str], kinds: Mapping[tuple[str, str], Workflow]
) -> dict[str, Any]:
    kind = kinds.get((other["kind"], other["release"]))
    theirs = set() if kind is None else set(kind.units(other["case_body"]))
    return {
        **{name: other[name] for name in ("workflow_id", "state", "reason")},
        "units": sorted(theirs & units),
        "held_back_by_this": not theirs.isdisjoint(in_doubt),
        "holds_this_back": not units.isdisjoint(other["in_doubt"]),
    }
