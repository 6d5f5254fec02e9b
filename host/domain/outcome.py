"""From what was seen on the wire to one of three outcomes; the only place that decides this.

`Rejected` is proof that no effect happened: never sent, refused, or a read (which has none). `Unknown` is a
write that may have left and has no trustworthy answer: it is looked up, never repeated, never called failed.
What an error means is read from our own table by its code; nothing that the answer says about itself counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shared_contracts.digest import NotCanonicalError, canonical_json
from shared_contracts.errors import ERRORS, Category

RETRY_AFTER_SECONDS_MAX = 900.0  # a case that is older than 15 minutes is a person's, whatever a server asks
MESSAGE_LENGTH_MAX = 300
DETAILS_BYTES_MAX = 2048

# A server that says of itself that it was never reached would turn a doubtful write into a repeatable one.
_NEVER_FROM_THE_WIRE = frozenset({"unreachable", "no_answer"})
_WIRE_CODES = frozenset(ERRORS) - _NEVER_FROM_THE_WIRE


@dataclass(frozen=True, slots=True)
class CallError:
    """Why a call has no result; whether it had an effect all the same is told by the outcome that carries it.

    `cut_off` tells that the tool server's process died under the request, as our own seen facts show.
    """

    code: str
    category: Category
    message: str
    retry_after_seconds: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    cut_off: bool = False

    @property
    def outcome(self) -> str:
        """Name what an attempt that ended so is closed with."""
        return "cut_off" if self.cut_off else self.code


@dataclass(frozen=True, slots=True)
class Success:
    """A result that fits the tool's contract; whether it is a success for the business is asked later."""

    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rejected:
    """Nothing happened."""

    error: CallError


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have happened."""

    error: CallError


Outcome = Success | Rejected | Unknown


@dataclass(frozen=True, slots=True)
class Report:
    """What an answer claims of an error, as it stood there: untrusted, and only `code` is ever acted on."""

    code: str
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotSent:
    """No byte of the request left: refused, no free connection, isolated …"""

    why: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The request may have left, and the time was up before the answer was whole."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The request may have left, and the connection or its session ended before the answer was whole.

    `server_died`: right afterwards nobody listened at the server's address any more.
    """

    why: str
    server_died: bool = False


@dataclass(frozen=True, slots=True)
class HttpStatus:
    """An answer whose status is its meaning; `report` is there if the body was a JSON-RPC error with one."""

    status: int
    report: Report | None = None
    retry_after_seconds: float | None = None
    challenge: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotMcp:
    """Something answered, but not this request in this protocol."""

    why: str


@dataclass(frozen=True, slots=True)
class RpcError:
    """A JSON-RPC error under the request's own id."""

    number: int
    report: Report | None = None


@dataclass(frozen=True, slots=True)
class ToolError:
    """A tool result marked as an error; its text is not looked at."""

    report: Report | None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool result not marked as an error; `fits` tells whether it meets the tool's output contract."""

    value: dict[str, Any]
    fits: bool


WireResult = NotSent | TimedOut | Lost | HttpStatus | NotMcp | RpcError | ToolError | ToolResult

# Statuses that mean what they say. Any 5xx may have executed; any other status is no answer of ours.
_STATUS = {401: "token_invalid", 403: "token_invalid", 413: "invalid_arguments", 429: "rate_limited"}
# What a body may say more exactly. A 503 of our own edge comes before anything runs; a gateway's has no report.
_REPORTS = {401: Category.AUTHORIZATION, 403: Category.AUTHORIZATION, 503: Category.TRANSIENT}
_RPC = {
    -32700: "version_mismatch",  # it cannot read what we wrote …
    -32600: "version_mismatch",
    -32601: "version_mismatch",  # … or does not know the method
    -32602: "unknown_tool",  # arguments that do not fit come as a tool result
    -32603: "internal_error",
    -32020: "version_mismatch",
    -32021: "version_mismatch",
    -32022: "version_mismatch",
}
# A read that got no answer has changed nothing, so it may be sent again.
_OF_A_READ = {row.code: "no_answer" for row in ERRORS.values() if row.category is Category.UNKNOWN_EFFECT}


def classify(seen: WireResult, *, writes: bool) -> Outcome:
    """Give the outcome of one call; `writes` is the contract's word on whether the tool has effects."""
    if isinstance(seen, ToolResult) and seen.fits:
        return Success(seen.value)
    code = code_of(seen)
    row = ERRORS[code if writes else _OF_A_READ.get(code, code)]
    details = _details(seen) if row.code == code else {"code": code, **_details(seen)}
    died = isinstance(seen, Lost) and seen.server_died
    error = CallError(
        row.code, row.category, _message(seen, code), _retry_after(seen, row.category), details, cut_off=died
    )
    return Unknown(error) if writes and not row.outcome_known else Rejected(error)


def code_of(seen: WireResult) -> str:
    """Name the row of our table that fits what was seen, for a write."""
    match seen:
        case NotSent():
            code = "unreachable"
        case TimedOut():
            code = "timeout"
        case Lost():
            code = "connection_lost"
        case NotMcp():
            code = "bad_answer"
        case HttpStatus():
            code = _status_code(seen)
        case RpcError(number, report):
            code = _reported(report, _RPC.get(number, "bad_answer"))
        case ToolError(report):
            code = _reported(report, "bad_answer")
        case ToolResult():
            code = "bad_output"
    return code


def broke_protocol(seen: WireResult) -> bool:
    """Tell whether the server itself is in question, and not only this call."""
    return isinstance(seen, NotMcp | HttpStatus | RpcError) and code_of(seen) in {"bad_answer", "version_mismatch"}


def _reported(report: Report | None, otherwise: str) -> str:
    return report.code if report is not None and report.code in _WIRE_CODES else otherwise


def _status_code(seen: HttpStatus) -> str:
    """A body may name which refusal its status stands for; it never turns one kind into another."""
    code = _STATUS.get(seen.status, "internal_error" if seen.status >= 500 else "bad_answer")
    if seen.status == 403 and seen.challenge.get("error") == "insufficient_scope":
        code = "scope_missing"
    reported = _reported(seen.report, code)
    return reported if _REPORTS.get(seen.status) is ERRORS[reported].category else code


def _retry_after(seen: WireResult, category: Category) -> float | None:
    wanted = seen.retry_after_seconds if isinstance(seen, HttpStatus) else None
    if wanted is None or category is not Category.TRANSIENT:
        return None
    return min(max(wanted, 0.0), RETRY_AFTER_SECONDS_MAX)


def _message(seen: WireResult, code: str) -> str:
    """The server's own words only beside a code that we know; they are shown to people and decide nothing."""
    meaning = ERRORS[code].meaning
    if not isinstance(seen, RpcError | ToolError) or seen.report is None or seen.report.code != code:
        return meaning
    words = "".join(letter if letter.isprintable() else " " for letter in seen.report.message)
    return words[:MESSAGE_LENGTH_MAX].strip() or meaning


def _details(seen: WireResult) -> dict[str, Any]:
    match seen:
        case NotSent(why) | Lost(why) | NotMcp(why):
            return {"why": why}
        case HttpStatus(status):
            return {"status": status} | ({"challenge": seen.challenge} if seen.challenge else {})
        case RpcError(number, report):
            return {"rpc": number} | _storable(report)
        case ToolError(report):
            return _storable(report)
        case TimedOut() | ToolResult():
            return {}


def _storable(report: Report | None) -> dict[str, Any]:
    """Whatever cannot be stored or is out of proportion is left out whole: half a detail misleads."""
    if report is None or report.code not in _WIRE_CODES:
        return {}
    try:
        size = len(canonical_json(report.details))
    except NotCanonicalError:
        return {}
    return report.details if size <= DETAILS_BYTES_MAX else {}
