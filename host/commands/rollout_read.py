"""Reads where the rollout stands, as the commands' document."""

from __future__ import annotations

from typing import Any, Literal

from psycopg import AsyncConnection

from host.domain.rollout import LAST, WHAT, OpenStage, stands_against
from host.rollout_views import Actor, CaseToCheck, CheckRate, OpenStageView, Passed, RolloutAct, RolloutView
from host.store import rollout
from host.store.pool import Pool

TO_CHECK_SHOWN = 100


async def read_rollout(pool: Pool) -> RolloutView:
    """Read everything at one moment."""
    async with pool.connection() as connection, connection.transaction():
        history = await rollout.history(connection)
        stage = await rollout.current_stage(connection)
        to_check = await rollout.to_check(connection, TO_CHECK_SHOWN)
        rate = await rollout.sampling(connection)
        several = await rollout.tracked(connection)
    through = _through(history)
    status = _status(history)
    return RolloutView(
        status=status,
        said=_said(status, stage, through),
        stage=None if stage is None else _stage(stage),
        through=through,
        several_at_a_time=several,
        to_check=tuple(
            CaseToCheck(
                workflow_id=one.workflow_id, kind=one.kind, tenant_id=one.tenant_id, resource=one.resource,
                state=one.state, ended=one.ended, taken_in_at=one.at,
            )
            for one in to_check
        ),
        rate=CheckRate(
            one_in=rate.one_in, incidents=rate.incidents, cases=rate.cases, checks=rate.checks, wrong=rate.wrong
        ),
        history=tuple(_act(one, history) for one in history),
    )  # fmt: skip


async def said_now(connection: AsyncConnection[Any]) -> tuple[bool, str]:
    """Say whether somebody has said whom cases are taken in for, and for whom that is."""
    history = await rollout.history(connection)
    status = _status(history)
    return status != "unsaid", _said(status, await rollout.current_stage(connection), _through(history))


def _status(history: list[rollout.Act]) -> Literal["unsaid", "waived", "open", "closed"]:
    if not history:
        return "unsaid"
    match history[-1].act:
        case "waive":
            return "waived"
        case "open":
            return "open"
        case _:
            return "closed"


def _through(history: list[rollout.Act]) -> tuple[str, ...]:
    passed = (one.releases for one in history if one.act == "pass" and one.stage == LAST and one.releases is not None)
    return tuple(sorted({release for releases in passed for release in releases.values()}))


def _said(status: str, stage: OpenStage | None, through: tuple[str, ...]) -> str:
    anybody = f"; everybody's cases are taken in under {', '.join(through)}" if through else ""
    if status == "waived":
        return "no rollout runs, by somebody's word: everybody's cases are taken in, and no stage counts them"
    if status == "unsaid":
        return "nobody has opened a rollout here, or said that none runs: no case is taken in"
    if stage is not None:
        return f"stage {stage.stage} is open: {WHAT[stage.stage]}, {stage.cases} of {stage.due} cases{anybody}"
    return f"no stage is open{anybody}" if through else "no stage is open: no case is taken in"


def _stage(one: OpenStage) -> OpenStageView:
    return OpenStageView(
        stage=one.stage, of=WHAT[one.stage], releases=one.releases, due=one.due, cases=one.cases, ended=one.ended,
        checked=one.checked, wrong=one.wrong, uncompensated=one.uncompensated, against=stands_against(one, None),
        by=Actor(name=one.actor, os_user=one.os_user, authz=one.authz, reason=one.reason, at=one.at),
    )  # fmt: skip


def _act(one: rollout.Act, history: list[rollout.Act]) -> RolloutAct:
    by = Actor(
        name=one.actor, os_user=one.details["os_user"], authz=one.details.get("authz"), reason=one.reason, at=one.at
    )
    opening = next((other for other in history if other.act_id == one.opening), None)
    passed = None
    if one.act == "pass" and opening is not None:
        counts = ("cases", "compared", "untracked", "missing", "duplicate", "uncompensated", "checked", "wrong")
        counted = {name: getattr(one, name) for name in counts}
        passed = Passed(**counted, observed_seconds=(one.at - opening.at).total_seconds())
    match one.act:
        case "waive" | "open" | "pass" | "abandon" as act:
            return RolloutAct(act=act, stage=one.stage, releases=one.releases, passed=passed, by=by)
        case _:
            raise AssertionError(one.act)
