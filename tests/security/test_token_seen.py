"""A token that was verified before is not verified again; what may have changed since is asked each time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shared_contracts.task_token import LEEWAY_SECONDS
from tests.support.tokens import DROP, ISSUER, Issuer
from tool_server.auth import Verifier
from tool_server.call import Caller
from tool_server.jws import Reason
from tool_server.keys import Keyring, Trust
from tool_server.seen import SEEN_MAX, SWEEP_SECONDS, Seen


class Clock:
    """The time as a test sets it."""

    def __init__(self) -> None:
        self.now = float(int(time.time()))

    def __call__(self) -> float:
        return self.now


def verifier_of(directory: Path) -> tuple[Issuer, Verifier, Clock]:
    issuer, clock = Issuer.at(directory), Clock()
    return issuer, Verifier(Keyring(issuer.issuers_file), issuer.resource, clock), clock


def test_a_token_that_is_used_again_is_the_caller_that_it_was(tmp_path):
    issuer, verifier, _ = verifier_of(tmp_path)
    token = issuer.external()
    first = verifier.verify(token)
    assert isinstance(first, Caller)
    assert verifier.verify(token) is first
    assert verifier.verify(issuer.external()) != first


@pytest.mark.parametrize(
    ("seconds", "met"),
    [
        (60 + LEEWAY_SECONDS - 1, None),
        (60 + LEEWAY_SECONDS, Reason.EXPIRED),
        (-LEEWAY_SECONDS, None),
        (-LEEWAY_SECONDS - 1, Reason.NOT_YET),
    ],
)
def test_the_time_is_asked_at_each_use(tmp_path, seconds, met):
    issuer, verifier, clock = verifier_of(tmp_path)
    now = int(clock.now)
    token = issuer.token(iat=now, nbf=now, exp=now + 60)
    clock.now += seconds - (1 if seconds > 0 else -1)
    first = verifier.verify(token)
    assert isinstance(first, Caller)
    clock.now = now + seconds
    assert verifier.verify(token) is (first if met is None else met)


def test_a_key_that_has_ended_meanwhile_verifies_nothing_that_was_seen(tmp_path):
    issuer, verifier, clock = verifier_of(tmp_path)
    issuer.publish(issuer.jwk(exp=int(clock.now) + 10))
    token = issuer.token()
    assert isinstance(verifier.verify(token), Caller)
    clock.now += 10
    assert verifier.verify(token) is Reason.UNKNOWN_KEY


def _removed(issuer: Issuer) -> None:
    issuer.publish(Issuer(Ed25519PrivateKey.generate(), "key-2", ISSUER, issuer.directory).jwk())


def _replaced(issuer: Issuer) -> None:
    issuer.publish(Issuer(Ed25519PrivateKey.generate(), issuer.kid, ISSUER, issuer.directory).jwk())


def _broken(issuer: Issuer) -> None:
    issuer.publish(issuer.jwk(alg=DROP))


def _anothers(issuer: Issuer) -> None:
    Issuer(issuer.private, issuer.kid, "https://another.example", issuer.directory).publish(issuer.jwk())


CHANGES = [
    (_removed, Reason.UNKNOWN_KEY),
    (_replaced, Reason.SIGNATURE),
    (_broken, Reason.KEYS_UNUSABLE),
    (_anothers, Reason.ISSUER),
]


@pytest.mark.parametrize(("change", "met"), CHANGES)
def test_the_next_use_after_a_change_of_the_keys_is_judged_by_the_new_ones(
    tmp_path: Path, change: Callable[[Issuer], None], met: Reason
) -> None:
    issuer, verifier, _ = verifier_of(tmp_path)
    token = issuer.token()
    first = verifier.verify(token)
    change(issuer)
    assert [verifier.verify(token) for _ in range(2)] == [met, met]
    issuer.publish(issuer.jwk())
    again = verifier.verify(token)
    assert again == first
    assert again is not first, "it was verified under the keys that stand there now"


@pytest.mark.parametrize("claims", [{"aud": "http://elsewhere.example/mcp"}, {"scope": ""}, {"use": "probe"}])
def test_what_was_refused_is_refused_again(tmp_path, claims):
    issuer, verifier, _ = verifier_of(tmp_path)
    token = issuer.token(**claims)
    first = verifier.verify(token)
    assert isinstance(first, Reason)
    assert verifier.verify(token) is first


def test_a_token_that_came_too_early_passes_when_its_time_has_come(tmp_path):
    issuer, verifier, clock = verifier_of(tmp_path)
    begins = int(clock.now) + 30
    token = issuer.token(nbf=begins)
    assert verifier.verify(token) is Reason.NOT_YET
    clock.now = begins
    assert isinstance(verifier.verify(token), Caller)


def test_each_server_remembers_for_its_own_resource_alone(tmp_path):
    issuer, verifier, _ = verifier_of(tmp_path)
    token = issuer.token()
    assert isinstance(verifier.verify(token), Caller)
    assert Verifier(Keyring(issuer.issuers_file), f"{issuer.resource}2").verify(token) is Reason.AUDIENCE


def remembering(directory: Path, **claims: int) -> tuple[Seen, Trust, Caller]:
    issuer, verifier, _ = verifier_of(directory)
    caller, trust = verifier.verify(issuer.token(**claims)), Keyring(issuer.issuers_file).trust()
    assert isinstance(caller, Caller)
    return Seen(trust), trust, caller


def test_so_many_are_remembered_and_the_one_that_was_asked_for_least_lately_goes(tmp_path):
    found, _, caller = remembering(tmp_path)
    names = [number.to_bytes(4, "big") for number in range(SEEN_MAX + 1)]
    for name in names[:-1]:
        found.keep(name, caller)
    found.keep(names[0], caller)  # used again
    found.keep(names[-1], caller)
    held = [name for name in names if found.find(name) is not None]
    assert held == [names[0], *names[2:]]


def test_what_has_expired_is_forgotten_without_being_asked_for(tmp_path):
    found, trust, caller = remembering(tmp_path)
    end = caller.claims.exp
    found.under(trust, end - SWEEP_SECONDS)
    found.keep(b"token", caller)
    found.under(trust, end - 0.1)
    assert found.find(b"token") is caller
    found.under(trust, end + SWEEP_SECONDS)
    assert found.find(b"token") is None


def test_a_clock_that_was_set_back_does_not_keep_what_expires(tmp_path):
    found, trust, caller = remembering(tmp_path)
    end = caller.claims.exp
    found.under(trust, end + 1e6)
    found.keep(b"token", caller)
    found.under(trust, end - 1)
    found.under(trust, end + SWEEP_SECONDS)
    assert found.find(b"token") is None
