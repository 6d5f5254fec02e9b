"""What a complete registration form says, and what makes a write safe to offer: two lists, each a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shared_contracts.contract import ContractSuite, Tool, Verification
from shared_contracts.form import ToolForm


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the form: the fields that fill it, and those that only an update needs besides."""

    name: str
    fields: tuple[str, ...] = ()
    for_updates: tuple[str, ...] = ()


# fmt: off
SECTIONS: tuple[Section, ...] = (
    # the nine questions
    Section("what it does",                 ("summary",), ("side_effect", "success_when")),
    Section("who may call it",              ("authorization", "subject", "credential")),
    Section("when it may be called",        ("called_after",)),
    Section("where inputs come from",       ("input.sources",)),
    Section("how the output is verified",   ("output", "success_evidence", "verification", "read_back_if_any")),
    Section("how risky it is",              ("risk",)),
    Section("whether it is safe to retry",  ("timeout_seconds", "max_attempts", "retryable", "backoff"),
                                            ("idempotency_key", "idempotency_retention_days")),
    Section("how the effect is confirmed",  (), ("reconcile_with", "ambiguous_failure")),
    Section("what is recorded",             ("audit_items",)),
    # what the form has beside them
    Section("version",                      ("version",)),
    Section("owning team",                  ("owner",)),
    Section("business owner",               (), ("business_owner_confirmed_by", "forbidden_when")),
    Section("read or update",               ("access",)),
    Section("where it runs",                ("executes_at",)),
    Section("permitted targets",            ("targets",)),
    Section("preconditions",                ("authorization.preconditions",)),
    Section("input schema",                 ("input_schema", "input.required")),
    Section("undeclared input is refused",  ("input.refuses_undeclared",)),
    Section("output schema",                ("output_schema",)),
    Section("compensation",                 (), ("compensation",)),
    Section("contract tests",               ("contract_suite",)),
)
# fmt: on


def _value(form: ToolForm, path: str) -> Any:
    """Follow a dotted path; a part that is absent is None."""
    if path == "input.refuses_undeclared":
        return True if form.input is not None and form.input.additional_properties is False else None
    if path == "read_back_if_any":
        return form.read_back if form.verification is Verification.READ_BACK else True
    value: Any = form
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value


def _blank(value: Any) -> bool:
    return value is None or value in ("", (), {})


def lint(form: ToolForm) -> tuple[str, ...]:
    """Name the sections that are missing or incomplete; none is a complete form."""
    return tuple(
        section.name
        for section in SECTIONS
        if any(_blank(_value(form, path)) for path in section.fields)
        or (form.updates and any(_blank(_value(form, path)) for path in section.for_updates))
    )


@dataclass(frozen=True, slots=True)
class Check:
    """One item of the checklist of a write, and whether the tool meets it."""

    item: str
    passed: bool


def _closed(node: Any) -> bool:
    """Tell whether every object in a schema refuses members that it does not declare."""
    match node:
        case {"type": "object"} if node.get("additionalProperties") is not False:
            return False
        case dict():
            return all(_closed(item) for item in node.values())
        case list():
            return all(_closed(item) for item in node)
        case _:
            return True


def _described(tool: Tool) -> bool:
    return all((tool.preconditions, tool.input_schema.get("properties"), tool.side_effect, tool.evidence))


def _rechecked(tool: Tool) -> bool:
    """Where an approval may be needed, the server itself refuses a call that comes without one."""
    return tool.approval_required_when == "" or "approval_required" in tool.forbidden_when


# Each item looks at the row and at the other tools; an item that has to do with effects fails for a read.
_ITEMS: tuple[tuple[str, Callable[[Tool, Mapping[str, Tool]], bool]], ...] = (
    ("it is a write", lambda tool, _: tool.writes),
    ("precondition, input, side effect and evidence are written down", lambda tool, _: _described(tool)),
    ("undeclared input is refused", lambda tool, _: _closed(tool.input_schema)),
    ("permission and approval are checked again at execution", lambda tool, _: _rechecked(tool)),
    (
        "a key tells a duplicate, and is kept",
        lambda tool, _: tool.idempotency_key != "" and tool.idempotency_retention_days > 0,
    ),
    (
        "the effect can be looked up by its key",
        lambda tool, tools: tool.reconcile_with in tools and tools[tool.reconcile_with].looks_up,
    ),
    ("business success is told from an answer", lambda tool, _: tool.success_when is not None),
    ("an unknown outcome is reconciled, never retried by itself", lambda tool, _: tool.ambiguous_failure is not None),
    ("the six contract tests are a condition of release", lambda tool, _: tool.contract_suite is ContractSuite.FULL),
)


def checklist(tool: Tool, tools: Mapping[str, Tool]) -> tuple[Check, ...]:
    """Go through the nine items of a write; `tools` is the catalogue that it stands in."""
    return tuple(Check(item, passed(tool, tools)) for item, passed in _ITEMS)
