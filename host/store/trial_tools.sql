-- What an evaluation counts at the tool server, as its auditor: by SELECT alone, and no address or text.

-- name: calls
SELECT task_id, jti, tool, purpose, idempotency_key, outcome FROM calls.log WHERE use = 'call' ORDER BY seq

-- name: undone
-- What of that was undone, and when: returns that were cancelled, notices that another mail corrects.
SELECT 'return' AS kind, tenant_id, return_id AS id, cancelled_at AS at
  FROM returns.cancellations WHERE idempotency_key IS NOT NULL
UNION ALL
SELECT 'notice', tenant_id, corrects, sent_at
  FROM notices.audited WHERE corrects IS NOT NULL AND status = 'sent'

-- name: made
-- Returns, notices and corrections that some call has made; what came with the loaded data has no key. `about`: of
-- a return its reason and lines, of a notice its return.
SELECT 'return' AS kind, tenant_id, return_id AS id, order_id, customer_id, idempotency_key, ARRAY[reason] || ARRAY(
         SELECT concat(l.line_id, ' ', l.quantity) FROM returns.return_lines AS l
         WHERE (l.tenant_id, l.return_id) = (r.tenant_id, r.return_id)) AS about,
       false AS in_doubt
  FROM returns.returns AS r WHERE status = 'created' AND (idempotency_key IS NOT NULL OR created_at <> requested_at)
UNION ALL
SELECT CASE kind WHEN 'return' THEN 'notice' ELSE 'correction' END, tenant_id, message_id, order_id, customer_id, idempotency_key,
       ARRAY[return_id], status = 'unknown'
  FROM notices.audited WHERE status IN ('sent', 'unknown')
