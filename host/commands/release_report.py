"""What a report has to be of for a release to be recorded by it: this program, its cases, its tools each on their own.

Invariant: nothing is taken from the report to judge it by; what it should be of is read from what is installed.
"""

from __future__ import annotations

from typing import get_args

from host.commands.contract_test import updating
from host.commands.evaluate_run import OURS
from host.commands.exits import CommandError, Exit
from host.domain.workflow import Workflow
from host.evaluation.anothers import Own, anothers, untested
from host.evaluation.contract_documents import ITEMS, Test
from host.stack.build import installed_build
from shared_contracts.evaluation_cases import Refused, read_cases
from shared_contracts.evaluation_report import EvaluationReport, RunLimits
from shared_contracts.tools import TOOLS

_MEND = "Nothing was recorded. Evaluate this program: kessai eval run --contract-tests-first."


def refuse_anothers(report: EvaluationReport, workflow: Workflow) -> None:
    """Refuse a report that is of something else, or without each tool's own tests; raises CommandError."""
    own = own_of(workflow)
    others = anothers(report, own)
    if others:
        what = f"the report is not of this program: {others[0]}"
        raise CommandError(Exit.BAD_INPUT, what, "\n".join((*others[1:], _MEND)))
    lacking = untested(report, own)
    if lacking:
        what = f"the report lacks the contract tests of {', '.join(lacking)}, each of which is a condition"
        raise CommandError(Exit.BAD_INPUT, what, _MEND)


def own_of(workflow: Workflow) -> Own:
    """Say what a report of this program, under this release, is of."""
    from host.evaluation.plan import PINNED  # here, since the engine takes a second to import

    cases = read_cases(OURS)
    if isinstance(cases, Refused):
        raise CommandError(Exit.NOT_READY, cases.problems[0], "Install this program again, whole.")
    limits = workflow.limits
    return Own(
        build=installed_build().code,
        pinned={
            "order_snapshot": PINNED["order_snapshot"],
            "policy": PINNED["policy_version"],
            "authz": PINNED["authz_version"],
        },
        tools={name: TOOLS[name].version for names in workflow.tools.values() for name in names},
        limits=RunLimits(calls=limits.calls, refused_proposals=limits.refusals, active_seconds=limits.active_seconds),
        cases=cases,
        updating={name: TOOLS[name].version for name in updating()},
        tests=len(get_args(Test)) + ITEMS,
    )
