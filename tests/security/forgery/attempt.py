"""One attempt to get in, and what it has to meet. `tests.security.forgery.every` gathers all of them.

Invariant: an attempt is made anew of its forge each time, so that what is sent is known before it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.security.forgery.forge import Forge, Wire

if TYPE_CHECKING:
    from tests.security.forgery.stand import Stand


@dataclass(frozen=True)
class Answer:
    """`code` is None where HTTP itself ends the request; `reason` is what the details of an error say.

    `about` tells two bodies of one code apart: another scope that is needed, another code of the protocol's own.
    `logged` is the outcome that the call log has of it: of a genuine token that asked for one call of a tool.
    """

    status: int
    code: str | None = None
    reason: str | None = None
    about: str = ""
    logged: str | None = None


NO_HTTP = Answer(400)
MISSING = Answer(401, "token_missing")
REVOKED = Answer(401, "token_revoked")
UNPROVEN = Answer(401, "token_invalid")  # one answer, whatever was wrong
UNTRUSTED = Answer(503, "unavailable")  # the set of keys is not one, so that no key is trusted


def proven(reason: str) -> Answer:
    """The signature held, so its holder is told what is wrong."""
    return Answer(401, "token_invalid", reason)


def told(code: str, reason: str | None = None) -> Answer:
    """The tool's own refusal, in a result."""
    return Answer(200, code, reason, logged=code)


def needs(scope: str, about: str = "") -> Answer:
    """The token is genuine and its scope is not enough."""
    return Answer(403, "scope_missing", about=f"{about}{scope}", logged="scope_missing")


CLAIMS = proven("claims")


def as_it_stands(_stand: Stand, _forge: Forge) -> AbstractContextManager[None]:
    """Nothing stands while it is made but what always does."""
    return nullcontext()


@dataclass(frozen=True)
class Attempt:
    """`within` is what stands while it is made; what it does on entering belongs to others and may be carried out.

    `exact`: it means this very second, and is made anew where the second has passed meanwhile.
    """

    kind: str
    name: str
    wire: Callable[[Forge], Wire]
    answer: Answer | None  # None: it is the right one, and passes
    within: Callable[[Stand, Forge], AbstractContextManager[Any]] = as_it_stands
    exact: bool = False

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}".encode("ascii", "backslashreplace").decode()


def with_claims(kind: str, answer: Answer, cases: Iterable[tuple[str, dict[str, Any]]], **more: Any) -> list[Attempt]:
    """Calls of get_order whose token says these things."""

    def wire(claims: dict[str, Any]) -> Callable[[Forge], Wire]:
        return lambda forge: forge.call(forge.token(**claims))

    return [Attempt(kind, name, wire(claims), answer, **more) for name, claims in cases]


def with_text(kind: str, answer: Answer, cases: Iterable[tuple[str, Callable[[Forge], str]]]) -> list[Attempt]:
    """Calls of get_order with this text for a token."""

    def wire(text: Callable[[Forge], str]) -> Callable[[Forge], Wire]:
        return lambda forge: forge.call(text(forge))

    return [Attempt(kind, name, wire(text), answer) for name, text in cases]


def right(kind: str, name: str, wire: Callable[[Forge], Wire], **more: Any) -> Attempt:
    """The one that passes: without it, a server that refuses everything would do."""
    return Attempt(kind, name, wire, None, **more)


def plain(kind: str) -> Attempt:
    """The good token that all others of the kind are made from."""
    return right(kind, "the right token", lambda forge: forge.call(forge.token()))
