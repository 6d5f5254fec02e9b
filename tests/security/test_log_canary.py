"""Nothing that a caller sends, and nothing that a handler says, is written to the log: ids and codes alone."""

from __future__ import annotations

import json

import httpx2

from tests.support.server import ServerProcess, message_of, raw, request, running_process

CANARY = "canary7f3a"


def misuse(server: ServerProcess) -> list[str]:
    """Every kind of request that leads to a line in the log; gives the tokens that were sent."""
    issuer = server.issuer
    tokens = [
        issuer.token(sub=f"{CANARY}-sub"),
        issuer.token(exp=1, sub=f"{CANARY}-sub"),
        issuer.token(header={"kid": f"{CANARY}-kid"}),
        issuer.token(scope="policies:read", client_id=f"{CANARY}-client"),
        issuer.token(extra=f"{CANARY}-claim"),
        f"{CANARY}.{CANARY}.{CANARY}",
        issuer.probe(),
    ]
    for token in tokens:
        server.call(token=token)
        for order in (f"boom-{CANARY}", f"bad-{CANARY}"):
            for era in ("2026-07-28", "2025-11-25"):
                server.call(arguments={"order_id": order, CANARY: CANARY}, token=token, era=era)
    for name in (f"{CANARY}_tool", "get_order"):
        server.call(name, token=tokens[0], headers={"Mcp-Name": CANARY, "Origin": f"http://{CANARY}.example"})
        server.call(name, token=tokens[0], headers={"Mcp-Name": CANARY, "Mcp-Session-Id": CANARY})
    server.rpc(f"{CANARY}/method", {CANARY: CANARY}, token=tokens[0])
    server.rpc("tools/list", {"cursor": [CANARY]}, token=tokens[0])
    server.call(token=tokens[0], headers={"Host": f"{CANARY}.example"})
    server.client.post(f"{server.url}?token={tokens[0]}", content=CANARY)
    body, headers = request("tools/list", token=tokens[0])
    server.post(f"{CANARY}{body}", headers)
    raw(server.port, f"{CANARY} garbage\r\n\r\n".encode())
    return tokens


def told(text: str, tokens: list[str]) -> bool:
    """Whether a recognisable part of any token stands in the text."""
    return any(part[:12] in text for token in tokens for part in token.split(".") if len(part) > 40)


def test_no_token_no_argument_and_no_text_of_an_exception_reaches_the_log(tmp_path):
    answers: list[httpx2.Response] = []
    with running_process(tmp_path) as server:
        server.client.event_hooks = {"response": [answers.append]}
        tokens = misuse(server)
        code, stderr = server.end()
    assert code == 0
    lines = [json.loads(line) for line in stderr.splitlines()]
    assert CANARY not in stderr
    assert not told(stderr, tokens)
    assert len(answers) > 30
    assert not any(told(answer.text + str(answer.headers), tokens) for answer in answers)
    events = {line["event"] for line in lines}
    assert {"serving", "refused", "handler_failed", "draining", "stopped"} <= events
    failure = next(line for line in lines if line["event"] == "handler_failed")
    assert failure["exception"] == "builtins.RuntimeError"
    assert any(frame.startswith("serve_stub.py:") for frame in failure["frames"])


def test_a_caller_never_sees_why_a_handler_failed(tmp_path):
    with running_process(tmp_path) as server:
        for era in ("2026-07-28", "2025-11-25"):
            for order in ("boom", "bad"):
                response = server.call(arguments={"order_id": f"{order}-{CANARY}"}, era=era)
                assert response.status_code == 200
                result = message_of(response)["result"]
                assert result["isError"]
                assert result["_meta"]["dev.kessai/error"]["code"] == "internal_error"
                assert CANARY not in response.text
                assert "Traceback" not in response.text
