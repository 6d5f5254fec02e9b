-- The notice family: the outbox, the lock that tells a live handler from a dead one, and the one that keeps a return
-- from being cancelled while it is told of.

-- name: hold
SELECT pg_advisory_lock(notices.live_lock(%(tenant)s, %(key)s)), true

-- name: try_hold
SELECT NULL, pg_try_advisory_lock(notices.live_lock(%(tenant)s, %(key)s))

-- The return that is told of, by its number or by the row of its notice: it cannot be cancelled meanwhile.
-- name: hold_return
SELECT pg_advisory_lock_shared(returns.standing_lock(%(tenant)s, s.told)), s.told
FROM (SELECT coalesce(%(return_id)s::text, (
          SELECT n.return_id FROM notices.outbox AS n
          WHERE n.tenant_id = %(tenant)s AND n.idempotency_key = %(key)s)) AS told OFFSET 0) AS s

-- name: let_go
SELECT pg_advisory_unlock_shared(returns.standing_lock(%(tenant)s, %(told)s::text)),
       pg_advisory_unlock(notices.live_lock(%(tenant)s, %(key)s))

-- What a notice is made of; no row where the customer has no such return, or no such notice to correct.
-- name: material
SELECT t.status, t.lines, p.email, p.name, p.language, public.clock_now(),
       EXISTS (SELECT FROM notices.outbox AS k WHERE k.tenant_id = t.tenant_id AND k.customer_id = t.customer_id
                                                 AND k.idempotency_key = %(key)s)
FROM notices.returns_to_tell AS t LEFT JOIN notices.recipients AS p USING (tenant_id, customer_id)
WHERE t.tenant_id = %(tenant)s AND t.customer_id = %(customer)s AND t.order_id = %(resource)s
  AND t.return_id = %(return_id)s
  AND (%(corrects)s::text IS NULL OR EXISTS (
      SELECT FROM notices.outbox AS n
      WHERE n.tenant_id = t.tenant_id AND n.customer_id = t.customer_id AND n.return_id = t.return_id
        AND n.message_id = %(corrects)s::text AND n.status IN ('sent', 'unknown')))

-- name: begin_sending
SELECT code, before, via, sent_as, content FROM notices.begin_sending(%(call)s::jsonb, %(message)s::jsonb, %(content)s)

-- The reason is the row's as it was: of an end that came before this call.
-- name: conclude
SELECT notices.conclude(%(call)s::jsonb, %(outcome)s::text, %(reason)s::text),
       (SELECT n.reason FROM notices.outbox AS n
        WHERE n.tenant_id = %(call)s::jsonb ->> 'tenant' AND n.idempotency_key = %(call)s::jsonb ->> 'key')

-- name: settle
SELECT notices.settle(%(tenant)s, %(key)s, %(outcome)s::text, %(reason)s::text)

-- name: find_notice
SELECT code, result, stale FROM notices.look_up(%(call)s::jsonb)

-- name: drop_cancelled
SELECT notices.drop_cancelled(%(tenant)s, %(key)s)

-- name: left_sending
SELECT channel, message_id, content FROM notices.outbox
WHERE tenant_id = %(tenant)s AND idempotency_key = %(key)s AND status = 'sending'

-- name: due
SELECT tenant_id, idempotency_key FROM notices.outbox
WHERE status = 'pending' AND due_at <= public.clock_now() ORDER BY due_at LIMIT %(limit)s

-- name: take
UPDATE notices.outbox AS n SET status = 'sending', channel = %(channel)s
WHERE n.tenant_id = %(tenant)s AND n.idempotency_key = %(key)s AND n.status = 'pending'
  AND n.due_at <= public.clock_now() AND notices.may_be_told(n)
RETURNING message_id, content
