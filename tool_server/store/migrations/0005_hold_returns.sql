-- The return family. Returns, their lines and cancellations are append-only; the counters follow by trigger,
-- and their constraints are what keeps any number of returns within what was bought, delivered and paid.
CREATE SCHEMA returns;
GRANT USAGE ON SCHEMA returns TO tools_orders, tools_policies, tools_returns, tools_notices, tools_auditor;

CREATE TABLE returns.order_counters (
    tenant_id text NOT NULL,
    order_id text NOT NULL,
    captured orders.minor NOT NULL,
    refunded_outside orders.minor NOT NULL,
    refunded orders.minor NOT NULL DEFAULT 0,
    shipping_fee orders.minor NOT NULL,
    shipping_refunded orders.minor NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, order_id),
    CONSTRAINT refunded_within_captured CHECK (refunded + refunded_outside <= captured),
    CONSTRAINT shipping_refunded_once CHECK (shipping_refunded <= shipping_fee)
);

-- The row locks of an order's lines, taken in line order, are the order's lock.
CREATE TABLE returns.line_counters (
    tenant_id text NOT NULL,
    order_id text NOT NULL,
    line_id text NOT NULL,
    line_no integer NOT NULL,
    bought integer NOT NULL CHECK (bought BETWEEN 1 AND 10000),
    delivered integer NOT NULL CHECK (delivered BETWEEN 0 AND bought),
    returned integer NOT NULL DEFAULT 0 CHECK (returned >= 0),
    paid orders.minor NOT NULL,
    refunded orders.minor NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, order_id, line_id),
    FOREIGN KEY (tenant_id, order_id) REFERENCES returns.order_counters,
    CONSTRAINT returned_within_delivered CHECK (returned <= delivered),
    CONSTRAINT refunded_within_paid CHECK (refunded <= paid)
);

-- `refund` is what is paid back in all; `idempotency_key` is null for returns that came with the data.
CREATE TABLE returns.returns (
    tenant_id text NOT NULL,
    return_id text NOT NULL,
    order_id text NOT NULL,
    customer_id text NOT NULL,
    idempotency_key text,
    status text NOT NULL CHECK (status IN ('created', 'rejected')),
    reason text NOT NULL CHECK (reason IN ('changed_mind', 'defective', 'wrong_item', 'damaged', 'other')),
    currency orders.currency NOT NULL,
    refund orders.minor NOT NULL,
    shipping_refund orders.minor NOT NULL,
    return_fee orders.minor NOT NULL,
    rule_version text NOT NULL,
    order_version integer NOT NULL,
    requested_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT public.clock_now(),
    PRIMARY KEY (tenant_id, return_id),
    UNIQUE (tenant_id, order_id, return_id),
    CONSTRAINT one_return_per_key UNIQUE (tenant_id, idempotency_key),
    FOREIGN KEY (tenant_id, order_id) REFERENCES returns.order_counters
);
CREATE INDEX returns_of_order ON returns.returns (tenant_id, order_id);

CREATE TABLE returns.return_lines (
    tenant_id text NOT NULL,
    order_id text NOT NULL,
    return_id text NOT NULL,
    line_id text NOT NULL,
    quantity integer NOT NULL CHECK (quantity BETWEEN 1 AND 10000),
    refund orders.minor NOT NULL,
    PRIMARY KEY (tenant_id, return_id, line_id),
    FOREIGN KEY (tenant_id, order_id, return_id) REFERENCES returns.returns (tenant_id, order_id, return_id),
    FOREIGN KEY (tenant_id, order_id, line_id) REFERENCES returns.line_counters
);

CREATE INDEX return_lines_of_line ON returns.return_lines (tenant_id, order_id, line_id);

CREATE TABLE returns.cancellations (
    tenant_id text NOT NULL,
    return_id text NOT NULL,
    idempotency_key text,
    cancelled_at timestamptz NOT NULL DEFAULT public.clock_now(),
    CONSTRAINT one_cancellation_per_return PRIMARY KEY (tenant_id, return_id),
    CONSTRAINT one_cancellation_per_key UNIQUE (tenant_id, idempotency_key),
    FOREIGN KEY (tenant_id, return_id) REFERENCES returns.returns
);

-- What other systems have hung on a return; a used label is what makes it too late to cancel.
CREATE TABLE returns.links (
    tenant_id text NOT NULL,
    return_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('label_used', 'inventory', 'accounting')),
    reference text NOT NULL,
    at timestamptz NOT NULL DEFAULT public.clock_now(),
    PRIMARY KEY (tenant_id, return_id, kind, reference),
    FOREIGN KEY (tenant_id, return_id) REFERENCES returns.returns
);

GRANT SELECT ON returns.order_counters, returns.line_counters, returns.links TO tools_returns;
GRANT SELECT, INSERT ON returns.returns, returns.return_lines, returns.cancellations TO tools_returns;
GRANT SELECT ON returns.returns, returns.return_lines, returns.cancellations, returns.links TO tools_auditor;
