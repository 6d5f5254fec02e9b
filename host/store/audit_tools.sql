-- What the auditor compares of the tool server's database. These are an auditor's statements and no tool server's, so
-- they stand with the host, which alone compares; its auditor's role there may SELECT, and reads no address or text.

-- NULL reads all; a list reads the rows of these tokens as they stand now, and a task what claims to be of it.
-- name: log
SELECT jti, use, task_id, tenant_id, tool, idempotency_key, outcome
  FROM calls.log
 WHERE (%(task)s::text IS NULL AND %(tokens)s::text[] IS NULL) OR task_id = %(task)s::text
    OR jti = ANY(%(tokens)s::text[])

-- What came with the loaded data has no key, and its loader has noted it; it was cancelled then, or by a call. A row
-- without a key that is not such a one was made by no call.
-- name: made
WITH lines AS MATERIALIZED (
    SELECT tenant_id, return_id, string_agg(line_id || ' ' || quantity, ', ' ORDER BY line_id) AS units
      FROM returns.return_lines GROUP BY tenant_id, return_id)
SELECT 'create_return' AS tool, r.tenant_id, r.idempotency_key, r.return_id AS id,
       CASE r.status WHEN 'created' THEN 'done' ELSE 'nothing' END AS stands,
       r.order_id || ': ' || coalesce(l.units, '') AS about
  FROM returns.returns AS r LEFT JOIN lines AS l USING (tenant_id, return_id)
  LEFT JOIN returns.loaded AS d USING (tenant_id, return_id)
 WHERE (r.idempotency_key IS NOT NULL OR d.return_id IS NULL)
   AND (%(keys)s::text[] IS NULL OR r.idempotency_key = ANY(%(keys)s::text[]))
UNION ALL
SELECT 'cancel_return', c.tenant_id, c.idempotency_key, c.return_id, 'done', c.return_id
  FROM returns.cancellations AS c JOIN returns.returns AS r USING (tenant_id, return_id)
  LEFT JOIN returns.loaded AS d USING (tenant_id, return_id)
 WHERE (c.idempotency_key IS NOT NULL OR d.return_id IS NULL OR c.cancelled_at <> r.created_at)
   AND (%(keys)s::text[] IS NULL OR c.idempotency_key = ANY(%(keys)s::text[]))
UNION ALL
SELECT CASE n.kind WHEN 'return' THEN 'send_return_notice' ELSE 'send_correction_notice' END, n.tenant_id,
       n.idempotency_key, n.message_id,
       CASE n.status WHEN 'sent' THEN 'done' WHEN 'rejected' THEN 'nothing' ELSE 'open' END,
       n.return_id || coalesce(' ' || n.corrects, '')
  FROM notices.audited AS n
 WHERE %(keys)s::text[] IS NULL OR n.idempotency_key = ANY(%(keys)s::text[])
