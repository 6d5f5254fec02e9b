"""Wycheproof's JWS vectors against our own key loading and signature reading.

A valid vector that we refuse is one of POLICY, decided by what its key or token is, or one of DEFECTS by number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tool_server.errors import TrustError
from tool_server.jwk import TrustedKey, trusted_key
from tool_server.jws import Reason, Signed, read_signed

DEFECTS = {
    346: "the key says PS256, the token PS384: one algorithm is pinned to a key",
    350: "the key says PS256, the token PS384: one algorithm is pinned to a key",
    347: "the key says ES521, which is no algorithm; the token says ES512",
    351: "the key says ES521, which is no algorithm; the token says ES512",
}


def keys_of(group: dict[str, Any]) -> dict[str, TrustedKey] | None:
    """The group's keys as the keyring would take them, or None where it refuses the set."""
    members = group["key"].get("keys", [group["key"]])
    try:
        keys = [trusted_key("https://issuer.example", member) for member in members]
    except TrustError:
        return None
    return {key.kid: key for key in keys} if len({key.kid for key in keys}) == len(keys) else None


def vectors(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], Signed | Reason | None]]:
    for group in json.loads(path.read_text())["testGroups"]:
        keys = keys_of(group)
        for test in group["tests"]:
            text = test["jws"] if isinstance(test["jws"], str) else json.dumps(test["jws"])
            yield group, test, None if keys is None else read_signed(text, keys)


def symmetric(group: dict[str, Any]) -> bool:
    return any(member["kty"] == "oct" for member in group["key"].get("keys", [group["key"]]))


def judge(path: Path) -> tuple[list[int], list[int], int]:
    """Invalid ones that were accepted; valid ones that were refused for no reason of ours; how many were accepted."""
    wrongly_accepted, wrongly_refused, accepted = [], [], 0
    for group, test, outcome in vectors(path):
        good = isinstance(outcome, Signed)
        accepted += good
        if good and test["result"] != "valid":
            wrongly_accepted.append(test["tcId"])
        if not good and test["result"] == "valid" and not symmetric(group):
            wrongly_refused.append(test["tcId"])
    return wrongly_accepted, wrongly_refused, accepted


def test_every_signature_vector_is_judged_as_its_authors_judge_it(wycheproof):
    wrongly_accepted, wrongly_refused, accepted = judge(wycheproof / "json_web_signature_test.json")
    assert wrongly_accepted == []
    assert wrongly_refused == sorted(DEFECTS)
    assert accepted > 30


def test_no_vector_with_a_shared_secret_is_accepted(wycheproof):
    for name in ("json_web_signature_test.json", "json_web_key_test.json", "json_web_crypto_test.json"):
        outcomes = [outcome for group, _, outcome in vectors(wycheproof / name) if symmetric(group)]
        assert outcomes
        assert not any(isinstance(outcome, Signed) for outcome in outcomes)


def test_no_key_that_must_not_be_loaded_verifies_anything(wycheproof):
    wrongly_accepted, wrongly_refused, accepted = judge(wycheproof / "json_web_key_test.json")
    assert (wrongly_accepted, wrongly_refused) == ([], [])
    assert accepted > 0


def test_the_further_forms_are_judged_as_their_authors_judge_them(wycheproof):
    wrongly_accepted, wrongly_refused, accepted = judge(wycheproof / "json_web_crypto_test.json")
    assert (wrongly_accepted, wrongly_refused) == ([], [])
    assert accepted > 0
