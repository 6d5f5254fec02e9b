-- A return as it stands on the wire. `cancel_key` is the key that cancelled it.
CREATE VIEW returns.records AS
SELECT r.tenant_id, r.customer_id, r.order_id, r.return_id, r.idempotency_key, c.idempotency_key AS cancel_key,
       CASE WHEN c.return_id IS NULL THEN r.status ELSE 'cancelled' END AS status, c.cancelled_at,
       jsonb_build_object(
           'return_id', r.return_id, 'order_id', r.order_id,
           'status', CASE WHEN c.return_id IS NULL THEN r.status ELSE 'cancelled' END,
           'lines', (
               SELECT jsonb_agg(jsonb_build_object(
                   'line_id', l.line_id, 'quantity', l.quantity,
                   'refund', jsonb_build_object('amount', l.refund, 'currency', r.currency)) ORDER BY n.line_no)
               FROM returns.return_lines AS l JOIN returns.line_counters AS n USING (tenant_id, order_id, line_id)
               WHERE l.tenant_id = r.tenant_id AND l.return_id = r.return_id),
           'reason', r.reason, 'refund', jsonb_build_object('amount', r.refund, 'currency', r.currency),
           'created_at', r.created_at, 'rule_version', r.rule_version, 'order_version', r.order_version,
           'evidence_ref', 'return://' || r.return_id) AS record,
       CASE WHEN c.return_id IS NOT NULL THEN jsonb_build_object(
           'return_id', r.return_id, 'order_id', r.order_id, 'status', 'cancelled', 'cancelled_at', c.cancelled_at,
           'evidence_ref', 'return://' || r.return_id) END AS cancellation
FROM returns.returns AS r LEFT JOIN returns.cancellations AS c USING (tenant_id, return_id);
GRANT SELECT ON returns.records TO tools_returns;
