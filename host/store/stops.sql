-- name: engage
SELECT engage_stop(%(scopes)s::text[], %(actor)s, %(reason)s, %(cause)s, NULL)

-- name: standing
-- A scope without a row reads as stopped.
SELECT s.scope, stopped(s.scope) AS engaged, coalesce(t.actor, '?') AS actor, coalesce(t.reason, 'the row is missing') AS reason, t.at
  FROM unnest(ARRAY['new_work', 'updates', 'reads', 'parallel']) WITH ORDINALITY AS s(scope, n)
  LEFT JOIN stop t USING (scope) ORDER BY s.n
