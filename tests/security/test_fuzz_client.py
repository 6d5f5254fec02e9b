"""Whatever a tool server answers: a classified outcome, no effect believed that was not told, and the host goes on."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from host.domain.outcome import Outcome, Rejected, Success, Unknown
from host.tool_client.readiness import NotReady, Ready, check
from shared_contracts.errors import ERROR_META, ERRORS
from shared_contracts.tools import TOOLS
from tests.support.calling import READ, WRITE, pair, request, run, told
from tests.support.fuzzing import examples, members, texts
from tests.support.results import RESULTS

MEDIA = ("application/json", "application/json", "text/event-stream", "text/html", "")
STATUSES = (200, 200, 200, 200, 202, 204, 301, 400, 401, 403, 404, 413, 429, 500, 503, 999)
ID = "@id"  # stands for the request's own
KNOWN = sorted(ERRORS)


@st.composite
def _results(draw: st.DrawFn) -> str:
    """A right result with some of it another."""
    plain = {
        '"content"': "[]", '"resultType"': '"complete"', '"isError"': "false",
        '"structuredContent"': json.dumps(RESULTS[draw(st.sampled_from((WRITE, READ)))]),
        '"_meta"': json.dumps({ERROR_META: {"code": draw(st.sampled_from(KNOWN)), "message": "m"}}),
    }  # fmt: skip
    for name in draw(st.lists(st.sampled_from(sorted(plain)), max_size=2)):
        plain[name] = draw(texts | st.sampled_from(("true", '"task"', '"input_required"')))
    return members(plain.items())


@st.composite
def _errors(draw: st.DrawFn) -> str:
    code = draw(st.sampled_from(("-32602", "-32601", "-32603", "-32022", "-31503", "1")) | texts)
    data = json.dumps({"code": draw(st.sampled_from(KNOWN)), "outcome_known": True, "retryable": True})
    return members([('"code"', code), ('"message"', '"m"'), ('"data"', draw(st.just(data) | texts))])


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """One HTTP answer, byte for byte; `@id` is filled in by whoever sends it."""
    status, media = draw(st.sampled_from(STATUSES)), draw(st.sampled_from(MEDIA))
    rpc_id = draw(st.sampled_from((ID,) * 6 + ("null", "7", f'"{ID}"', "1.0")))
    part = draw(st.sampled_from(("result", "result", "error", "both", "text")))
    pairs = [('"jsonrpc"', '"2.0"'), ('"id"', rpc_id)]
    if part in {"result", "both"}:
        pairs.append(('"result"', draw(_results())))
    if part in {"error", "both"}:
        pairs.append(('"error"', draw(_errors())))
    text = draw(texts) if part == "text" else members(pairs)
    if media == "text/event-stream":
        text = "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"
    body = text.encode("utf-8", "surrogatepass")
    length = b"" if ID in text else b"Content-Length: %d\r\n" % len(body)  # else it ends with the connection
    return b"HTTP/1.1 %d Said\r\nContent-Type: %s\r\nConnection: close\r\n%s\r\n%s" % (
        status, media.encode(), length, body,
    )  # fmt: skip


def filled(answer: bytes, good: bytes) -> bytes:
    """The answer under the id that the right one has."""
    return answer.replace(ID.encode(), str(json.loads(good.partition(b"\r\n\r\n")[2])["id"]).encode())


def believed(outcome: Outcome, tool: str, answer: bytes) -> None:
    """Nothing is taken for done or for not done but what the answer says in the contract's own form."""
    head, _, body = answer.partition(b"\r\n\r\n")
    text = body.decode("utf-8", "surrogatepass")
    status = int(head.split(b" ", 2)[1])
    if isinstance(outcome, Success):
        jsonschema.validate(outcome.result, TOOLS[tool].output_schema)
        sent = json.loads(text.removeprefix("data: "))
        assert (status, outcome.result) == (200, sent["result"]["structuredContent"])
        assert "error" not in sent
        assert sent["result"].get("isError") is not True
    elif isinstance(outcome, Rejected) and tool == WRITE:
        refused = '"error"' in text or '"isError":true' in text
        assert status in {401, 403, 413, 429} or refused, outcome
    else:
        assert isinstance(outcome, Rejected | Unknown)


@examples(60)
@given(given=st.lists(answers(), min_size=1, max_size=5))
def test_every_answer_has_its_outcome_and_the_next_call_is_made(given: list[bytes]) -> None:
    async def scene() -> None:
        async with pair(by_order={"noisy": "garbled"}) as (server, client):
            for answer in given:
                sent: list[bytes] = []
                server.garble = lambda good, answer=answer, sent=sent: sent.append(filled(answer, good)) or sent[-1]
                for tool in (WRITE, READ):
                    believed(await client.call(request(tool, "noisy", timeout_seconds=2.0)), tool, sent.pop())
                    assert told(await client.call(request(READ))) == ("Success", "")

    run(scene())


@examples(60)
@given(answer=answers())
def test_a_server_that_negotiates_in_any_way_is_ready_or_it_is_said_why_not(answer: bytes) -> None:
    async def scene() -> Any:
        async with pair(negotiate="garbled", garble=lambda good: filled(answer, good)) as (_, client):
            return await check(client, TOOLS, timeout_seconds=2.0)

    found = run(scene())
    assert isinstance(found, Ready | NotReady)
