"""`kessai rollout`, for people."""

from __future__ import annotations

from rich.console import Console

from host.commands.output import add, table
from host.rollout_views import OpenStageView, RolloutView
from shared_contracts.printed import plain


def show(to: Console, view: RolloutView) -> None:
    """Print where it stands, what the open stage lacks, what is to be checked, and the history."""
    to.print(plain(view.said), soft_wrap=True)
    if view.stage is not None:
        _stage(to, view.stage)
    if view.through:
        rate = view.rate
        to.print(f"one of {rate.one_in} cases is checked: {rate.incidents} incidents in the newest 50", soft_wrap=True)
    many = "several cases" if view.several_at_a_time else "one case"
    to.print(f"{many} may be driven at a time", soft_wrap=True)
    if view.to_check:
        made = table("to check", "kind", "of", "state", "")
        for case in view.to_check:
            add(made, case.workflow_id, case.kind, case.resource, case.state, None if case.ended else "not ended yet")
        to.print(made)
    if view.history:
        made = table("at", "act", "stage", "cases", "by", "why")
        for one in view.history:
            cases = None if one.passed is None else one.passed.cases
            add(made, one.by.at.isoformat(timespec="seconds"), one.act, one.stage, cases, one.by.name, one.by.reason)
        to.print(made)


def _stage(to: Console, stage: OpenStageView) -> None:
    under = ", ".join(sorted(stage.releases.values()))
    to.print(plain(f"opened by {stage.by.name} at {stage.by.at.isoformat(timespec='seconds')} for {under}"))
    to.print(f"{stage.ended} ended, {stage.checked} checked, {stage.wrong} wrong", soft_wrap=True)
    for one in stage.against:
        to.print(plain(f"  not yet: {one}"), soft_wrap=True)
    if not stage.against:
        to.print("  nothing that was counted stands against closing it; both sides are compared when it is closed")
