"""Whatever is sent to the tool server as it is deployed has its answer, and nothing is done but what was allowed.

Generated anew by `make fuzz`; an ordinary run tries a few hundred, the same ones each time.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from tests.security.forgery.stand import Met, Stand
from tests.security.generated import GENUINE, Made, requests
from tests.support.fuzzing import examples

pytestmark = pytest.mark.xdist_group("forgery")
SECONDS_MAX = 15  # of one request, on a machine that does other things
BY_HTTP_ALONE = {0, 400, 404, 405, 417, 431}  # what may be answered by no JSON-RPC message
# among so many there has to be each of these, or the requests are not what they are meant to be; fewer may miss one
REACHING = 300
WITHIN = {"200", "400", "401", "403", "ok", "invalid_request", "scope_missing"}


def message_of(head: dict[str, str], body: bytes) -> Any:
    """The one JSON-RPC message of an answer; None where HTTP alone answered."""
    kind = {name.lower(): value for name, value in head.items()}.get("content-type", "")
    if kind.startswith("text/event-stream"):
        sent = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]
        assert all(one["jsonrpc"] == "2.0" for one in sent)
        (answer,) = [one for one in sent if "id" in one]
        return answer
    return json.loads(body) if body and kind.startswith("application/json") else None


def is_valid(message: Any, made: Made) -> None:
    """One result or one error, to the id that was sent or to none."""
    assert message["jsonrpc"] == "2.0"
    assert ("result" in message) != ("error" in message)
    sent = made.meaning.get("id") if isinstance(made.meaning, dict) else None
    same = (type(message["id"]), message["id"]) == (type(sent), sent)
    if "error" in message:
        assert type(message["error"]["code"]) is int
        assert type(message["error"]["message"]) is str
        assert same or message["id"] is None
    else:
        assert same
        assert isinstance(message["result"], dict)


def _error_of(message: Any) -> dict[str, Any]:
    data = message.get("error", {}).get("data") if isinstance(message, dict) else None
    return data if isinstance(data, dict) else {}


def is_call(made: Made, status: int, message: Any) -> bool:
    """Whether it came as far as a call does: of a genuine token, and its body was read."""
    code = _error_of(message).get("code")
    read = status in {200, 400} or (status == 403 and code == "scope_missing")
    whole = message is not None and made.framing is None
    return made.who in GENUINE and whole and read and made.tool is not None


def is_recorded(stand: Stand, made: Made, met: Met, message: Any) -> None:
    """A call has its one row, whatever became of it; what is refused before has its line, or one like it has."""
    if made.framing is None:
        assert len(met.rows) == int(is_call(made, met.status, message))
    else:  # what is read is not what was meant
        assert len(met.rows) <= 1
    if met.status in {401, 403, 406, 413, 415, 421, 501} or (
        _error_of(message).get("code") == "invalid_request" and not met.rows
    ):
        code = _error_of(message).get("code", "")
        assert any('"refused"' in line and code in line for line in stand.log.read_text().splitlines())


def is_allowed(made: Made, met: Met, message: Any) -> None:
    """Nothing is done but the one call that the token is for."""
    done = [text for outcome, text in met.rows if outcome == "ok"]
    if done:
        assert (made.tool, met.status, "result" in message) == (made.bound, 200, True)
        assert message["result"]["isError"] is False
        assert made.who in {"right", "write", "external"}
    if met.changed:
        assert (done != [], made.who) == (True, "write"), met.changed


def is_quiet(met: Met, secrets: tuple[str, ...]) -> None:
    """No token, no trace and no fault of our own is in any log."""
    assert not any(met.shows(secret) for secret in secrets)
    assert "Traceback" not in met.said + met.body.decode("latin-1")
    events = [json.loads(line) for line in met.said.splitlines()]
    assert [one for one in events if one["level"] == "error" and one["event"] != "many_alike"] == []


def tried(stand: Stand, made: Made) -> Iterator[str]:
    """Send it and judge what it met; gives what kinds of it there were."""
    wire, began = made.wire(stand.forge()), time.monotonic()
    met = stand.send(wire, lambda asked: int(is_call(made, asked[0], message_of(*asked[1:]))))
    message = message_of(met.head, met.body)
    assert time.monotonic() - began < SECONDS_MAX
    assert met.status < 500 or met.status == 501  # a transfer coding that is not understood
    if made.line == "POST /healthz" or message is None:
        assert met.status in BY_HTTP_ALONE or message is None
    else:
        is_valid(message, made)
    is_recorded(stand, made, met, message)
    is_allowed(made, met, message)
    is_quiet(met, wire.secrets)
    assert stand.process.poll() is None
    assert stand.hits == []
    yield str(met.status)
    yield from (outcome for outcome, _ in met.rows)


def test_every_request_has_a_valid_answer_its_line_and_no_effect_but_the_allowed_one(stand: Stand) -> None:
    seen: Counter[str] = Counter()
    asked = examples(REACHING)

    @asked
    @given(made=requests())
    def each(made: Made) -> None:
        seen.update(tried(stand, made))

    each()
    assert seen.keys() >= WITHIN or asked.max_examples < REACHING
