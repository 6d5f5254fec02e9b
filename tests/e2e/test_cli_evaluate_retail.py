"""`kessai eval retail` over a whole file: every return alone, twice and under each fault, and all that is refused.

The smallest part of such a file is run in tests/e2e/test_cli_evaluate_run.py, beside the evaluation's other cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.defects import DEFECTS, Plant
from tests.support.evaluating import copied, planted
from tests.support.retail_run import retailed
from tests.support.retail_set import OURS, made_of, smallest

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
SECONDS_MAX = 1500.0  # some thousand cases, on a machine that does other things too


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Callable[..., Cli]]:
    """`kessai` with a home of its own; of a copy of the programs where something is to be planted in it."""
    begun = list[Cli]()

    def made(*plants: Plant) -> Cli:
        settings = dict[str, str]()
        if plants:
            code = copied(tmp_path / "code")
            settings = {"PYTHONPATH": str(code), "PYTHONSAFEPATH": "1"}
            for plant in plants:
                planted(code, plant.file, plant.before, plant.after)
        begun.append(Cli(tmp_path / "home", settings))
        return begun[0]

    yield made
    for cli in begun:
        assert cli("eval", "drop").code == 0


def test_every_return_of_the_outside_file_is_made_once_and_everything_else_is_refused(
    programs: Callable[..., Cli], retail: Path, tmp_path: Path
):
    found = retailed(programs(), tmp_path, retail, seconds=SECONDS_MAX)

    assert found.wrong(made_of(retail)) == []
    assert (found.said.code, found.said.out.splitlines()[0][:6]) == (0, "passed")
    assert len(found.report.cases) > 1000


def test_every_return_of_our_own_file_is_made_once_and_everything_else_is_refused(
    programs: Callable[..., Cli], tmp_path: Path
):
    found = retailed(programs(), tmp_path, OURS)

    assert found.wrong(made_of(OURS)) == []
    assert (found.said.code, found.said.out.splitlines()[0][:6]) == (0, "passed")
    assert found.report.conditions.policy == "retail-demo-1"


NOTIFIED = {"alone", "twice", "rate_limited", "timeout", "disconnect", "version_conflict", "notice_failure"}
_KNOWN = {defect.name: defect.plants for defect in DEFECTS}
_UNSTRUCK = Plant(
    "host/evaluation/wire.py",
    "if fault is None or fault.tool != asked.tool:",
    "if fault is None or fault.tool != asked.tool or fault.kind is FaultKind.TIMEOUT:",
)
# what is planted, and the ways of running a return, or of being refused, at which it has to be seen
PLANTED: dict[str, tuple[tuple[Plant, ...], set[str]]] = {
    "a mail leaves twice": (_KNOWN["a mail leaves twice, though every table says once"], NOTIFIED),
    "what is in doubt is sent again": (
        _KNOWN["what nobody knows the outcome of is sent again"], {"timeout", "disconnect"},
    ),
    "one request becomes two workflows": (_KNOWN["one request becomes two workflows"], {"twice"}),
    "another customer's order is read": (_KNOWN["another customer's order is read"], {"foreign"}),
    "a fault does not happen": ((_UNSTRUCK,), {"timeout"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_defect_is_seen_where_it_harms_and_nowhere_else(
    programs: Callable[..., Cli], tmp_path: Path, name: str
):
    plants, harmed = PLANTED[name]
    file = smallest(OURS, tmp_path)

    found = retailed(programs(*plants), tmp_path, file)

    assert found.said.code == 1
    wrong = found.wrong(made_of(file))
    assert {_how(said) for said in wrong} == harmed, wrong


def _how(said: str) -> str:
    """Of retail-1-0-timeout and of retail-foreign-#R1: how a return was run, or why it had to be refused."""
    parts = said.partition(":")[0].removeprefix("retail-").split("-")
    return parts[0] if parts[0] in {"foreign", "undelivered"} else parts[-1]
