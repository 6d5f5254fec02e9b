-- name: around
-- What lies around a case: the stops, what was to be undone, and who else is at work on the same order. The customers'
-- own texts stay where they are.
SELECT clock_now() AS made_at,
       (SELECT jsonb_agg(jsonb_build_object('scope', n.scope, 'engaged', coalesce(s.engaged, true), 'actor', s.actor,
                                            'reason', s.reason, 'at', s.at) ORDER BY n.place)
          FROM unnest(ARRAY['new_work', 'updates', 'reads', 'parallel']) WITH ORDINALITY n(scope, place)
          LEFT JOIN stop s USING (scope)) AS stops,
       -- those in the case's time, those that it led to, and whatever engaged what is engaged now; the newest
       coalesce((SELECT jsonb_agg(to_jsonb(o) ORDER BY o.stop_id)
                   FROM (SELECT l.stop_id, l.act, l.scopes, l.actor, l.reason, l.cause, l.at,
                                l.workflow_id IS NOT DISTINCT FROM w.workflow_id AS of_this_case
                           FROM stop_log l
                          WHERE (l.at >= w.created_at AND (l.at <= w.updated_at OR w.control_state NOT IN ('completed', 'stopped')))
                             OR l.workflow_id = w.workflow_id
                             OR (l.act = 'stop' AND EXISTS (SELECT FROM stop s
                                                             WHERE s.engaged AND s.scope = ANY (l.scopes) AND l.at >= s.at))
                          ORDER BY l.stop_id DESC LIMIT %(most_stops)s) o), '[]') AS operations,
       coalesce((SELECT jsonb_agg(to_jsonb(c) ORDER BY c.n) FROM compensation c WHERE c.workflow_id = w.workflow_id), '[]') AS compensations,
       coalesce((SELECT jsonb_agg(to_jsonb(o) ORDER BY o.workflow_id)
                   FROM (SELECT x.workflow_id, x.kind, x.release, x.state, x.reason, x.case_body - 'message' AS case_body,
                                count(*) OVER () AS in_all, d.in_doubt
                           FROM workflow x
                           CROSS JOIN LATERAL (SELECT ARRAY(SELECT DISTINCT u FROM effect e, unnest(e.units) u
                                                             WHERE e.workflow_id = x.workflow_id AND e.outcome IS NULL
                                                             ORDER BY u) AS in_doubt) d
                          WHERE x.tenant_id = w.tenant_id AND x.resource = w.resource AND x.workflow_id <> w.workflow_id
                            AND x.control_state NOT IN ('completed', 'stopped')
                            AND (x.review_closed_at IS NULL OR d.in_doubt <> '{}')
                          ORDER BY x.workflow_id LIMIT %(most)s) o), '[]') AS others
  FROM workflow w
 WHERE w.workflow_id = %(workflow_id)s
