"""Every attempt to get in, on the server as it is deployed: refused, with nothing done and nothing of it told.

`tests.security.forgery` makes them; one that is no attempt stands beside each kind, so that no refusal is by chance.
"""

from __future__ import annotations

import time
from collections import Counter

import httpx2
import pytest

from tests.security.forgery.attempt import Attempt, as_it_stands
from tests.security.forgery.every import REFUSED, RIGHT
from tests.security.forgery.forge import Forge, Wire
from tests.security.forgery.page import PAGE, page
from tests.security.forgery.stand import Met, Stand
from tests.support.server import request

pytestmark = pytest.mark.xdist_group("forgery")  # one server, not one on each core
COUNTED_MAX, KIND_MIN, REFUSED_MIN = 40, 3, 400
PEOPLE = ("clerk-1", "tanaka", "suzuki", "C-1")  # who asks, who says yes, whose it is: the call log has them, no line


def made(stand: Stand, attempt: Attempt) -> tuple[Forge, Wire, Met]:
    """Make the attempt, anew where it means a second that has passed meanwhile."""
    for _ in range(20):
        forge = stand.forge()
        with attempt.within(stand, forge):
            wire = attempt.wire(forge)
            rows = int(attempt.answer is not None and attempt.answer.logged is not None)
            met = stand.send(wire, lambda _, rows=rows: rows)
        if not attempt.exact or int(time.time()) == forge.moment:
            return forge, wire, met
    raise AssertionError("it is never made within one second")


@pytest.mark.parametrize("attempt", REFUSED, ids=str)
def test_an_attempt_is_refused_with_nothing_done_and_nothing_of_it_told(stand, attempt):
    forge, wire, met = made(stand, attempt)
    answer = attempt.answer
    assert met.status == answer.status, met
    if answer.code is not None:
        assert (met.data.get("code"), met.data.get("details", {}).get("reason")) == (answer.code, answer.reason), met
    challenge = met.head.get("www-authenticate")
    assert (challenge is not None) == (answer.status == 401 or answer.code == "scope_missing")
    assert answer.status != 401 or ("error=" in challenge) == (answer.code != "token_missing")
    assert stand.bodies.setdefault(answer, (challenge, met.body)) == (challenge, met.body)
    assert met.changed == frozenset()
    assert [outcome for outcome, _ in met.rows] == ([] if answer.logged is None else [answer.logged])
    assert not any(met.shows(secret) for secret in wire.secrets)
    assert answer.status != 401 or forge.mark not in met.said
    assert [one for one in ("Traceback", *PEOPLE) if one in met.said] == []
    assert stand.hits == []


@pytest.mark.parametrize("attempt", RIGHT, ids=str)
def test_the_right_one_of_a_kind_passes(stand, attempt):
    _, wire, met = made(stand, attempt)
    assert (met.status, met.data) == (200, {})
    assert not any(met.shows(secret) for secret in wire.secrets)
    assert [one for one in PEOPLE if one in met.said] == []


def test_who_asked_before_on_a_connection_is_nobody_now(stand):
    forge = stand.forge()
    body, headers = request("tools/call", {"name": "get_order", "arguments": {"order_id": "A-1"}})
    tokens = [forge.token(), None, forge.token(scope="returns:read"), forge.token(exp=1, iat=0, nbf=0), forge.token()]
    with httpx2.Client(trust_env=False, verify=False, limits=httpx2.Limits(max_connections=1)) as client:
        sent = [{**headers, **({} if one is None else {"Authorization": f"Bearer {one}"})} for one in tokens]
        answers = [client.post(f"http://127.0.0.1:{stand.port}/mcp", content=body, headers=one) for one in sent]
    stand.look()
    assert [answer.status_code for answer in answers] == [200, 401, 403, 401, 200]


def test_there_are_enough_attempts_of_each_kind_no_two_alike_and_a_right_one_beside_them(stand):
    kinds = Counter(one.kind for one in REFUSED)
    assert kinds.keys() == {one.kind for one in RIGHT}
    assert min(kinds.values()) >= KIND_MIN
    assert sum(min(count, COUNTED_MAX) for count in kinds.values()) >= REFUSED_MIN
    forge = Forge(stand.keys, stand.port, stand.listener, mark="one")
    sent: dict[object, list[str]] = {}
    for one in REFUSED:
        sent.setdefault((one.wire(forge).written, one.within is not as_it_stands and one.name), []).append(str(one))
    assert [names for names in sent.values() if len(names) > 1] == []


def test_the_page_tells_what_is_tried():
    assert PAGE.read_text(encoding="utf-8") == page()
