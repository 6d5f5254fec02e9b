"""In which mode each kind is, and why: from the program's own tables and the authorization set that is named."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from host.database import NotReadyError
from host.domain.principals import AuthorizationSet
from host.domain.suitability import MEANINGS, Failing, failing
from host.domain.workflow import Workflow
from host.rights import read_authorization
from host.settings import Settings
from host.views import FailingCondition, KindView
from host.workflows.catalogue import WORKFLOWS
from shared_contracts.printed import plain
from shared_contracts.tools import TOOLS

_WORDS = {
    "full": "full: it acts by itself",
    "read_and_draft": "read and draft: nobody is offered its updates; a person gets a draft instead",
}


def modes(settings: Settings) -> tuple[tuple[KindView, ...], str | None]:
    """Give the kinds, or why nothing can be said of them; no database and no tool server is asked."""
    try:
        authorization = read_authorization(settings.authz_file)
    except NotReadyError as error:
        return (), str(error)
    return tuple(_kind(workflow, authorization) for workflow in WORKFLOWS), None


def _kind(workflow: Workflow, authorization: AuthorizationSet) -> KindView:
    found = failing(workflow, TOOLS, authorization)
    return KindView(
        kind=workflow.kind,
        release=workflow.release,
        mode="read_and_draft" if found else "full",
        failing=tuple(_condition(one) for one in found),
    )


def _condition(one: Failing) -> FailingCondition:
    return FailingCondition(condition=one.condition, meaning=MEANINGS[one.condition], missing=one.why)


def show(to: Console, kinds: Iterable[KindView], unknown: str | None) -> None:
    """Say it in words."""
    if unknown is not None:
        to.print(Text(_lines(f"kinds: {unknown}"), style="red"), soft_wrap=True)
    for kind in kinds:
        style = "green" if kind.mode == "full" else "yellow"
        to.print(Text(f"{kind.kind} ({kind.release})  {_WORDS[kind.mode]}", style=style), soft_wrap=True)
        for one in kind.failing:
            to.print(f"  {one.condition}: {one.meaning}", soft_wrap=True)
            for sentence in one.missing:
                to.print(Text(f"    {plain(sentence)}"), soft_wrap=True)


def _lines(text: str) -> str:
    """Keep the lines of what is told in several."""
    return "\n".join(plain(line) for line in text.splitlines())
