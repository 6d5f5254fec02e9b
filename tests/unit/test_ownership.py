"""Who changes what of a workflow's state: the table of owners, held against every line of the host that writes one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from host.domain.owners import OWNERS, Owner
from host.domain.state import Attempt, CallRecord, ControlLayer, Effect, Evidence, State, Task, Trace, Undoing
from tests.unit.test_tidy import ROOT
from tests.unit.workflow_state import call, effect, state

LAYERS = (Task, Evidence, ControlLayer, Trace)
RECORDS = (CallRecord, Attempt, Effect, Undoing)  # made and changed whole, by the step
CORE = ("host.domain.", "host.engine.", "host.planner.", "host.workflows.", "host.record", "host.explain")
PLACES = {"task", "evidence", "control", "trace"}  # where State keeps its layers: they change with their fields
DOORS = {"after": Owner.COMMIT, "with_call": Owner.STEP, "with_effect": Owner.STEP}
OWNED = {name.split(".")[1]: owner for name, owner in OWNERS.items()}
OF_RECORDS = {field.name for record in RECORDS for field in fields(record)} - set(OWNED)


@dataclass(frozen=True)
class Read:
    """What is asked of a module here."""

    calls: tuple[tuple[str, list[str]], ...]
    imports: set[str]
    attributes: set[str]


@cache
def modules() -> dict[str, Read]:
    parsed = ((path, ast.parse(path.read_text(encoding="utf-8"))) for path in sorted((ROOT / "host").rglob("*.py")))
    return {
        module_of(path): Read(
            tuple(calls_in(tree)),
            imports_state(tree),
            {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)},
        )
        for path, tree in parsed
    }


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def calls_in(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Each call by its last name, with the names of its keyword arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield name, [keyword.arg for keyword in node.keywords if keyword.arg is not None]


def imports_state(tree: ast.Module) -> set[str]:
    found = (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "host.domain.state")
    return {alias.name for node in found for alias in node.names}


def test_every_field_of_every_layer_has_one_owner():
    every = {f"{layer.__name__}.{field.name}" for layer in LAYERS for field in fields(layer)}
    assert set(OWNERS) == every | {"State.proposal"}
    assert {field.name for field in fields(State)} == {*PLACES, "proposal"}


def test_no_module_but_its_owner_gives_a_field_another_value():
    written = [
        (module, keyword)
        for module, read in modules().items()
        for name, keywords in read.calls
        if name == "replace" and module.startswith(CORE)
        for keyword in keywords
    ]
    assert len(written) > 15, "the writes were found"
    for module, keyword in written:
        if module == Owner.STEP.value:
            assert keyword in PLACES | OF_RECORDS or OWNED[keyword] is Owner.STEP, (module, keyword)
        else:
            assert module == Owner.LOADED.value, (module, keyword)


def test_only_the_module_that_owns_them_calls_what_changes_a_state_from_outside():
    found = {
        name: {m for m, read in modules().items() if m != Owner.LOADED.value and name in {n for n, _ in read.calls}}
        for name in DOORS
    }
    also = {"after": {"host.engine.review"}}  # a person's look is recorded before it leaves, so it commits twice too
    assert found == {name: {owner.value} | also.get(name, set()) for name, owner in DOORS.items()}


def test_layers_are_made_where_the_row_is_read_and_records_besides_by_the_step():
    for module, read in modules().items():
        made = {name for name, _ in read.calls} & read.imports
        allowed = {one.__name__ for one in RECORDS} if module == Owner.STEP.value else {"from_row"}
        assert made <= allowed, module


def changed(before: Any, after: Any) -> set[str]:
    layers = ((getattr(before, name), getattr(after, name)) for name in PLACES)
    return {
        f"{type(a).__name__}.{f.name}" for a, b in layers for f in fields(a) if getattr(a, f.name) != getattr(b, f.name)
    }


def test_a_commit_changes_its_own_fields_and_no_other():
    before = state(calls=(call(1, "get_order"),), effects=(effect(1, "create_return", None),))
    after = before.after(9, 9, 9, 9, datetime(2026, 7, 31, tzinfo=UTC))
    assert changed(before, after) == {name for name, one in OWNERS.items() if one is Owner.COMMIT}


@pytest.mark.parametrize("name", OWNERS)
def test_a_field_cannot_be_set_in_passing(name):
    at = state(calls=(call(1, "get_order"),))
    layer, field = name.split(".")
    holder = {type(getattr(at, place)).__name__: getattr(at, place) for place in PLACES} | {"State": at}
    with pytest.raises(FrozenInstanceError):
        setattr(holder[layer], field, None)


@pytest.mark.parametrize("package", ["planner", "tool_client", "workflows", "store"])
def test_who_is_named_for_no_layer_is_handed_none(package):
    seen = {
        name for module, read in modules().items() if module.startswith(f"host.{package}.") for name in read.imports
    }
    assert seen <= {"NOT_COUNTED", "CallRecord"}, "a planner's view is made of answered calls, and of nothing else"


def test_versions_and_sequence_are_read_only_by_who_commits_them():
    readers = {module for module, read in modules().items() if module.startswith(CORE) and "trace" in read.attributes}
    committing = {"host.domain.rows", "host.domain.state", "host.domain.step", "host.engine.drive", "host.engine.lease"}
    assert readers == committing
