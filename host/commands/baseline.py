"""`kessai baseline`: read a case, judge it by its kind's own comparison, and show the judgement and its draft."""

from __future__ import annotations

from dataclasses import asdict

from rich.text import Text

from host.commands.exits import CommandError, Exit
from host.commands.output import console, write_json
from host.commands.run import Submission, prepare, principal_of
from host.commands.workplace import working
from host.engine.baseline import NoBaselineError, Question, baseline
from host.settings import Settings
from host.views import BaselineView
from shared_contracts.base import dump
from shared_contracts.printed import plain


async def judge(settings: Settings, argument: str, principal: str | None, as_of: str | None, *, as_json: bool) -> None:
    """Judge a case; raises CommandError."""
    asked = prepare(argument, principal, as_of)
    if not isinstance(asked, Submission):
        raise CommandError(Exit.BAD_INPUT, f"there is no file {argument}", "Name a case's file.")
    if asked.workflow.baseline is None:
        raise CommandError(Exit.BAD_INPUT, f"the kind {asked.workflow.kind} has no baseline", "kessai run runs it.")
    view = await _judged(settings, asked)
    if as_json:
        write_json(dump(view))
    else:
        _show(view)


async def _judged(settings: Settings, asked: Submission) -> BaselineView:
    case = dump(asked.case)
    async with working(settings) as place:
        from host import wiring  # here, since it brings the protocol's client along: a second by itself

        async with wiring.driver(settings, place.links) as driver:
            principal = principal_of(driver.parts.authorization, asked, settings)
            as_of = asked.as_of if asked.as_of is not None else getattr(asked.case, "requested_at", None)
            question = Question(asked.workflow, case, principal, as_of)
            try:
                judged = await baseline(driver.parts, question)
            except NoBaselineError as error:
                raise CommandError(Exit.NOT_READY, str(error), "kessai doctor looks at every part.") from error
    return BaselineView(kind=asked.workflow.kind, resource=asked.workflow.resource(case), **asdict(judged))


def _show(view: BaselineView) -> None:
    to = console()
    lines = {
        view.decision: view.resource,
        "missing": ", ".join(view.missing) if view.missing else None,
        "rules": view.rule_version,
        **{f"draft ({language})": text for language, text in (view.notification or {}).items()},
        "evidence": ", ".join(view.evidence_refs) if view.evidence_refs else None,
    }
    for name, value in lines.items():
        if value is not None:
            to.print(Text(f"{name}  ", style="dim"), Text(plain(value)), sep="", soft_wrap=True)
