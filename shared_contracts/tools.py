"""One row per tool: everything that anybody needs to know of a tool is derived from its row.

`tools/list`, the model's view, scopes, timeouts, attempts, completion, recovery, the registration form and
the contract tests all read this table. To add a tool: two models, one row, one handler.
"""

from __future__ import annotations

from shared_contracts import notices, orders, policies, returns
from shared_contracts.contract import (
    FROM_TOKEN,
    Ambiguous,
    Equals,
    ReadBack,
    Risk,
    Scope,
    Tool,
    Verification,
)

_CUSTOMER_ORDER = "an order of the token's own tenant and customer"
_DAY_HOURS = 24
_YEAR_DAYS = 365

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            name="get_order", version="1",
            summary="Read one order: lines, deliveries, payments and what was already returned.",
            arguments=orders.GetOrder, result=orders.Order,
            scope=Scope.ORDERS_READ, risk=Risk.READ, targets=_CUSTOMER_ORDER,
            preconditions=("order_is_the_customers",),
            timeout_seconds=5, attempts_max=2,
            evidence=("order_id", "version", "evidence_ref"),
            owner="order-platform", business_owner="order-desk",
        ),
        Tool(
            name="check_return_policy", version="1",
            summary="Read the facts that the return rules need for these lines, and the rules' version.",
            arguments=policies.CheckReturnPolicy, result=policies.PolicyFacts,
            scope=Scope.POLICIES_READ, risk=Risk.READ, targets=_CUSTOMER_ORDER,
            after=("get_order",), preconditions=("order_is_the_customers",),
            timeout_seconds=5, attempts_max=2,
            evidence=("rule_version", "order_version", "evidence_ref"),
            owner="policy-platform", business_owner="returns-desk",
        ),
        Tool(
            name="create_return", version="1",
            summary="Issue one return number for lines of one order.",
            arguments=returns.CreateReturn, result=returns.Return,
            scope=Scope.RETURNS_WRITE, risk=Risk.REVERSIBLE_WRITE, targets=_CUSTOMER_ORDER,
            after=("get_order", "check_return_policy"),
            preconditions=("order_is_the_customers", "rules_allow_the_return", "units_are_left"),
            timeout_seconds=10, attempts_max=1, side_effect="return_created",
            idempotency_key=FROM_TOKEN, idempotency_retention_days=_YEAR_DAYS,
            reconcile_with="find_return", ambiguous_failure=Ambiguous.RECONCILE_THEN_RESEND_ONCE,
            success_when=Equals("status", "created"), evidence=("return_id", "status", "evidence_ref"),
            external_id="return_id", verification=Verification.READ_BACK,
            verify=ReadBack("get_return", matches=("order_id", "lines", "reason", "refund")),
            compensate_with="cancel_return", compensate_within_hours=_DAY_HOURS,
            approval_required_when="amount_reaches_threshold",
            forbidden_when=("not_eligible", "quantity_gone", "approval_required", "approval_refused"),
            owner="returns-platform", business_owner="returns-desk",
        ),
        Tool(
            name="get_return", version="1",
            summary="Read one return of one order.",
            arguments=returns.GetReturn, result=returns.Return,
            scope=Scope.RETURNS_READ, risk=Risk.READ, targets=_CUSTOMER_ORDER,
            after=("create_return",), preconditions=("return_is_the_customers",),
            timeout_seconds=5, attempts_max=2, evidence=("return_id", "status", "evidence_ref"),
            owner="returns-platform", business_owner="returns-desk",
        ),
        Tool(
            name="find_return", version="1",
            summary="Look up the return that an idempotency key made, and close the key's earlier attempts.",
            arguments=returns.FindReturn, result=returns.ReturnFound,
            scope=Scope.RETURNS_READ, risk=Risk.READ, targets=_CUSTOMER_ORDER,
            after=("create_return",), preconditions=("order_is_the_customers",),
            timeout_seconds=5, attempts_max=2, idempotency_key=FROM_TOKEN, looks_up=True,
            evidence=("found", "closed_through", "evidence_ref"),
            owner="returns-platform", business_owner="returns-desk",
        ),
        Tool(
            name="cancel_return", version="1",
            summary="Cancel one return whose label was not used, and free its units.",
            arguments=returns.CancelReturn, result=returns.ReturnCancelled,
            scope=Scope.RETURNS_WRITE, risk=Risk.REVERSIBLE_WRITE, targets=_CUSTOMER_ORDER,
            after=("create_return", "get_return_links"), preconditions=("return_is_the_customers", "label_is_unused"),
            timeout_seconds=10, attempts_max=1, side_effect="return_cancelled",
            idempotency_key=FROM_TOKEN, idempotency_retention_days=_YEAR_DAYS,
            reconcile_with="find_return", ambiguous_failure=Ambiguous.RECONCILE_THEN_RESEND_ONCE,
            success_when=Equals("status", "cancelled"), evidence=("return_id", "status", "evidence_ref"),
            external_id="return_id", verification=Verification.READ_BACK,
            verify=ReadBack("get_return", matches=("order_id", "return_id", "status")),
            compensate_with="create_return", compensate_within_hours=_DAY_HOURS,
            forbidden_when=("label_used",),
            owner="returns-platform", business_owner="returns-desk",
        ),
        Tool(
            name="get_return_links", version="1",
            summary="Read what hangs on one return: its label, inventory and accounting entries.",
            arguments=returns.GetReturnLinks, result=returns.ReturnLinks,
            scope=Scope.RETURNS_READ, risk=Risk.READ, targets=_CUSTOMER_ORDER,
            after=("create_return",), preconditions=("return_is_the_customers",),
            timeout_seconds=5, attempts_max=2, evidence=("return_id", "label_used", "evidence_ref"),
            owner="returns-platform", business_owner="returns-desk",
        ),
        Tool(
            name="send_return_notice", version="1",
            summary="Send the customer the return number and what to do next, once.",
            arguments=notices.SendReturnNotice, result=notices.Notice,
            scope=Scope.NOTICES_WRITE, risk=Risk.IRREVERSIBLE_WRITE, targets=_CUSTOMER_ORDER,
            after=("create_return",), preconditions=("return_is_the_customers", "recipient_is_known"),
            timeout_seconds=15, attempts_max=2, side_effect="notice_sent",
            idempotency_key=FROM_TOKEN, idempotency_retention_days=_YEAR_DAYS,
            reconcile_with="find_notice", ambiguous_failure=Ambiguous.RECONCILE_THEN_RESEND_ONCE,
            success_when=Equals("status", "sent"),
            pending_values=("queued", "sending"), doubtful_values=("unknown",),
            evidence=("message_id", "status", "evidence_ref"),
            external_id="message_id", verification=Verification.READ_BACK,
            verify=ReadBack("find_notice", matches=("order_id", "return_id", "status")),
            compensate_with="send_correction_notice", compensate_within_hours=_DAY_HOURS,
            forbidden_when=("not_found", "notice_rejected"),
            owner="notice-platform", business_owner="customer-care",
        ),
        Tool(
            name="find_notice", version="1",
            summary="Look up the notice that an idempotency key sent, and close the key's earlier attempts.",
            arguments=notices.FindNotice, result=notices.NoticeFound,
            scope=Scope.NOTICES_READ, risk=Risk.READ, targets=_CUSTOMER_ORDER,
            after=("send_return_notice",), preconditions=("order_is_the_customers",),
            timeout_seconds=5, attempts_max=2, idempotency_key=FROM_TOKEN, looks_up=True,
            evidence=("found", "closed_through", "evidence_ref"),
            owner="notice-platform", business_owner="customer-care",
        ),
        Tool(
            name="send_correction_notice", version="1",
            summary="Send the customer a correction of an earlier notice, as a new message.",
            arguments=notices.SendCorrectionNotice, result=notices.Notice,
            scope=Scope.NOTICES_WRITE, risk=Risk.IRREVERSIBLE_WRITE, targets=_CUSTOMER_ORDER,
            after=("send_return_notice",), preconditions=("return_is_the_customers", "recipient_is_known"),
            timeout_seconds=15, attempts_max=2, side_effect="correction_sent",
            idempotency_key=FROM_TOKEN, idempotency_retention_days=_YEAR_DAYS,
            reconcile_with="find_notice", ambiguous_failure=Ambiguous.RECONCILE_THEN_RESEND_ONCE,
            success_when=Equals("status", "sent"),
            pending_values=("queued", "sending"), doubtful_values=("unknown",),
            evidence=("message_id", "status", "evidence_ref"),
            external_id="message_id", verification=Verification.READ_BACK,
            verify=ReadBack("find_notice", matches=("order_id", "return_id", "status")),
            compensate_with="send_correction_notice", compensate_within_hours=_DAY_HOURS,
            forbidden_when=("not_found", "notice_rejected"),
            owner="notice-platform", business_owner="customer-care",
        ),
    )
}  # fmt: skip
