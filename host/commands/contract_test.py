"""`contract-test`: bring up a place of the tests' own, make the six tests of each update tool, show the checklists.

Invariant: it ends with 0 only where every item of every tool that was asked for held; the user's own stack stays shut.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from host.commands.exits import CommandError, Exit
from host.commands.output import console, write_json
from host.commands.progress import interruptible
from host.evaluation.contract_documents import ContractTests, ToolTested
from host.settings import Settings, home_root
from host.stack.postgres import PostgresChoice
from shared_contracts.base import dump
from shared_contracts.printed import plain
from shared_contracts.tools import TOOLS


async def contract_test(settings: Settings, name: str | None, *, as_json: bool) -> Exit:
    """Run them; raises CommandError, StackError, NotReadyError."""
    view = await ran(settings, _names(name), _unsaid if as_json else _tool)
    if as_json:
        write_json(dump(view))
    else:
        _end(view)
    return Exit.DONE if view.passed else Exit.FAILED


async def ran(settings: Settings, names: tuple[str, ...], done: Callable[[ToolTested], None]) -> ContractTests:
    """Make the tests of these tools; `done` hears of each that is through. Raises StackError, NotReadyError."""
    from host.commands.log import configure  # here, since the engine and the wire take a second to import
    from host.evaluation import contract_place
    from host.evaluation.contract_bench import opened
    from host.evaluation.contract_checklist import tested

    configure()
    root = contract_place.home_of(home_root(settings))
    choice = PostgresChoice(settings.postgres_bin, settings.postgres_os_user)
    with interruptible("what worked was stopped, its home removed, and nothing of the tests is kept."):
        async with contract_place.contract_place(root, choice) as place, opened(place, TOOLS) as bench:
            return await tested(bench, names, done)


def updating() -> tuple[str, ...]:
    """Name the tools that update; a read has no effect that the six could count."""
    return tuple(tool.name for tool in TOOLS.values() if tool.writes)


def _names(name: str | None) -> tuple[str, ...]:
    writes = updating()
    if name is None:
        return writes
    if name not in writes:
        what = f"{name} only reads" if name in TOOLS else f"there is no tool {name!r}"
        raise CommandError(Exit.BAD_INPUT, what, f"The tools that update are: {', '.join(writes)}.")
    return (name,)


def _unsaid(_: ToolTested) -> None:
    """A document is written whole, at the end."""


def _end(view: ContractTests) -> None:
    failed = [one.tool for one in view.tools if not one.passed]
    word = f"not passed: {', '.join(failed)}" if failed else f"passed: {len(view.tools)} of {len(view.tools)} tools"
    console().print(Text(word, style="red" if failed else "green"))


def _tool(one: ToolTested) -> None:
    to = console()
    to.print(plain(f"{one.tool} {one.version}  {one.schema_digest}"), soft_wrap=True)
    for trial in one.trials:
        _line(trial.held, trial.name.replace("_", " "), trial.said)
    for item in one.items:
        _line(item.held, f"{item.number} {item.what}", item.said)


def _line(held: bool, what: str, said: str) -> None:
    word = Text("pass  " if held else "FAIL  ", style="green" if held else "red")
    console().print(word, plain(f"{what}: {said}"), sep="", soft_wrap=True)
