"""`kessai release`, for people."""

from __future__ import annotations

from rich.console import Console

from host.commands.output import add, table
from host.rollout_views import ReleaseList
from shared_contracts.printed import plain

SHA_SHOWN = 12


def show(to: Console, view: ReleaseList) -> None:
    """Print what new cases begin under, then the history."""
    for kind in view.kinds:
        how = "recorded" if kind.recorded else "not recorded: the newest that this program carries"
        to.print(f"new cases of {kind.kind} begin under {kind.begins_under} ({how})", soft_wrap=True)
        for release, cases in kind.open_cases.items():
            to.print(plain(f"  {cases} open under {release}"))
    if not view.history:
        return
    made = table("at", "act", "release", "by", "report", "left", "why")
    for one in view.history:
        report = None if one.report_sha256 is None else one.report_sha256[:SHA_SHOWN]
        at = one.by.at.isoformat(timespec="seconds")
        add(made, at, one.act, one.release, one.by.name, report, one.left_release, one.by.reason)
    to.print(made)
