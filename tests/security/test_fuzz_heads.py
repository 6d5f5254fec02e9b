"""Whatever is brought to a tool server as a host's head is refused, but for a head as a trusted host has signed it."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_contracts.base import dump
from shared_contracts.digest import canonical_json
from shared_contracts.seal import HEAD_CHARACTERS_MAX, PATH, TYPE, Signer
from tests.integration.test_record_heads import HEAD, kept, sealing, signer
from tests.support.fuzzing import examples, members, texts
from tests.support.server import Server, StubDispatcher, running
from tests.support.tool_shop import Shop, open_shop

FEW = 150
MEMBERS = {**dump(HEAD), "alg": "EdDSA", "typ": TYPE, "crit": ["b64"], "jwk": {}, "jku": "http://host.example/keys"}


@dataclass(frozen=True)
class Desk:
    """A server that takes heads, and the keys of both sides."""

    server: Server
    shop: Shop
    host: Signer
    tools: Signer


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    place = tmp_path_factory.mktemp("heads")
    shop = open_shop(place)
    with running(StubDispatcher(), place, **sealing(place, shop)) as server:
        yield Desk(server, shop, signer(place, "host"), signer(place, "tools"))


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@st.composite
def _document(draw: st.DrawFn, right: bytes) -> bytes:
    """The right JSON, or with a member too many, another, gone or twice, or spelt otherwise, or any text."""
    pairs = [(json.dumps(name), json.dumps(value)) for name, value in json.loads(right).items()]
    at = draw(st.integers(0, len(pairs) - 1))
    kind = draw(st.sampled_from(("right", "right", "more", "other", "gone", "turned", "spaced", "text")))
    match kind:
        case "right":
            return right
        case "more":
            name = draw(st.sampled_from(sorted(MEMBERS)))
            pairs.insert(at, (json.dumps(name), json.dumps(MEMBERS[name])))
        case "other":
            pairs[at] = pairs[at][0], draw(texts)
        case "gone":
            del pairs[at]
        case "turned":
            pairs.reverse()
        case "spaced":
            return right.replace(b":", b": ", 1)
        case _:
            return draw(texts).encode("utf-8", "surrogatepass")
    return members(pairs).encode("utf-8", "surrogatepass")


@st.composite
def _brought(draw: st.DrawFn, host: Signer, tools: Signer) -> bytes:
    """Signed by one of the two over what it may be, then perhaps bent."""
    by = draw(st.sampled_from((host, host, host, tools)))
    right = host.sign(HEAD).split(".")
    header, payload = (base64.urlsafe_b64decode(part + "==") for part in right[:2])
    front = f"{encoded(draw(_document(header)))}.{encoded(draw(_document(payload)))}"
    text = f"{front}.{encoded(by.key.sign(front.encode()))}"
    match draw(st.sampled_from(("as it is", "as it is", "as it is", "cut", "padded", "put in", "long", "bytes"))):
        case "as it is":
            return text.encode()
        case "cut":
            return text[: draw(st.integers(0, len(text) - 1))].encode()
        case "padded":
            return draw(
                st.sampled_from((f"{text}=", f" {text}", f"{text}\n", f"{text}.", text.replace(".", "..")))
            ).encode()
        case "put in":
            at = draw(st.integers(0, len(text)))
            return text[:at].encode() + draw(st.binary(min_size=1, max_size=4)) + text[at:].encode()
        case "long":
            return text.encode() + b"A" * HEAD_CHARACTERS_MAX
        case _:
            return draw(st.binary(max_size=200))


# the server's thread may draw a random number of its own while an example is made, which no strategy did
@pytest.mark.filterwarnings("ignore:Do not use the .random. module:hypothesis.errors.HypothesisDeprecationWarning")
def test_nothing_but_a_signed_head_is_taken_or_answered_with_the_logs_own(desk: Desk) -> None:
    right = desk.host.sign(HEAD).encode()
    assert canonical_json(dump(HEAD)) == base64.urlsafe_b64decode(right.split(b".")[1] + b"==")
    seen: Counter[int] = Counter()
    asked = examples(FEW)

    @asked
    @given(brought=_brought(desk.host, desk.tools))
    def each(brought: bytes) -> None:
        answer = desk.server.client.post(f"{desk.server.origin}{PATH}", content=brought)
        seen[answer.status_code] += 1
        if brought == right:
            assert (answer.status_code, list(answer.json())) == (200, ["head"])
        else:
            assert answer.status_code == (413 if len(brought) > HEAD_CHARACTERS_MAX else 403), brought
            assert answer.json()["error"]["data"]["code"] == "invalid_request"

    each()
    assert set(kept(desk.shop)) <= {right.decode()}
    assert seen.keys() >= {200, 403, 413} or asked.max_examples < FEW
    assert desk.server.client.post(f"{desk.server.origin}{PATH}", content=right).status_code == 200
