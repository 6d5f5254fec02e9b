"""Wycheproof's JWS vectors: the keys loaded as a trusted outside issuer's, the tokens read by our own verifier.

Every vector is counted: accepted and valid, refused and invalid, or valid and refused for a reason that stands here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tool_server.errors import TrustError
from tool_server.jwk import TrustedKey
from tool_server.jws import Signed, read_signed
from tool_server.keys import Keyring

SIGNATURES, KEYS, FURTHER = (f"json_web_{name}_test.json" for name in ("signature", "key", "crypto"))
_OTHER_ALGORITHM = "the key says PS256, the token PS384: one algorithm is pinned to a key"
_NO_ALGORITHM = "the key says ES521, which is no algorithm; the token says ES512"
_SAME_AS_VALID = "byte for byte the valid 357, so that nothing can tell it from that one"
_NO_BASE64 = "a character that is none of base64url's stands in it"
DEFECTS = {
    346: _OTHER_ALGORITHM, 350: _OTHER_ALGORITHM, 347: _NO_ALGORITHM, 351: _NO_ALGORITHM,
    367: _SAME_AS_VALID, 370: _SAME_AS_VALID, 372: _NO_BASE64, 373: _NO_BASE64,
}  # fmt: skip
ACCEPTED, REFUSED, SHARED, DEFECT = "accepted", "refused", "valid, with a shared secret", "valid, and a defect"
COUNTS = {
    SIGNATURES: {ACCEPTED: 32, REFUSED: 355, SHARED: 8, DEFECT: 6},
    KEYS: {ACCEPTED: 1, REFUSED: 21, SHARED: 4},
    FURTHER: {ACCEPTED: 2, REFUSED: 45, SHARED: 2},
}


def loaded(directory: Path, group: Mapping[str, Any]) -> Mapping[str, TrustedKey]:
    """The group's keys as the server takes them from an issuer's file; none where it refuses the file."""
    members = group["key"].get("keys", [group["key"]])
    (directory / "jwks.json").write_text(json.dumps({"keys": members}))
    issuers = directory / "issuers.json"
    issuers.write_text(
        json.dumps([{"issuer": "https://outside.example", "jwks_file": "jwks.json", "tenants": "every"}])
    )
    try:
        return Keyring(issuers).trust().keys
    except TrustError:
        return {}


def read(directory: Path, file: Path) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], bool]]:
    """Each vector with its group, and whether we took it."""
    for group in json.loads(file.read_text())["testGroups"]:
        keys = loaded(directory, group)
        for vector in group["tests"]:
            text = vector["jws"] if isinstance(vector["jws"], str) else json.dumps(vector["jws"])
            yield group, vector, isinstance(read_signed(text, keys), Signed)


def judged(group: Mapping[str, Any], vector: Mapping[str, Any], taken: bool, defects: Mapping[int, str]) -> str:
    """Give the heading that a vector is counted under; one that is judged wrongly has its number for a heading."""
    valid = vector["result"] == "valid"
    if taken == valid:
        return ACCEPTED if taken else REFUSED
    if taken:
        return f"{vector['tcId']} was accepted"
    if vector["tcId"] in defects:
        return DEFECT
    shared = any(member["kty"] == "oct" for member in group["key"].get("keys", [group["key"]]))
    return SHARED if shared else f"{vector['tcId']} was refused"


@pytest.mark.parametrize("name", COUNTS)
def test_every_vector_is_judged_as_its_authors_judge_it(vectors, tmp_path, name):
    defects = DEFECTS if name == SIGNATURES else {}
    counts = Counter(judged(*one, defects) for one in read(tmp_path, vectors / name))
    assert counts == COUNTS[name]


def test_no_vector_with_a_shared_secret_is_accepted(vectors, tmp_path):
    for name in COUNTS:
        taken = [taken for group, _, taken in read(tmp_path, vectors / name) if '"oct"' in json.dumps(group["key"])]
        assert taken
        assert not any(taken)


def test_the_vectors_that_cannot_be_told_apart_cannot_be(vectors):
    groups = json.loads((vectors / SIGNATURES).read_text())["testGroups"]
    one = {vector["tcId"]: (vector["jws"], group["key"]) for group in groups for vector in group["tests"]}
    assert [tc for tc, reason in DEFECTS.items() if reason is _SAME_AS_VALID and one[tc] != one[357]] == []
