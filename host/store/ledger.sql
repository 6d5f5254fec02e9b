-- name: load
-- Everything that a driver needs, in one read and without a lock: version and fence are the lock (commit_steps).
SELECT to_jsonb(w) - 'body_sha256' AS workflow,
       coalesce((SELECT jsonb_agg(to_jsonb(c) ORDER BY c.step) FROM call c WHERE c.workflow_id = w.workflow_id), '[]') AS calls,
       coalesce((SELECT jsonb_agg(to_jsonb(a) ORDER BY a.step, a.n) FROM attempt a WHERE a.workflow_id = w.workflow_id), '[]') AS attempts,
       coalesce((SELECT jsonb_agg(to_jsonb(e) ORDER BY e.step, e.attempt) FROM effect e WHERE e.workflow_id = w.workflow_id), '[]') AS effects,
       coalesce((SELECT jsonb_agg(jsonb_build_object('code', r.code, 'message', r.message) ORDER BY r.n)
                   FROM refusal r WHERE r.workflow_id = w.workflow_id), '[]') AS refusals,
       (SELECT jsonb_build_object('version', r.version, 'action', r.action, 'action_digest', r.action_digest,
                   'requested_at', r.requested_at, 'expires_at', r.expires_at, 'event', a.event, 'kid', a.kid,
                   'approver', a.approver, 'decision', a.decision,
                   'x', (SELECT k.x FROM approver_key k WHERE k.kid = a.kid AND k.revoked_at IS NULL), 'read_at', clock_now())
          FROM approval_request r LEFT JOIN approval a USING (workflow_id, version)
         WHERE r.workflow_id = w.workflow_id ORDER BY r.version DESC LIMIT 1) AS approval,
       (SELECT count(*) FROM decision d WHERE d.workflow_id = w.workflow_id) AS decisions,
       (SELECT to_jsonb(c) || jsonb_build_object('read_at', clock_now())
          FROM compensation c WHERE c.workflow_id = w.workflow_id AND c.state = 'required') AS compensation,
       coalesce((SELECT c.cost_micros FROM planner_cost c
                  WHERE c.day = (clock_now() AT TIME ZONE 'UTC')::date), 0) AS cost_today,
       stopped('updates') AND NOT released(w.workflow_id) AS updates_stopped,
       stopped('reads') AND NOT released(w.workflow_id) AS reads_stopped,
       w.lease_until > clock_now() AS leased,
       -- whom a stop has held is not driven until somebody releases it
       w.wake_at > clock_now() OR (w.wake_reason IN ('stopped', 'stopped_reads') AND stopped('parallel')) AS asleep
  FROM workflow w
 WHERE w.workflow_id = ANY (%(workflow_ids)s)

-- name: commit_steps
SELECT workflow_id, version, fence, at, active_ms, entered_active_ms FROM commit_steps(%(rows)s)

-- name: renew_lease
SELECT renew_lease(%(workflow_id)s, %(fence)s, %(owner)s, %(seconds)s)

-- name: count_broken_drive
SELECT count_broken_drive(%(workflow_id)s, %(most)s)

-- name: accept_case
SELECT workflow_id, body_sha256, created FROM accept_case(%(case)s)

-- name: moves
SELECT move_id, control_from, control_to, business_from, business_to, event, actor
  FROM legal_transition WHERE kind = %(kind)s AND release = %(release)s

-- name: releases
SELECT DISTINCT kind, release FROM legal_transition

-- name: open_releases
SELECT DISTINCT kind, release FROM workflow
 WHERE control_state NOT IN ('completed', 'stopped') ORDER BY kind, release

-- name: queue
-- What could go on now and has no worker, and how long the oldest has waited; who waits for a person or for the end of a
-- stop takes nobody's place.
SELECT count(*) AS waiting, coalesce(extract(epoch FROM clock_now() - min(due_at)), 0)::float8 AS oldest_seconds
  FROM (SELECT wake_at AS due_at FROM workflow
         WHERE wake_at <= clock_now() AND wake_reason NOT IN ('stopped', 'stopped_reads', 'approval')
        UNION ALL
        SELECT lease_until FROM workflow WHERE lease_owner IS NOT NULL AND lease_until <= clock_now()
           AND control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed')) w

-- name: due
-- Work that is due and that no pending wake-up will bring: timers, and drivers that died. Bounded, oldest first.
-- A job in hand is no excuse: its worker may be dead, and a doubled wake-up costs one read. After a stop one case goes on
-- at a time, and whom a stop has held waits until somebody releases it.
SELECT w.workflow_id
  FROM (SELECT workflow_id, wake_at AS due_at FROM workflow
         WHERE wake_at <= clock_now()
           AND wake_reason <> 'approval'  -- what nobody has approved in time is ended without a wake-up
           AND NOT (wake_reason = 'stopped' AND (stopped('updates') OR stopped('parallel')))
           AND NOT (wake_reason = 'stopped_reads' AND (stopped('reads') OR stopped('parallel')))
        UNION ALL
        SELECT workflow_id, lease_until FROM workflow WHERE lease_owner IS NOT NULL AND lease_until <= clock_now()
           AND control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed')) w
 WHERE NOT EXISTS (SELECT FROM procrastinate_jobs j
                    WHERE j.status = 'todo' AND j.args ->> 'workflow_id' = w.workflow_id::text)
 ORDER BY w.due_at, w.workflow_id
 LIMIT CASE WHEN NOT stopped('parallel') THEN %(most)s
            WHEN EXISTS (SELECT FROM workflow WHERE lease_owner IS NOT NULL AND lease_until > clock_now()) THEN 0
            ELSE 1 END

-- name: one_at_a_time
SELECT stopped('parallel')

-- name: unapproved
-- Cases that have waited for an approval as long as one may take, oldest first.
SELECT workflow_id FROM workflow WHERE wake_at <= clock_now() AND wake_reason = 'approval'
 ORDER BY wake_at LIMIT %(most)s

-- name: lock_sweep
SELECT pg_try_advisory_xact_lock(118058463519595)

-- name: overdue
-- What was to be undone by a time that is past, and has no call under way.
SELECT w.workflow_id FROM compensation c JOIN workflow w USING (workflow_id)
 WHERE c.state = 'required' AND c.due_at <= clock_now() AND w.control_state IN ('planning', 'tool_proposed')
   AND w.state = 'COMPENSATION_REQUIRED' AND (w.lease_until IS NULL OR w.lease_until < clock_now())
 ORDER BY c.due_at LIMIT %(most)s
