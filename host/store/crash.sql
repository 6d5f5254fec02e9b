-- What a crash matrix asks of its own pair of databases, and what it does there as the host's owner.

-- name: position
-- Where a case stands, and what of it is still to come.
SELECT w.state, w.reason, w.recoveries, w.review_closed_at IS NOT NULL AS closed,
       coalesce(w.wake_reason = 'approval', false) AS waits,
       w.control_state IN ('completed', 'needs_human', 'stopped', 'failed') AS ended,
       (SELECT count(*) FROM attempt a WHERE a.workflow_id = w.workflow_id AND a.outcome IS NULL)
       + (SELECT count(*) FROM compensation c WHERE c.workflow_id = w.workflow_id AND c.state = 'required') AS under_way
  FROM workflow w WHERE w.workflow_id = %(workflow_id)s

-- name: of_request
SELECT workflow_id FROM workflow WHERE request_id = %(request_id)s

-- name: following
SELECT workflow_id FROM workflow WHERE supersedes = %(workflow_id)s

-- name: asked_for
-- What an approver is asked right now.
SELECT action_digest FROM approval_request WHERE workflow_id = %(workflow_id)s ORDER BY version DESC LIMIT 1

-- name: queued
SELECT count(*) FROM procrastinate_jobs

-- name: last_beat
-- When the worker that has been silent the longest said that it lives, by the queue's own clock.
SELECT min(last_heartbeat) FROM procrastinate_workers

-- name: forget_queue
-- What a killed worker held is no part of the next cell: nobody waits for it any more.
DELETE FROM procrastinate_jobs

-- name: stops
SELECT scope || ': ' || reason FROM stop WHERE engaged ORDER BY scope

-- name: stop_updates
UPDATE stop SET engaged = true, actor = 'crash matrix', reason = %(reason)s, at = clock_now()
 WHERE scope = 'updates'

-- name: lift
UPDATE stop SET engaged = false, actor = 'crash matrix', reason = 'the other cells go on', at = clock_now() WHERE engaged

-- name: returns
-- As the tool server's auditor, by the key of a case: every return, and what was taken back.
SELECT count(DISTINCT r.return_id), count(c.return_id)
  FROM returns.returns r LEFT JOIN returns.cancellations c USING (tenant_id, return_id)
 WHERE r.idempotency_key LIKE %(keys)s

-- name: notices
SELECT kind, message_id FROM notices.audited WHERE idempotency_key LIKE %(keys)s

-- name: messages
SELECT message_id FROM notices.audited
