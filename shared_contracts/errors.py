"""Every error code that crosses the wire, with what it means for the caller.

`outcome_known` is what separates a refusal (nothing happened) from a lost answer (reconcile first).
The order of the table is the order of this page in RUNBOOK.md, which is generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

ERROR_META = "dev.kessai/error"


class Category(StrEnum):
    """Six classes; the class alone decides whether a call may be tried again."""

    CONTRACT = "contract"
    AUTHORIZATION = "authorization"
    BUSINESS = "business"
    TRANSIENT = "transient"
    PROTOCOL = "protocol"
    UNKNOWN_EFFECT = "unknown_effect"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One row: `retryable` means the same call may be sent again; `outcome_known` that nothing is in doubt."""

    code: str
    category: Category
    retryable: bool
    outcome_known: bool
    meaning: str
    mend: str


_C = Category
_ROWS = (
    ErrorCode("unknown_tool", _C.CONTRACT, False, True, "No tool has this name.", "Use a name of tools/list, exactly."),
    ErrorCode("invalid_arguments", _C.CONTRACT, False, True, "The arguments do not fit the tool's input schema.", "Correct what the message names; undeclared members are refused."),
    ErrorCode("token_missing", _C.AUTHORIZATION, False, True, "The request carries no bearer token.", "Send a task token in the Authorization header."),
    ErrorCode("token_invalid", _C.AUTHORIZATION, False, True, "The token is not one that this server accepts.", "Get a fresh token from the trusted issuer for this exact resource."),
    ErrorCode("scope_missing", _C.AUTHORIZATION, False, True, "The token lacks the tool's scope.", "Ask the issuer for the scope that the challenge names."),
    ErrorCode("token_for_other_tool", _C.AUTHORIZATION, False, True, "The token was minted for another tool.", "Mint a token for this call."),
    ErrorCode("token_for_other_resource", _C.AUTHORIZATION, False, True, "The token was minted for another resource.", "Mint a token for this call."),
    ErrorCode("token_for_other_arguments", _C.AUTHORIZATION, False, True, "The token was minted for other arguments.", "Mint a token for this call."),
    ErrorCode("key_missing", _C.AUTHORIZATION, False, True, "The tool needs an idempotency key and the token carries none.", "Mint a token with the key of the business intention."),
    ErrorCode("token_revoked", _C.AUTHORIZATION, False, True, "The token or its signing key was revoked.", "Ask the operator why, then mint a new one."),
    ErrorCode("tool_disabled", _C.AUTHORIZATION, False, True, "An operator has removed this tool.", "Wait until it is enabled; see `kessai-tools enable`."),
    ErrorCode("approval_required", _C.AUTHORIZATION, False, True, "This return needs a person's approval.", "Send the case to an approver."),
    ErrorCode("approval_refused", _C.AUTHORIZATION, False, True, "The approval is not one of this very action by somebody who may give it.", "Read `details.reason`; the case asks again or a person looks."),
    ErrorCode("not_found", _C.BUSINESS, False, True, "There is no such object for this customer.", "Check the number; a foreign object answers the same."),
    ErrorCode("not_eligible", _C.BUSINESS, False, True, "The return rules do not allow this return now.", "Read `details.reason`; a person decides."),
    ErrorCode("quantity_gone", _C.BUSINESS, False, True, "Less is left to return than was asked for.", "Another return holds the quantity; a person decides."),
    ErrorCode("key_reused", _C.BUSINESS, False, True, "The idempotency key belongs to another request.", "One key, one intention: use a new key for another request."),
    ErrorCode("attempt_superseded", _C.BUSINESS, False, True, "A look-up has closed this attempt; nothing was executed.", "Nothing to do: a later attempt holds the key."),
    ErrorCode("label_used", _C.BUSINESS, False, True, "The return's label was used; it cannot be cancelled.", "A person settles the return."),
    ErrorCode("notice_rejected", _C.BUSINESS, False, True, "The mail server refused the notice for good.", "Correct the recipient; a person decides."),
    ErrorCode("rate_limited", _C.TRANSIENT, True, True, "Too many calls; nothing was executed.", "Wait as long as Retry-After says."),
    ErrorCode("unavailable", _C.TRANSIENT, True, True, "The server cannot work now; nothing was executed.", "Try again later."),
    ErrorCode("unreachable", _C.TRANSIENT, True, True, "The request never left this host.", "Check that the tool server is up."),
    ErrorCode("no_answer", _C.TRANSIENT, True, True, "A read got no answer; it changes nothing, so nothing is in doubt.", "Try again; check that the tool server is up."),
    ErrorCode("invalid_request", _C.PROTOCOL, False, True, "The request is no MCP request that this server takes; nothing was executed.", "Correct what the message names."),
    ErrorCode("bad_output", _C.PROTOCOL, False, False, "The answer does not fit the tool's output schema.", "The tool's owner mends it; the effect is looked up."),
    ErrorCode("bad_answer", _C.PROTOCOL, False, False, "The answer is no MCP answer to this request.", "The server is isolated; check what answers at its address."),
    ErrorCode("version_mismatch", _C.PROTOCOL, False, True, "The server offers another version of this tool or protocol.", "Deploy host and tool server of one release."),
    ErrorCode("token_used", _C.UNKNOWN_EFFECT, False, False, "This single-use token was used before.", "Look the effect up by its key."),
    ErrorCode("timeout", _C.UNKNOWN_EFFECT, False, False, "No answer came in time; it may have happened.", "Look the effect up by its key."),
    ErrorCode("connection_lost", _C.UNKNOWN_EFFECT, False, False, "The connection broke after the request had left.", "Look the effect up by its key."),
    ErrorCode("internal_error", _C.UNKNOWN_EFFECT, False, False, "The server failed while it worked on the call.", "Look the effect up by its key; read the server's log."),
    ErrorCode("in_progress", _C.UNKNOWN_EFFECT, False, False, "The same intention is being worked on right now.", "Look the effect up by its key."),
    ErrorCode("delivery_unknown", _C.UNKNOWN_EFFECT, False, False, "The mail server's answer was lost; the notice may have left.", "A person finds out; it is never sent again by itself."),
)  # fmt: skip

ERRORS: dict[str, ErrorCode] = {row.code: row for row in _ROWS}


def error_body(code: str, message: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
    """Build the one wire shape of an error; `code` must be a row of this page."""
    row = ERRORS[code]
    return {
        "code": row.code,
        "category": row.category.value,
        "retryable": row.retryable,
        "outcome_known": row.outcome_known,
        "message": message,
        "details": details if details is not None else {},
    }
