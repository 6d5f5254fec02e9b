"""Operators of the authorization set: who may act, by the name that was typed; who ran the command stands beside it.

Invariant: nobody acts under a name to which the set does not give exactly this act.
"""

from __future__ import annotations

from host.commands.exits import CommandError, Exit
from host.domain.acting import By
from host.domain.principals import Act, Operator
from host.rights import read_with_digest
from host.settings import Settings
from shared_contracts.operator import operator

_DOES: dict[Act, str] = {
    Act.STOP: "stop work",
    Act.RESUME: "let work go on",
    Act.REVIEW: "close or decide a review",
    Act.COMPENSATE: "have something undone",
    Act.RELEASE: "record a release or roll back to one",
    Act.ROLLOUT: "open or close a stage of the rollout",
    Act.CHECK: "check a case",
}


def operator_of(settings: Settings, name: str, act: Act) -> tuple[Operator, By]:
    """Find who acts, and what is kept of it; raises CommandError for a name that may not, and says who could."""
    authorization, authz = read_with_digest(settings.authz_file)
    known = authorization.operators
    could = sorted(one.name for one in known if act in one.may)
    mend = f"Who could: {', '.join(could)}." if could else "The authorization set gives this act to nobody."
    found = next((one for one in known if one.name == name), None)
    if found is None:
        raise CommandError(Exit.BAD_INPUT, f"{name!r} is no operator; nothing was changed", mend)
    if act not in found.may:
        raise CommandError(Exit.BAD_INPUT, f"{name} may not {_DOES[act]}; nothing was changed", mend)
    return found, By(found.name, operator(), authz)
