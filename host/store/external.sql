-- name: register
-- The task and its audit row, in one statement: no token exists that the record does not know.
SELECT register_external_task(%(task)s)

-- name: now
SELECT clock_now()

-- name: tasks
SELECT task_id, jti, tenant_id, principal, customer, scopes, tool, resource, idempotency_key, issued_by, issued_at,
       expires_at, expires_at <= clock_now() AS expired
  FROM external_task
 ORDER BY issued_at DESC, jti LIMIT %(most)s

-- name: good
-- Whose token is good still and was handed out, the writes first.
SELECT jti, principal, customer, tool, resource, issued_by, expires_at
  FROM external_task WHERE expires_at > clock_now() AND NOT starts_with(task_id, %(own)s) ORDER BY tool NULLS LAST, expires_at, jti
