-- The order family: what was bought and delivered. Only the owner's `load` writes here.
-- Amounts are minor units; 10^15 keeps every sum of 100 lines far inside a bigint.
CREATE SCHEMA orders;
GRANT USAGE ON SCHEMA orders TO tools_orders, tools_policies, tools_returns, tools_notices;

CREATE DOMAIN orders.minor AS bigint CHECK (VALUE BETWEEN 0 AND 1000000000000000);
CREATE DOMAIN orders.currency AS text CHECK (VALUE ~ '^[A-Z]{3}$');
-- A date that stands for "no date" would place a line in a window that has long ended.
CREATE DOMAIN orders.moment AS timestamptz CHECK (VALUE >= '2000-01-01Z' AND VALUE < '2200-01-01Z');

CREATE TABLE orders.orders (
    tenant_id text NOT NULL,
    order_id text NOT NULL,
    customer_id text NOT NULL,
    version integer NOT NULL CHECK (version >= 1),
    status text NOT NULL CHECK (status IN ('pending', 'shipped', 'delivered', 'cancelled', 'refunded')),
    ordered_at orders.moment NOT NULL,
    currency orders.currency NOT NULL,
    shipping_fee orders.minor NOT NULL,
    discount orders.minor NOT NULL,
    paid orders.minor NOT NULL,
    captured orders.minor NOT NULL,
    refunded_outside orders.minor NOT NULL,
    destination_ref text NOT NULL,
    note text,
    snapshot text NOT NULL,
    content_sha256 text NOT NULL,
    PRIMARY KEY (tenant_id, order_id),
    CONSTRAINT captured_within_paid CHECK (captured <= paid),
    CONSTRAINT refunded_outside_within_captured CHECK (refunded_outside <= captured)
);

CREATE TABLE orders.lines (
    tenant_id text NOT NULL,
    order_id text NOT NULL,
    line_id text NOT NULL,
    line_no integer NOT NULL,
    name text NOT NULL,
    category text NOT NULL,
    quantity integer NOT NULL CHECK (quantity BETWEEN 1 AND 10000),
    unit_price orders.minor NOT NULL,
    paid orders.minor NOT NULL,
    delivered_quantity integer NOT NULL,
    delivered_at orders.moment,
    final_sale boolean NOT NULL,
    dangerous boolean NOT NULL,
    PRIMARY KEY (tenant_id, order_id, line_id),
    UNIQUE (tenant_id, order_id, line_no),
    FOREIGN KEY (tenant_id, order_id) REFERENCES orders.orders,
    CONSTRAINT delivered_within_bought CHECK (delivered_quantity BETWEEN 0 AND quantity),
    CONSTRAINT paid_within_price CHECK (paid <= unit_price::numeric * quantity)
);

-- Whose an order is; what the other families need to answer `not_found` alike for unknown and foreign orders.
CREATE VIEW orders.owned AS SELECT tenant_id, order_id, customer_id FROM orders.orders;

GRANT SELECT ON orders.orders, orders.lines TO tools_orders;
GRANT SELECT ON orders.owned TO tools_returns, tools_notices;
