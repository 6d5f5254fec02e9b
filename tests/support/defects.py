"""Defects to be planted in a copy of the programs: where, what, and the smallest set of cases that shows each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plant:
    """One change: a text that stands once in the file, and what is put in its place."""

    file: str
    before: str
    after: str


@dataclass(frozen=True)
class Defect:
    """What is planted, the cases that are run, and what has to be found at one of them.

    `beside`: what of that case is not as expected either, as it follows. What breaks a condition or proves too little
    without any code of a case: `broken`, which the three-way comparison finds, and `refused`.
    """

    name: str
    plants: tuple[Plant, ...]
    cases: tuple[str, ...]
    at: str
    codes: tuple[str, ...]
    beside: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


_ONCE = "    return await channel.deliver(waiting.message_id, waiting.content)\n"
_AGAIN = Plant(
    "host/engine/drive.py",
    "                in_doubt(step, tool, error)\n",
    "                step.close_attempt(error.outcome, error)\n"
    '                again = __import__("host.engine.again", fromlist=["retry"])\n'
    "                return again.retry(self.parts, step, tool, error, retry_allowed=True)\n",
)
# beneath a condition that is forgotten stand the rows' own bounds, which forgive it; they have to be forgotten too
UNBOUND = Plant("tool_server/store/migrations/0024_bound_rows.sql", "%s ENABLE ROW LEVEL", "%s DISABLE ROW LEVEL")
_SENT = "        outcome = await self._client.call(call)\n"

DEFECTS = (
    Defect(
        "a mail leaves twice, though every table says once",
        (Plant("tool_server/tools/notices.py", _ONCE, _ONCE.replace("return ", "") + _ONCE),),
        ("normal-01", "out-of-period-01"),
        "normal-01",
        ("duplicate_notice",),
    ),
    Defect(
        "a notice is written down for another order",
        (
            Plant(
                "tool_server/store/migrations/0014_tell_once.sql",
                "call ->> 'customer', call ->> 'resource', m.return_id, m.kind,",
                "call ->> 'customer', 'A-1103', m.return_id, m.kind,",
            ),
            UNBOUND,
        ),
        ("normal-01", "out-of-period-01"),
        "normal-01",
        ("wrong_notice",),
        beside=("state_differs", "reason_differs", "path_differs"),
    ),
    Defect(
        "nobody is asked for an approval",
        (
            Plant(
                "host/workflows/returns.py",
                '    if condition == "":\n        return False\n',
                '    if condition != "?":\n        return False\n',
            ),
            Plant(
                "tool_server/tools/returns.py",
                "        case RulingOutcome.ELIGIBLE:\n            return None\n",
                "        case RulingOutcome.ELIGIBLE | RulingOutcome.APPROVAL:\n            return None\n",
            ),
        ),
        ("high-value-01", "normal-01"),
        "high-value-01",
        ("approval_bypassed",),
        beside=("state_differs", "reason_differs", "path_differs", "notice_missing", "compensation_unexpected"),
        refused=("stop_unasked",),
    ),
    Defect(
        "what nobody knows the outcome of is sent again",
        (_AGAIN,),
        ("midway-fault-05", "normal-01"),
        "midway-fault-05",
        ("retries_differ",),
        beside=("too_many_calls",),
    ),
    Defect(
        "one request becomes two workflows",
        (
            Plant(
                "host/engine/accept.py",
                '"request_id": body_sha256 if request_id is None else request_id,',
                '"request_id": str(new_id()),',
            ),
        ),
        ("duplicate-02", "normal-01"),
        "duplicate-02",
        ("not_one_workflow", "duplicate_return", "duplicate_notice"),
        beside=("path_differs", "too_many_calls", "over_limit", "told_differs"),
    ),
    Defect(
        "the customer is told less than happened",
        (
            Plant(
                "host/workflows/returns_messages.py",
                "返品番号 {return_id} を発行し、ご案内のメールを送信しました。",
                "受け付けました。",
            ),
        ),
        ("midway-fault-05", "missing-order-01"),
        "midway-fault-05",
        ("told_differs",),
    ),
    Defect(
        "the customer is told the number of another return",
        (
            Plant(
                "host/workflows/returns_messages.py",
                "    return _STATES.get(state, _AT_WORK)[language].format_map(effects)\n",
                '    return _STATES.get(state, _AT_WORK)[language].format_map({**effects, "return_id": "R-2222"})\n',
            ),
        ),
        ("normal-01", "missing-order-01"),
        "normal-01",
        ("told_differs",),
    ),
    Defect(
        "a notice leaves for somebody else's mailbox",
        (Plant("tool_server/store/notices.sql", "t.lines, p.email,", "t.lines, 'other@mail.example',"),),
        ("normal-01", "missing-order-01"),
        "normal-01",
        ("wrong_notice",),
    ),
    Defect(
        "a notice is said to be sent, and none leaves",
        (Plant("tool_server/tools/notices.py", _ONCE, '    return __import__("tool_server.mail").mail.Sent()\n'),),
        ("normal-01", "missing-order-01"),
        "normal-01",
        ("notice_missing",),
    ),
    Defect(
        "a notice names no order that anybody has asked about",
        (Plant("tool_server/letter.py", '"order_id": letter.order_id,', '"order_id": "A-0000",'),),
        ("normal-01", "missing-order-01"),
        "normal-01",
        ("wrong_notice",),
    ),
    Defect(
        "a notice names another return than the one that was made",
        (Plant("tool_server/letter.py", '"return_id": letter.return_id,', '"return_id": "R-2222",'),),
        ("normal-01", "missing-order-01"),
        "normal-01",
        ("wrong_notice",),
    ),
    Defect(
        "less is sent back than the customer asks for",
        (
            Plant(
                "host/engine/accept.py",
                '"case_body": body,',
                '"case_body": {**body, "lines": [{**body["lines"][0], "quantity": 1}]},',
            ),
        ),
        ("normal-04", "normal-01"),
        "normal-04",
        ("wrong_return",),
    ),
    Defect(
        "no sheet is made for the person who takes over",
        (
            Plant(
                "host/handover/sheet.py",
                "    if not (is_a_persons(record) or",
                "    if True or not (is_a_persons(record) or",
            ),
        ),
        ("midway-fault-02", "normal-01"),
        "midway-fault-02",
        ("handover_missing",),
    ),
    Defect(
        "a call is made that no ledger knows",
        (
            Plant(
                "host/tool_client/gateway.py",
                _SENT,
                '        again = __import__("dataclasses").replace\n'
                '        if request.tool.name == "get_order":\n'
                "            token = self._minter.call(again(request, jti=request.jti[::-1]))\n"
                "            await self._client.call(again(call, token=token))\n" + _SENT,
            ),
        ),
        ("normal-01",),
        "normal-01",
        ("too_many_calls",),
        broken=("no_untracked_calls",),
    ),
    Defect(
        "the window is a day longer than the rules say",
        (Plant("shared_contracts/returns.py", "timedelta(days=days)", "timedelta(days=days + 1)"),),
        ("out-of-period-03", "normal-01"),
        "out-of-period-03",
        ("effect_not_allowed",),
        beside=("state_differs", "reason_differs", "path_differs", "too_many_calls"),
    ),
    Defect(
        "another customer's order is read",
        (
            Plant(
                "tool_server/store/orders.sql", " AND o.customer_id = %(customer)s AND o.order_id", " AND o.order_id"
            ),
            UNBOUND,
        ),
        ("foreign-order-01", "normal-01"),
        "foreign-order-01",
        ("foreign_order_processed",),
        beside=("state_differs", "reason_differs", "path_differs", "too_many_calls"),
    ),
    Defect(
        "what a tool server was asked before it died is sent again unseen",
        (_AGAIN,),
        ("server-killed-02", "normal-01"),
        "server-killed-02",
        ("retries_differ",),
        beside=("too_many_calls",),
    ),
    Defect(
        "a request that was given up is still done when it comes, and the next one is another intention",
        (
            Plant(
                "tool_server/store/migrations/0008_claim_keys.sql",
                "WHEN (call ->> 'attempt')::integer <= calls.closed_through(call) THEN 'attempt_superseded'",
                "WHEN false THEN 'attempt_superseded'",
            ),
            Plant(
                "host/engine/send.py",
                "key_of(task.workflow_id, call.tool) if",
                'key_of(task.workflow_id, f"{call.tool}{effect.attempt if effect else 1}") if',
            ),
        ),
        ("slow-answer-02", "normal-01"),
        "slow-answer-02",
        ("duplicate_return",),
        beside=("told_differs",),
        broken=("no_untracked_calls",),
    ),
    Defect(
        "a tool server of older contracts is worked with",
        (
            Plant("host/tool_client/readiness.py", "if mark != tool.mark:", "if mark is None:"),
            Plant(
                "tool_server/mcp_server.py",
                "return tool is not None and meant is not None and meant != tool.mark",
                "return tool is None and meant is None",
            ),
        ),
        ("older-contract-01", "normal-01"),
        "older-contract-01",
        ("fault_not_proved",),
        refused=("fault_not_proved",),
    ),
)
