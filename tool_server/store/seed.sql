-- Loading, as the owner: rows come as JSON arrays, so that a file of any size is a few statements.

-- name: known_policies
SELECT version, content_sha256, effective_from, tenant_id FROM policies.versions

-- name: insert_versions
INSERT INTO policies.versions (version, tenant_id, owner, effective_from, effective_until, zone, content_sha256)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    version text, tenant_id text, owner text, effective_from timestamptz, effective_until timestamptz, zone text,
    content_sha256 text)

-- name: insert_rules
INSERT INTO policies.rules (version, category, source, window_days, dangerous, final_sale)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    version text, category text, source text, window_days integer, dangerous boolean, final_sale boolean)

-- name: insert_amounts
INSERT INTO policies.amounts (version, kind, currency, amount)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (version text, kind text, currency text, amount bigint)

-- name: rules_of_returns
SELECT v.version, v.effective_from, v.effective_until, v.tenant_id,
       coalesce(jsonb_object_agg(a.currency, a.amount) FILTER (WHERE a.kind = 'return_fee'), '{}')
FROM policies.versions AS v LEFT JOIN policies.amounts AS a USING (version)
GROUP BY v.version

-- The order's lock, for all orders of the file that are there already, before anything of them is read.
-- name: lock_orders
SELECT count(*) FROM (
    SELECT FROM returns.line_counters AS c
    WHERE (c.tenant_id, c.order_id) IN (
        SELECT r.tenant_id, r.order_id FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (tenant_id text, order_id text))
    ORDER BY c.tenant_id, c.order_id, c.line_no FOR UPDATE) AS locked

-- name: known_orders
SELECT o.tenant_id, o.order_id, o.customer_id, o.version, o.currency, o.content_sha256,
       (SELECT array_agg(l.line_id ORDER BY l.line_no) FROM orders.lines AS l
        WHERE l.tenant_id = o.tenant_id AND l.order_id = o.order_id),
       (SELECT coalesce(array_agg(k.return_id), '{}') FROM returns.returns AS k
        WHERE k.tenant_id = o.tenant_id AND k.order_id = o.order_id),
       n.refunded, n.shipping_refunded,
       (SELECT jsonb_object_agg(c.line_id, jsonb_build_array(c.returned, c.refunded)) FROM returns.line_counters AS c
        WHERE c.tenant_id = o.tenant_id AND c.order_id = o.order_id)
FROM orders.orders AS o JOIN returns.order_counters AS n USING (tenant_id, order_id)
WHERE (o.tenant_id, o.order_id) IN (
    SELECT r.tenant_id, r.order_id FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (tenant_id text, order_id text))

-- name: taken_returns
SELECT k.tenant_id, k.return_id, k.order_id FROM returns.returns AS k
WHERE (k.tenant_id, k.return_id) IN (
    SELECT r.tenant_id, r.return_id FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (tenant_id text, return_id text))

-- name: put_orders
INSERT INTO orders.orders (tenant_id, order_id, customer_id, version, status, ordered_at, currency, shipping_fee,
                           discount, paid, captured, refunded_outside, destination_ref, note, snapshot, content_sha256)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    tenant_id text, order_id text, customer_id text, version integer, status text, ordered_at timestamptz,
    currency text, shipping_fee bigint, discount bigint, paid bigint, captured bigint, refunded_outside bigint,
    destination_ref text, note text, snapshot text, content_sha256 text)
ON CONFLICT (tenant_id, order_id) DO UPDATE SET
    version = excluded.version, status = excluded.status, ordered_at = excluded.ordered_at,
    shipping_fee = excluded.shipping_fee, discount = excluded.discount, paid = excluded.paid,
    captured = excluded.captured, refunded_outside = excluded.refunded_outside,
    destination_ref = excluded.destination_ref, note = excluded.note, snapshot = excluded.snapshot,
    content_sha256 = excluded.content_sha256

-- The first delivery's time stays: a second parcel does not open the window again.
-- name: put_lines
INSERT INTO orders.lines AS known (tenant_id, order_id, line_id, line_no, name, category, quantity, unit_price, paid,
                                   delivered_quantity, delivered_at, final_sale, dangerous)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    tenant_id text, order_id text, line_id text, line_no integer, name text, category text, quantity integer,
    unit_price bigint, paid bigint, delivered_quantity integer, delivered_at timestamptz, final_sale boolean,
    dangerous boolean)
ON CONFLICT (tenant_id, order_id, line_id) DO UPDATE SET
    name = excluded.name, category = excluded.category, quantity = excluded.quantity,
    unit_price = excluded.unit_price, paid = excluded.paid, delivered_quantity = excluded.delivered_quantity,
    delivered_at = least(known.delivered_at, excluded.delivered_at), final_sale = excluded.final_sale,
    dangerous = excluded.dangerous

-- name: put_order_counters
INSERT INTO returns.order_counters (tenant_id, order_id, captured, refunded_outside, shipping_fee)
SELECT r.tenant_id, r.order_id, r.captured, r.refunded_outside, r.shipping_fee
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    tenant_id text, order_id text, captured bigint, refunded_outside bigint, shipping_fee bigint)
ON CONFLICT (tenant_id, order_id) DO UPDATE SET
    captured = excluded.captured, refunded_outside = excluded.refunded_outside, shipping_fee = excluded.shipping_fee

-- name: put_line_counters
INSERT INTO returns.line_counters (tenant_id, order_id, line_id, line_no, bought, delivered, paid)
SELECT r.tenant_id, r.order_id, r.line_id, r.line_no, r.quantity, r.delivered_quantity, r.paid
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    tenant_id text, order_id text, line_id text, line_no integer, quantity integer, delivered_quantity integer,
    paid bigint)
ON CONFLICT (tenant_id, order_id, line_id) DO UPDATE SET
    bought = excluded.bought, delivered = excluded.delivered, paid = excluded.paid

-- name: insert_returns
WITH put AS (
    INSERT INTO returns.returns (tenant_id, return_id, order_id, customer_id, status, reason, currency, refund,
                                 shipping_refund, return_fee, rule_version, order_version, requested_at, created_at)
    SELECT r.tenant_id, r.return_id, r.order_id, r.customer_id, r.status, r.reason, r.currency, r.refund,
           r.shipping_refund, r.return_fee, r.rule_version, r.order_version, r.created_at, r.created_at
    FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
        tenant_id text, return_id text, order_id text, customer_id text, status text, reason text, currency text,
        refund bigint, shipping_refund bigint, return_fee bigint, rule_version text, order_version integer,
        created_at timestamptz)
    RETURNING tenant_id, return_id)
INSERT INTO returns.loaded (tenant_id, return_id) SELECT tenant_id, return_id FROM put

-- name: insert_return_lines
INSERT INTO returns.return_lines (tenant_id, order_id, return_id, line_id, quantity, refund)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    tenant_id text, order_id text, return_id text, line_id text, quantity integer, refund bigint)

-- name: insert_cancellations
INSERT INTO returns.cancellations (tenant_id, return_id, cancelled_at)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (tenant_id text, return_id text, created_at timestamptz)

-- name: put_recipients
INSERT INTO notices.recipients AS known (tenant_id, customer_id, email, name, language)
SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    tenant_id text, customer_id text, email text, name text, language text)
ON CONFLICT (tenant_id, customer_id) DO UPDATE SET
    email = excluded.email, name = excluded.name, language = excluded.language
WHERE (known.email, known.name, known.language) <> (excluded.email, excluded.name, excluded.language)

-- name: mark_snapshot
UPDATE orders.orders AS o SET snapshot = %(snapshot)s
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (tenant_id text, order_id text)
WHERE o.tenant_id = r.tenant_id AND o.order_id = r.order_id AND o.snapshot <> %(snapshot)s
