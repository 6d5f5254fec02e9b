-- The return family. Everything is bounded by tenant and customer; the functions take them from the call.

-- name: get_return
SELECT a.code, a.result FROM calls.enter(%(call)s::jsonb) AS call, calls.answer(call, (
    SELECT r.record FROM returns.records AS r
    WHERE r.tenant_id = %(tenant)s AND r.customer_id = %(customer)s AND r.order_id = %(resource)s
      AND r.return_id = %(return_id)s)) AS a

-- name: get_return_links
SELECT a.code, a.result FROM calls.enter(%(call)s::jsonb) AS call, calls.answer(call, (
    SELECT jsonb_build_object(
        'return_id', r.return_id, 'order_id', r.order_id,
        'label_used', coalesce(bool_or(k.kind = 'label_used'), false),
        'inventory_entries',
            coalesce(jsonb_agg(k.reference ORDER BY k.reference) FILTER (WHERE k.kind = 'inventory'), '[]'),
        'accounting_entries',
            coalesce(jsonb_agg(k.reference ORDER BY k.reference) FILTER (WHERE k.kind = 'accounting'), '[]'),
        'evidence_ref', 'return://' || r.return_id)
    FROM returns.records AS r LEFT JOIN returns.links AS k USING (tenant_id, return_id)
    WHERE r.tenant_id = %(tenant)s AND r.customer_id = %(customer)s AND r.order_id = %(resource)s
      AND r.return_id = %(return_id)s
    GROUP BY r.return_id, r.order_id)) AS a

-- name: find_return
SELECT f.code, f.result FROM calls.enter(%(call)s::jsonb) AS call, returns.look_up(call) AS f

-- name: lock_order
SELECT returns.lock_order(%(tenant)s, %(resource)s)

-- name: facts
SELECT policies.facts(%(tenant)s, %(customer)s, %(resource)s, %(requested_at)s::timestamptz)

-- name: issue
SELECT returns.issue(%(call)s::jsonb, %(ruled)s::jsonb)

-- name: cancel
SELECT code, result FROM returns.cancel(%(call)s::jsonb, %(return_id)s)

-- name: replay
SELECT returns.replay(%(call)s::jsonb)
