-- What an evaluation asks of its own host database, and what it does in its own pair as their owner.

-- name: positions
-- A case rests where it has ended, or waits for a person.
SELECT workflow_id, state, control_state IN ('completed', 'needs_human', 'stopped', 'failed') AS ended,
       lease_owner IS NULL AND coalesce(wake_reason = 'approval', false) AS waits
  FROM workflow WHERE workflow_id = ANY(%(ids)s)

-- name: busy
-- What has not ended and is not one of these, or is in a driver's hand.
SELECT count(*) FROM workflow
 WHERE control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed')
   AND (lease_owner IS NOT NULL OR NOT workflow_id = ANY(%(waiting)s))

-- name: move_row
-- Somebody else has moved the row: who works on it holds an older version.
UPDATE workflow SET version = version + 1 WHERE workflow_id = %(workflow_id)s RETURNING version

-- name: addresses
SELECT tenant_id, customer_id, email FROM notices.recipients

-- name: move_order
-- At the shop: the order goes somewhere else from now on.
UPDATE orders.orders SET destination_ref = destination_ref || '/moved', version = version + 1
 WHERE order_id = %(order_id)s RETURNING destination_ref

-- name: revoke_approver
-- At the shop: from the next call on the key counts for nothing.
UPDATE returns.approvers SET ended_at = public.clock_now(), ended_by = 'evaluation', ended_how = 'revoked'
 WHERE kid = %(kid)s AND ended_at IS NULL RETURNING approver

-- name: lift_by_hand
-- Past what lifting a stop asks for, which would keep all other cases from being run.
UPDATE stop SET engaged = false, actor = %(actor)s, reason = %(reason)s, at = clock_now() WHERE engaged

-- name: keep_notes
INSERT INTO audit (actor, action, resource, result, details, at)
VALUES ('evaluation', 'evaluated', '-', 'noted', %(notes)s::jsonb, clock_now())

-- name: kept_notes
SELECT details FROM audit WHERE action = 'evaluated' ORDER BY audit_id DESC LIMIT 1

-- name: now
SELECT clock_now()

-- name: clock
-- Whether its result may be kept within a statement is as it was.
SELECT CASE provolatile WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END FROM pg_proc WHERE oid = 'public.clock_now()'::regprocedure
