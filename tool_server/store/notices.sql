-- The notice family: the outbox, the lock that tells a live handler from a dead one, and the one that keeps a return
-- from being cancelled while it is told of.

-- name: hold
SELECT pg_advisory_lock(notices.live_lock(%(tenant)s, %(key)s)), true

-- name: try_hold
SELECT NULL, pg_try_advisory_lock(notices.live_lock(%(tenant)s, %(key)s))

-- The return that is told of, by its number or by the row of its notice: it cannot be cancelled meanwhile.
-- name: hold_return
SELECT pg_advisory_lock_shared(returns.standing_lock(%(tenant)s, s.told)), s.told
FROM calls.enter(%(within)s::jsonb) AS within, LATERAL (
    SELECT coalesce(%(return_id)s::text, (
        SELECT n.return_id FROM notices.outbox AS n
        WHERE n.tenant_id = within ->> 'tenant' AND n.idempotency_key = within ->> 'key')) AS told OFFSET 0) AS s

-- name: let_go
SELECT pg_advisory_unlock_shared(returns.standing_lock(%(tenant)s, %(told)s::text)),
       pg_advisory_unlock(notices.live_lock(%(tenant)s, %(key)s))

-- What a notice is made of; no row where the customer has no such return, or no such notice to correct.
-- name: material
SELECT m.*
FROM calls.enter(%(within)s::jsonb) AS within, LATERAL (
    SELECT t.status, t.lines, p.email, p.name, p.language, public.clock_now(),
           EXISTS (SELECT FROM notices.outbox AS k WHERE k.tenant_id = t.tenant_id AND k.customer_id = t.customer_id
                                                     AND k.idempotency_key = %(key)s)
    FROM notices.returns_to_tell AS t LEFT JOIN notices.recipients AS p USING (tenant_id, customer_id)
    WHERE within IS NOT NULL
      AND t.tenant_id = %(tenant)s AND t.customer_id = %(customer)s AND t.order_id = %(resource)s
      AND t.return_id = %(return_id)s
      AND (%(corrects)s::text IS NULL OR EXISTS (
          SELECT FROM notices.outbox AS n
          WHERE n.tenant_id = t.tenant_id AND n.customer_id = t.customer_id AND n.return_id = t.return_id
            AND n.message_id = %(corrects)s::text AND n.status IN ('sent', 'unknown')))
    OFFSET 0) AS m

-- name: begin_sending
SELECT b.code, b.before, b.via, b.sent_as, b.content
FROM calls.enter(%(call)s::jsonb) AS call, notices.begin_sending(call, %(message)s::jsonb, %(content)s) AS b

-- The reason is the row's as it was: of an end that came before this call.
-- name: conclude
SELECT d.record, (
    SELECT n.reason FROM notices.outbox AS n
    WHERE n.tenant_id = call ->> 'tenant' AND n.idempotency_key = call ->> 'key')
FROM calls.enter(%(call)s::jsonb) AS call, notices.conclude(call, %(outcome)s::text, %(reason)s::text) AS d (record)

-- name: settle
SELECT notices.settle(%(tenant)s, %(key)s, %(outcome)s::text, %(reason)s::text)

-- name: find_notice
SELECT f.code, f.result, f.stale FROM calls.enter(%(call)s::jsonb) AS call, notices.look_up(call) AS f

-- name: drop_cancelled
SELECT notices.drop_cancelled(%(tenant)s, %(key)s)

-- name: left_sending
SELECT channel, message_id, content FROM notices.outbox
WHERE tenant_id = %(tenant)s AND idempotency_key = %(key)s AND status = 'sending'

-- name: due
SELECT tenant_id, customer_id, order_id, idempotency_key FROM notices.due(%(limit)s)

-- name: take
UPDATE notices.outbox AS n SET status = 'sending', channel = %(channel)s
WHERE n.tenant_id = %(tenant)s AND n.idempotency_key = %(key)s AND n.status = 'pending'
  AND n.due_at <= public.clock_now() AND notices.may_be_told(n)
RETURNING message_id, content
