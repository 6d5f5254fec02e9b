-- What the auditor compares of the ledger: by SELECT alone, and no column with a customer's own words. Without a case all
-- of it; with one what is its own, and who else owns these tokens and keys.

-- name: attempts
SELECT jti, workflow_id::text AS workflow_id, tool, outcome
  FROM attempt
 WHERE %(case)s::uuid IS NULL OR workflow_id = %(case)s::uuid OR jti = ANY(%(tokens)s::text[])

-- name: effects
SELECT workflow_id::text AS workflow_id, tenant_id, name, idempotency_key, outcome::text AS outcome, external_id
  FROM effect
 WHERE %(case)s::uuid IS NULL OR workflow_id = %(case)s::uuid OR idempotency_key = ANY(%(keys)s::text[])

-- what was issued outside of any case is no case's, and is read whole: whoever uses such a token is known by it
-- name: issued
SELECT jti, task_id, tenant_id, tool, idempotency_key FROM external_task

-- Who could write a row could mend what is compared, whatever he does with it; it is asked of either database.
-- name: writes
SELECT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) OR EXISTS (
    SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
       AND (has_any_column_privilege(c.oid, 'INSERT, UPDATE') OR has_table_privilege(c.oid, 'DELETE, TRUNCATE'))) AS writes
