-- The order family reads one order of the token's own tenant and customer. Where money goes back to is a reference:
-- it tells two destinations apart and tells neither's account or address.

-- name: get_order
SELECT a.code, a.result FROM calls.enter(%(call)s::jsonb) AS call, calls.answer(call, (
    SELECT jsonb_build_object(
        'order_id', o.order_id, 'version', o.version, 'status', o.status, 'ordered_at', o.ordered_at,
        'lines', (
            SELECT jsonb_agg(jsonb_build_object(
                'line_id', l.line_id, 'name', l.name, 'category', l.category, 'quantity', l.quantity,
                'delivered_quantity', l.delivered_quantity, 'delivered_at', l.delivered_at,
                'returned_quantity', r.returned,
                'unit_price', jsonb_build_object('amount', l.unit_price, 'currency', o.currency),
                'paid', jsonb_build_object('amount', l.paid, 'currency', o.currency)) ORDER BY l.line_no)
            FROM orders.lines AS l JOIN returns.returned_units AS r USING (tenant_id, order_id, line_id)
            WHERE l.tenant_id = o.tenant_id AND l.order_id = o.order_id),
        'shipping_fee', jsonb_build_object('amount', o.shipping_fee, 'currency', o.currency),
        'discount', jsonb_build_object('amount', o.discount, 'currency', o.currency),
        'paid', jsonb_build_object('amount', o.paid, 'currency', o.currency),
        'refunded', jsonb_build_object('amount', n.refunded, 'currency', o.currency),
        'destination_ref', o.destination_ref, 'note', o.note, 'snapshot', o.snapshot, 'evidence_ref', 'order://' || o.order_id || '@' || o.version)
    FROM orders.orders AS o JOIN returns.refunded_amount AS n USING (tenant_id, order_id)
    WHERE o.tenant_id = %(tenant)s AND o.customer_id = %(customer)s AND o.order_id = %(resource)s)) AS a
