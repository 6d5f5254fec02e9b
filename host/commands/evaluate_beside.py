"""What an evaluation is given beside its cases: what things cost, and the tests of each tool on its own.

Invariant: tools that do not pass on their own, or passed in another build, are not combined: no case is run with them.
"""

from __future__ import annotations

from pathlib import Path

from host.commands.contract_test import ran, updating
from host.commands.evaluate import read_document
from host.commands.exits import CommandError, Exit
from host.commands.output import say
from host.evaluation import contract_documents
from host.evaluation.contract_documents import ContractTests
from host.evaluation.rates import read_rates
from host.settings import Settings
from host.stack.build import installed_build
from shared_contracts.evaluation_cases import Refused
from shared_contracts.evaluation_report import CostRates, ToolTested
from shared_contracts.tools import TOOLS

AGAIN = (
    "kessai contract-test --json makes them anew; --contract-tests-first makes them before the cases.\nNothing was run."
)


def rates(path: Path | None) -> CostRates:
    """Read what things cost; raises CommandError."""
    read = read_rates(path)
    if isinstance(read, Refused):
        raise CommandError(Exit.BAD_INPUT, read.problems[0], "\n".join((*read.problems[1:], "Nothing was run.")))
    return read


def tests_of_file(path: Path | None) -> tuple[ToolTested, ...]:
    """Take tests that were made before, and are of what is going to be run; raises CommandError."""
    if path is None:
        return ()
    tests = read_document(path, ContractTests, "document of contract tests", AGAIN)
    others = _of_another_version(tests)
    if others:
        raise CommandError(
            Exit.BAD_INPUT, f"{path} is of another version: {others[0]}", "\n".join((*others[1:], AGAIN))
        )
    return _passed(tests, Exit.BAD_INPUT)


async def tests_made(settings: Settings) -> tuple[ToolTested, ...]:
    """Make them; raises CommandError where one fails, StackError, NotReadyError."""
    return _passed(await ran(settings, updating(), _tell), Exit.FAILED)


def _of_another_version(tests: ContractTests) -> list[str]:
    build, known = installed_build().code, {one.tool: (one.version, one.schema_digest) for one in tests.tools}
    due = {name: (TOOLS[name].version, TOOLS[name].schema_digest) for name in updating()}
    built = [] if tests.build == build else [f"the build was {tests.build}, and {build} is installed"]
    lacking = [f"{name} was not tested" for name in due if name not in known]
    changed = [f"{name} is {due[name][0]} and was another" for name in due if known.get(name, due[name]) != due[name]]
    return built + lacking + changed


def _passed(tests: ContractTests, end: Exit) -> tuple[ToolTested, ...]:
    """Give each tool with how many of its tests and items held; a tool that failed ends it all."""
    held = {one.tool: [*(each.held for each in one.trials), *(each.held for each in one.items)] for one in tests.tools}
    failed = [one.tool for one in tests.tools if not (one.passed and all(held[one.tool]))]
    if failed or not tests.passed:
        what = f"contract tests not passed: {', '.join(failed) or 'their document says so'}"
        raise CommandError(end, what, "A tool that fails on its own is not combined with others. No case was run.")
    return tuple(
        ToolTested(
            tool=one.tool,
            version=one.version,
            build=tests.build,
            passed=sum(held[one.tool]),
            of=len(held[one.tool]),
        )
        for one in tests.tools
    )


def _tell(one: contract_documents.ToolTested) -> None:
    say(f"contract tests of {one.tool}: {'passed' if one.passed else 'not passed'}")
