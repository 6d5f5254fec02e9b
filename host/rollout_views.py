"""What `release`, `rollout` and `check` write with `--json`, each a closed document with a committed schema."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from shared_contracts.base import Contract
from shared_contracts.evaluation_report import Conditions

Count = Annotated[int, Field(ge=0)]
Stage = Annotated[int, Field(ge=1, le=3)]


class Actor(Contract):
    """Who did it and why: the name in the authorization set, who ran the command, and the digest of that set."""

    name: str
    os_user: str
    authz: str | None
    reason: str
    at: AwareDatetime


class ReleaseAct(Contract):
    """A release with the report that it passed by, or a way back to one; what belongs to the other is null."""

    act: Literal["record", "rollback"]
    kind: str
    release: str
    report_sha256: str | None
    build: str | None
    evaluated_at: AwareDatetime | None
    versions: Conditions | None
    left_release: str | None
    by: Actor


class BegunKind(Contract):
    """Under which release a kind's new cases begin; not `recorded`: under the newest that the program carries."""

    kind: str
    begins_under: str
    recorded: bool
    carried: tuple[str, ...]
    open_cases: dict[str, Count]  # by the release that they began under, and go on under


class ReleaseList(Contract):
    """`kessai release list`, `record` and `rollback`."""

    kinds: tuple[BegunKind, ...]
    history: tuple[ReleaseAct, ...]


class Passed(Contract):
    """What a stage was passed with. `observed_seconds` is how long it was open, which alone passes nothing."""

    cases: Count
    compared: Count
    untracked: Count
    missing: Count
    duplicate: Count
    uncompensated: Count
    checked: Count
    wrong: Count
    observed_seconds: Annotated[float, Field(ge=0)]


class RolloutAct(Contract):
    """One line of the history; `passed` is of a stage that was closed as passed."""

    act: Literal["waive", "open", "pass", "abandon"]
    stage: Stage | None
    releases: dict[str, str] | None
    passed: Passed | None
    by: Actor


class OpenStageView(Contract):
    """The stage that is open; `against` is what keeps it from being passed before both sides are compared."""

    stage: Stage
    of: str
    releases: dict[str, str]
    due: Count
    cases: Count
    ended: Count
    checked: Count
    wrong: Count
    uncompensated: Count
    against: tuple[str, ...]
    by: Actor


class CaseToCheck(Contract):
    """A case that a person has to look at; not `ended`: not yet."""

    workflow_id: UUID
    kind: str
    tenant_id: str
    resource: str
    state: str
    ended: bool
    taken_in_at: AwareDatetime


class CheckRate(Contract):
    """After the last stage: one of `one_in` cases is looked at, by the incidents among the newest fifty."""

    one_in: Annotated[int, Field(ge=1)]
    incidents: Count
    cases: Count
    checks: Count
    wrong: Count


class RolloutView(Contract):
    """`kessai rollout`. `through`: the releases that have passed the last stage, whose cases anybody may hand in."""

    status: Literal["unsaid", "waived", "open", "closed"]
    said: str
    stage: OpenStageView | None
    through: tuple[str, ...]
    several_at_a_time: bool
    to_check: tuple[CaseToCheck, ...]
    rate: CheckRate
    history: tuple[RolloutAct, ...]


class CaseChecked(Contract):
    """`kessai check`."""

    workflow_id: UUID
    verdict: Literal["ok", "wrong"]
    by: str
    reason: str
