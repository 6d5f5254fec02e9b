"""The nine items of an update tool's checklist: what its row says, and a trial that bears it out.

Invariant: an item holds only where both do, and the evidence of the trial is printed beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from host.evaluation.contract_bench import Bench
from host.evaluation.contract_documents import ContractTests, Item, Test, ToolTested, Trial
from host.evaluation.contract_suite import Seen, never_resent, six, tried, unapproved
from host.stack.build import installed_build
from shared_contracts.contract import Tool, blanks
from shared_contracts.form_checks import checklist


async def tested(bench: Bench, names: tuple[str, ...], done: Callable[[ToolTested], None]) -> ContractTests:
    """Test these tools, one after the other; `done` hears of each that is through."""
    tools = []
    for name in names:
        tools.append(await _tool(bench, bench.tools[name]))
        done(tools[-1])
    return ContractTests(
        passed=all(one.passed for one in tools),
        made_at=datetime.now(UTC),
        build=installed_build().code,
        tools=tuple(tools),
    )


async def _tool(bench: Bench, tool: Tool) -> ToolTested:
    trials = await six(bench, tool)
    again = await tried(never_resent, bench, tool)
    approval = await tried(unapproved, bench, tool)
    seen = _items(bench, tool, {one.name: one for one in trials}, again, approval)
    items = tuple(
        Item(number=number, what=check.item, held=check.passed and known.held, said=known.said)
        for number, (check, known) in enumerate(zip(checklist(tool, bench.tools), seen, strict=True), start=1)
    )
    return ToolTested(
        tool=tool.name,
        version=tool.version,
        schema_digest=tool.schema_digest,
        passed=all(one.held for one in trials) and all(item.held for item in items),
        trials=trials,
        items=items,
    )


def _items(bench: Bench, tool: Tool, trials: Mapping[Test, Trial], again: Seen, approval: Seen) -> tuple[Seen, ...]:
    permission = trials["permission_violation"]
    failed = [name for name, one in trials.items() if not one.held]
    return (
        _offered(bench, tool),
        _written(tool),
        _of(trials["extra_field"]),
        Seen(permission.held and approval.held, f"{permission.said}; {approval.said}"),
        _of(trials["duplicate_execution"]),
        _of(trials["ambiguous_failure"]),
        _of(trials["post_condition"]),
        again,
        Seen(not failed, f"failed: {', '.join(failed)}" if failed else "all six hold"),
    )


def _of(trial: Trial) -> Seen:
    return Seen(trial.held, trial.said)


def _offered(bench: Bench, tool: Tool) -> Seen:
    offered = tool.name in bench.parts.tools.available()
    said = f"{tool.name} {tool.version}, {tool.schema_digest}"
    return Seen(offered, said if offered else f"{said}: the tool server does not offer it")


def _written(tool: Tool) -> Seen:
    missing = blanks(tool)
    if missing:
        return Seen(False, f"blank: {', '.join(missing)}")
    before, after = ", ".join(tool.preconditions), ", ".join(tool.evidence)
    return Seen(True, f"before: {before}; does: {tool.side_effect}; known by: {after}; success: {tool.success_when}")
