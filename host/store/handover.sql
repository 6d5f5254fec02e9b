-- name: around
-- What lies around a case: the stops, and who else is at work on the same order. The customers' own texts stay where
-- they are.
SELECT clock_now() AS made_at,
       (SELECT jsonb_agg(jsonb_build_object('scope', n.scope, 'engaged', coalesce(s.engaged, true), 'actor', s.actor,
                                            'reason', s.reason, 'at', s.at) ORDER BY n.place)
          FROM unnest(ARRAY['new_work', 'updates', 'reads']) WITH ORDINALITY n(scope, place)
          LEFT JOIN stop s USING (scope)) AS stops,
       coalesce((SELECT jsonb_agg(to_jsonb(o) ORDER BY o.workflow_id)
                   FROM (SELECT x.workflow_id, x.kind, x.release, x.state, x.reason, x.case_body - 'message' AS case_body,
                                count(*) OVER () AS in_all,
                                ARRAY(SELECT DISTINCT u FROM effect e, unnest(e.units) u
                                       WHERE e.workflow_id = x.workflow_id AND e.outcome IS NULL ORDER BY u) AS in_doubt
                           FROM workflow x
                          WHERE x.tenant_id = w.tenant_id AND x.resource = w.resource AND x.workflow_id <> w.workflow_id
                            AND x.control_state NOT IN ('completed', 'stopped')
                          ORDER BY x.workflow_id LIMIT %(most)s) o), '[]') AS others
  FROM workflow w
 WHERE w.workflow_id = %(workflow_id)s
