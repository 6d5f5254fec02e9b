"""What this proves: wherever the program of a person's act dies, or what it set going, the act was taken whole or not.

Each act is killed before and after each of its commits, an undoing before and after each commit of its driver and of
its cancellation. Then the act is repeated or the system goes on by itself: one effect each, and the record is true.
A correction is sent as every notice is, whose commits are killed where a normal return is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from tests.crash.boundary import AT
from tests.crash.office import WORD, Office, commands_printed, opened
from tests.crash.stage import Stage

pytest_plugins = ["tests.crash.fixtures"]
pytestmark = [pytest.mark.long, pytest.mark.timeout(180), pytest.mark.xdist_group("crash_persons")]

STEP, WAKE = "commit_steps", "procrastinate_defer_jobs"  # the last statement of a commit, with a wake-up or without
UNDOING = 7  # commits of a driver: look, cancel, read back, look again, correct, read back, end
IN_DOUBT, SEEN_NOT = 5, 2 * UNDOING + 12
AS_OF = ("--as-of", "2026-07-30T10:00:00+09:00")  # while the goods may still be sent back
COMPENSATED = ("NEEDS_REVIEW", "compensated")


@pytest.fixture(scope="module")
def whole_office(whole_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Office:
    return opened(whole_stage, tmp_path_factory.mktemp("office"), seen_not=SEEN_NOT, in_doubt=IN_DOUBT)


@pytest.fixture
def office(whole_office: Office, stage: Stage) -> Iterator[Office]:
    stage.keep("server")
    yield whole_office
    whole_office.stopped(False)


@dataclass(frozen=True)
class Act:
    """`commits` are those of the whole act; `taken` tells whether it was."""

    case: Callable[[Office], UUID]
    words: Callable[[Office, UUID], tuple[str, ...]]
    commits: tuple[str, ...]
    taken: Callable[[Office, UUID], bool]


def review(*words: str) -> Callable[[Office, UUID], tuple[str, ...]]:
    return lambda _, case: ("review", str(case), *words)


def ordered(office: Office) -> UUID:
    """A case that is to be undone, and nobody who does it."""
    office.stage.drop("worker")
    case = office.seen_not.pop()
    office.act("review", str(case), "compensate", *WORD)
    office.stage.forget_jobs()
    return case


def halted(office: Office) -> UUID:
    """A case that is to be undone, while updates are stopped."""
    case = ordered(office)
    office.stopped(True)
    return case


def withdrawn(office: Office) -> UUID:
    case = office.waiting()
    office.act("withdraw", str(case))
    return case


def at(*places: tuple[str, str] | str) -> Callable[[Office, UUID], bool]:
    return lambda office, case: office.state(case)[0] in places


ACTS: dict[str, Act] = {
    "approve": Act(
        Office.waiting, lambda o, c: o.decision("approve", c), (WAKE,), lambda o, c: not at("WAITING_APPROVAL")(o, c)
    ),
    "deny": Act(Office.waiting, lambda o, c: o.decision("deny", c), (STEP,), at("REJECTED")),
    "withdraw": Act(Office.waiting, lambda _, c: ("withdraw", str(c)), (STEP,), at("REJECTED")),
    "close": Act(lambda o: o.seen_not.pop(), review("close", *WORD), (STEP,), Office.closed),
    "compensate": Act(
        lambda o: o.seen_not.pop(), review("compensate", *WORD), (WAKE,), lambda o, c: o.undoings(c) != []
    ),
    "release": Act(
        halted, lambda _, c: ("compensate", str(c), "--as", "sato"), (WAKE,), lambda o, c: o.undoings(c)[0][1]
    ),
    "adopt": Act(
        lambda o: o.in_doubt.pop(),
        review("adopt", "--as", "sato"),
        (STEP, WAKE),
        lambda o, c: not at("NEEDS_REVIEW")(o, c),
    ),
}
ENDS = {
    "approve": (("COMPLETED", "notice_verified"), (1, 1)),
    "deny": (("REJECTED", "approval_denied"), (0, 0)),
    "withdraw": (("REJECTED", "withdrawn"), (0, 0)),
    "close": (("NEEDS_REVIEW", "unverified_effect"), (1, 1)),
    "compensate": (COMPENSATED, (1, 1)),
    "release": (COMPENSATED, (1, 1)),
    "adopt": (("COMPLETED", "notice_verified"), (1, 1)),
}


def both_sides(commits: tuple[str, ...]) -> list[str]:
    counted: Counter[str] = Counter()
    points = []
    for name in commits:
        counted[name] += 1
        points += [f"{when} {name} {counted[name]}" for when in ("before", "after")]
    return points


def ended(office: Office, name: str, case: UUID) -> None:
    """The case comes to its one end, with its effects once, and the record says so."""
    end, effects = ENDS[name]
    assert office.stage.ended(case) == [end]
    office.stopped(False)
    assert office.stage.effects(case) == effects
    assert office.undone(case) == ((1, 1) if end == COMPENSATED else (0, 0))
    assert office.stage.shown(case)["state"] == end[0]
    under_way = "SELECT count(*) FROM attempt WHERE workflow_id = %(id)s AND outcome IS NULL"
    assert office.stage.rows(under_way, id=case) == [(0,)]


@pytest.mark.parametrize(
    ("name", "point"), [(name, point) for name, act in ACTS.items() for point in both_sides(act.commits)]
)
def test_an_act_whose_program_dies_was_taken_whole_or_not_at_all(office: Office, name: str, point: str) -> None:
    act = ACTS[name]
    office.stage.keep("worker")
    case = act.case(office)
    words = act.words(office, case)
    office.dies(point, *words)
    last = point == both_sides(act.commits)[-1]
    assert act.taken(office, case) is last
    if not last:
        office.act(*words)
    office.stage.keep("worker")
    ended(office, name, case)


@pytest.mark.parametrize("point", both_sides((WAKE,)))
def test_a_case_is_asked_for_anew_as_one_though_the_program_that_asks_dies(office: Office, point: str) -> None:
    office.stage.keep("worker")
    old = withdrawn(office)
    office.dies(point, "reapply", str(old), *AS_OF)
    new = "SELECT workflow_id FROM workflow WHERE supersedes = %(id)s"
    assert len(office.stage.rows(new, id=old)) == int(point.startswith("after"))
    assert str(old) in commands_printed(office.act("reapply", str(old), *AS_OF))
    ((anew,),) = office.stage.rows(new, id=old)
    office.stage.until("SELECT state = 'WAITING_APPROVAL' FROM workflow WHERE workflow_id = %(id)s", id=anew)
    office.act("withdraw", str(anew))
    assert office.stage.effects(anew) == (0, 0)


@pytest.mark.parametrize("point", both_sides((STEP,)))
def test_what_nobody_approved_expires_once_though_the_worker_that_ends_it_dies(office: Office, point: str) -> None:
    office.stage.keep("worker")
    case = office.waiting()
    office.stage.drop("worker")
    office.stage.forget_jobs()  # or what the dropped one had in hand would be the next one's first commit
    with office.a_day_later():
        office.stage.gone(office.stage.start(office.stage.stand.worker("worker"), **{AT: point}))
        assert office.state(case)[0] == ("EXPIRED" if point.startswith("after") else "WAITING_APPROVAL")
        worker = office.stage.worker()
        assert office.stage.ended(case) == [("EXPIRED", "expired")]
        office.stage.kill(worker)
    assert office.stage.effects(case) == (0, 0)
    events = "SELECT count(*) FROM checkpoint WHERE workflow_id = %(id)s AND reason = 'expired'"
    assert office.stage.rows(events, id=case) == [(1,)]
    assert office.stage.shown(case)["state"] == "EXPIRED"


def test_an_undoing_whose_driver_dies_at_any_commit_is_gone_on_with_and_nothing_is_undone_twice(office: Office) -> None:
    points = both_sides((STEP,) * UNDOING)
    cases = [ordered(office) for _ in points]
    begun = len(office.stage.stand.said("act"))
    drivers = [
        office.start("run", str(case), "--json", **{AT: point}) for case, point in zip(cases, points, strict=True)
    ]
    for driver in drivers:
        office.stage.gone(driver)
    said = office.stage.stand.said("act")[begun:]
    assert [point for point in points if f"SIGKILL {point}" not in said] == []
    office.stage.keep("worker")
    for case in cases:
        ended(office, "compensate", case)
        assert office.undoings(case) == [("done", False)]


@pytest.mark.parametrize("point", both_sides(("returns.cancel",)))
def test_a_cancellation_whose_tool_server_dies_is_made_once(office: Office, point: str) -> None:
    case = ordered(office)
    office.stage.drop("server")
    server = office.stage.server(**{AT: point})
    driver = office.start("run", str(case), "--json")
    office.stage.gone(server)
    office.stage.keep("server")
    office.stage.keep("worker")
    ended(office, "compensate", case)
    office.stage.gone(driver)


def test_every_commit_of_a_persons_act_and_of_an_undoing_has_a_crash_point_on_either_side(office: Office) -> None:
    found = {}
    for name, act in ACTS.items():
        office.stage.keep("worker")
        case = act.case(office)
        office.stage.drop("worker")
        found[name] = tuple(office.traced(*act.words(office, case)))
        office.stage.keep("worker")
        ended(office, name, case)
    assert found == {name: act.commits for name, act in ACTS.items()}
    office.stage.keep("worker")
    old = withdrawn(office)
    office.stage.drop("worker")
    assert office.traced("reapply", str(old), *AS_OF) == [WAKE]
    office.stage.forget_jobs()
    assert office.traced("run", str(ordered(office)), "--json") == [STEP] * UNDOING
