"""A right token that the server has just seen, and what must not pass for it: what is remembered is no way in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from tests.security.forgery.attempt import UNPROVEN, UNTRUSTED, Answer, Attempt, right, told
from tests.security.forgery.forge import Forge, Wire
from tests.security.forgery.spellings import MALLEABLE
from tests.security.forgery.stand import Stand
from tests.support.tokens import b64

KIND = "a token that was seen before"


def _plain(forge: Forge) -> Wire:
    return forge.call(forge.token())


def _nothing(_stand: Stand, _forge: Forge) -> AbstractContextManager[None]:
    return nullcontext()


def _seen(
    then: Callable[[Stand, Forge], AbstractContextManager[Any]] = _nothing,
) -> Callable[[Stand, Forge], AbstractContextManager[Any]]:
    """The right token is used, and then this is done."""

    @contextmanager
    def within(stand: Stand, forge: Forge) -> Iterator[None]:
        stand.passes(_plain(forge))
        with then(stand, forge):
            yield

    return within


def _removed(stand: Stand, _forge: Forge) -> AbstractContextManager[None]:
    return stand.published(*(one for one in stand.members() if one["kid"] != "key-1"))


def _replaced(stand: Stand, forge: Forge) -> AbstractContextManager[None]:
    other = forge.keys.stranger.jwk()["x"]
    return stand.published(*({**one, "x": other} if one["kid"] == "key-1" else one for one in stand.members()))


def _over(stand: Stand, forge: Forge) -> AbstractContextManager[None]:
    """The key's own end has come."""
    return stand.published(*({**one, "exp": forge.moment} for one in stand.members()))


def _broken(stand: Stand, _forge: Forge) -> AbstractContextManager[None]:
    return stand.published(*stand.members(), "key")


def _revoked(stand: Stand, forge: Forge) -> AbstractContextManager[None]:
    stand.revoke_token(forge.mark)
    return nullcontext()


def _payload(forge: Forge) -> Wire:
    """Its header and its signature around what would be another's."""
    header, _, signature = forge.token().split(".")
    return forge.call(f"{header}.{forge.token(sub='clerk-2').split('.')[1]}.{signature}")


def _unsigned(forge: Forge) -> Wire:
    return forge.call(".".join([b64(b'{"alg":"none","typ":"at+jwt"}'), forge.token().split(".")[1], ""]))


def _after_it(name: str, wire: Callable[[Forge], Wire], answer: Answer, then: Any = _nothing) -> Attempt:
    return Attempt(KIND, name, wire, answer, within=_seen(then))


ATTEMPTS: list[Attempt] = [
    right(KIND, "the same once more", _plain, within=_seen()),
    *(replace(one, kind=KIND, within=_seen()) for one in MALLEABLE if one.answer is not None),
    _after_it("another payload", _payload, UNPROVEN),
    _after_it("no algorithm", _unsigned, UNPROVEN),
    _after_it("its key is removed", _plain, UNPROVEN, _removed),
    _after_it("its key is another under the same kid", _plain, UNPROVEN, _replaced),
    _after_it("its key has ended", _plain, UNPROVEN, _over),
    _after_it("its set of keys is none", _plain, UNTRUSTED, _broken),
    _after_it("it is revoked", _plain, told("token_revoked"), _revoked),
    _after_it(
        "for another order", lambda f: f.call(f.token(), arguments={"order_id": "A-2"}),
        told("token_for_other_resource"),
    ),
    _after_it("for another tool", lambda f: f.call(f.token(), "create_return"), told("token_for_other_tool")),
]  # fmt: skip
