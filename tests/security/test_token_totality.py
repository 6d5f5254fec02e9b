"""The verifier is total: whatever it is given, it gives a caller or a reason, and never raises."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.tokens import Issuer, b64
from tool_server.auth import Verifier
from tool_server.call import Caller
from tool_server.jws import Reason
from tool_server.keys import Keyring

DIRECTORY = tempfile.TemporaryDirectory()
ISSUER = Issuer.at(Path(DIRECTORY.name))
VERIFIER = Verifier(Keyring(ISSUER.issuers_file), ISSUER.resource)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_the_good_token_is_accepted():
    assert isinstance(VERIFIER.verify(ISSUER.token()), Caller)


@given(st.text())
def test_any_text_is_refused(text):
    assert isinstance(VERIFIER.verify(text), Reason)


@given(st.text(alphabet="AZaz09-_.=", max_size=200))
def test_any_text_of_a_tokens_letters_is_refused(text):
    assert isinstance(VERIFIER.verify(text), Reason)


@given(st.integers(0, 10_000), st.characters())
def test_a_token_with_one_character_changed_is_refused(anywhere, character):
    good = ISSUER.token()  # fresh each time: one that has expired would be refused for that
    assert isinstance(VERIFIER.verify(good), Caller)  # and is remembered
    at = anywhere % len(good)
    changed = good[:at] + character + good[at + 1 :]
    assert changed == good or isinstance(VERIFIER.verify(changed), Reason)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_under_a_genuine_signature_are_refused(header, payload):
    assert isinstance(VERIFIER.verify(ISSUER.sign(header, payload)), Reason)
    assert isinstance(VERIFIER.verify(ISSUER.sign(ISSUER.header(), payload)), Reason)


@settings(max_examples=300)
@given(st.sampled_from(sorted(ISSUER.claims())), json_values)
def test_any_value_in_any_claim_gives_an_answer(claim, value):
    claims: dict[str, Any] = ISSUER.claims(**{claim: value})
    assert isinstance(VERIFIER.verify(ISSUER.sign(ISSUER.header(), json.dumps(claims).encode())), Caller | Reason)


@given(st.sampled_from(["alg", "kid", "typ", "crit", "jku", "x"]), json_values)
def test_any_value_in_any_header_member_gives_an_answer(member, value):
    header = json.dumps(ISSUER.header(**{member: value})).encode()
    assert isinstance(VERIFIER.verify(ISSUER.sign(header, ISSUER.claims())), Caller | Reason)
    assert isinstance(VERIFIER.verify(".".join([b64(header), *ISSUER.token().split(".")[1:]])), Caller | Reason)
