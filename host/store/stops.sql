-- name: engage
SELECT engage_stop(%(scopes)s::text[], %(actor)s, %(reason)s, %(cause)s, NULL, %(details)s, %(behind)s)

-- name: scopes
-- A scope without a row reads as stopped.
SELECT s.scope, stopped(s.scope) AS engaged, coalesce(t.actor, '?') AS actor, coalesce(t.reason, 'the row is missing') AS reason, t.at
  FROM unnest(ARRAY['new_work', 'updates', 'reads', 'parallel']) WITH ORDINALITY AS s(scope, n)
  LEFT JOIN stop t USING (scope) ORDER BY s.n

-- name: open_cases
-- What has not ended, by state, the oldest first.
SELECT state, count(*) AS cases, array_agg(workflow_id ORDER BY created_at, workflow_id) AS workflow_ids
  FROM workflow WHERE control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed') GROUP BY state ORDER BY state

-- name: under_way
-- Effects whose intent was committed and whose outcome is not: those of cases at work are finished and recorded.
SELECT k.workflow_id, k.state, k.name, k.idempotency_key FROM effect_known k JOIN workflow w USING (workflow_id)
 WHERE k.known = 'unknown' AND w.control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed') ORDER BY k.workflow_id

-- name: held
SELECT state, count(*) AS cases FROM workflow
 WHERE wake_at IS NOT NULL AND wake_reason IN ('stopped', 'stopped_reads') GROUP BY state ORDER BY state

-- name: in_doubt
-- Whose request was under way, or whose effect nobody knows; those that are still at work first.
SELECT w.workflow_id, w.control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed') AS open
  FROM workflow w
 WHERE w.control_state IN ('tool_running', 'observing')
    OR EXISTS (SELECT FROM effect_known k WHERE k.workflow_id = w.workflow_id AND k.known = 'unknown')
 ORDER BY open DESC, w.created_at, w.workflow_id

-- name: newest_act
SELECT coalesce(max(stop_id), 0) FROM stop_log

-- name: stopped_since
SELECT stop_id, actor, reason, cause, workflow_id FROM stop_log WHERE act = 'stop' AND stop_id > %(after)s ORDER BY stop_id

-- name: reconcile
SELECT reconciliation_id, states, unsettled, accepted, to_undo, outside, at FROM record_reconciliation(%(actor)s, %(after)s, %(details)s)

-- name: lift
SELECT lift_stop(%(actor)s, %(reason)s, %(reconciliation)s, %(details)s)

-- name: release
SELECT release_held(%(state)s, %(most)s, %(actor)s, %(reason)s, %(details)s)

-- name: end_one_at_a_time
SELECT end_one_at_a_time(%(actor)s, %(reason)s, %(details)s)

-- name: wait_briefly
SELECT set_config('lock_timeout', '5s', true)

-- name: passed
SELECT passed_by_stop()

-- name: be_patient
-- Until the end of this transaction: longer than whoever is stuck in one of theirs.
SELECT set_config('lock_timeout', '30s', true), set_config('statement_timeout', '60s', true),
       CASE WHEN current_setting('server_version_num')::integer >= 170000 THEN set_config('transaction_timeout', '90s', true) END
