-- name: find
-- Whatever names a workflow: its own id, its request's, a step's, a call's, a token's, a return's or a message's (with or
-- without <>).
SELECT DISTINCT workflow_id
  FROM (SELECT workflow_id FROM workflow WHERE workflow_id = %(workflow_id)s::uuid AND %(step)s::integer IS NULL
        UNION ALL
        SELECT workflow_id FROM workflow WHERE request_id = %(name)s
        UNION ALL
        SELECT workflow_id FROM call WHERE workflow_id = %(workflow_id)s::uuid AND step = %(step)s::integer
        UNION ALL
        SELECT workflow_id FROM call WHERE call_id = %(name)s
        UNION ALL
        SELECT workflow_id FROM attempt WHERE jti = %(name)s
        UNION ALL
        SELECT workflow_id FROM effect WHERE external_id IN (%(name)s, '<' || %(name)s || '>')) found
 ORDER BY workflow_id DESC LIMIT %(most)s

-- name: matches
-- What tells workflows apart that share a name: where each stands, and the call of that name where it is a call's.
SELECT w.workflow_id, w.state, c.step_id, c.tool
  FROM workflow w LEFT JOIN call c ON c.workflow_id = w.workflow_id AND c.call_id = %(name)s
 WHERE w.workflow_id = ANY(%(found)s) ORDER BY w.workflow_id DESC

-- name: record
-- One statement, so that the record is of one instant. The customer's own text stays where it is.
SELECT to_jsonb(w) - 'body_sha256' || jsonb_build_object('case_body', w.case_body - 'message') AS workflow,
       length(w.case_body ->> 'message') AS message_length,
       encode(sha256(convert_to(w.case_body ->> 'message', 'UTF8')), 'hex') AS message_sha256,
       coalesce((SELECT jsonb_agg(jsonb_build_object('seq', p.seq, 'at', p.at, 'reason', p.reason, 'evidence', p.evidence,
                                                     'offered', encode(p.offered, 'hex'), 'said', p.said)
                                  || to_jsonb(m) ORDER BY p.seq)
                   FROM checkpoint p JOIN legal_transition m USING (move_id) WHERE p.workflow_id = w.workflow_id), '[]') AS checkpoints,
       coalesce((SELECT jsonb_object_agg(encode(o.sha256, 'hex'), o.definitions)
                   FROM offer o WHERE o.sha256 IN (SELECT p.offered FROM checkpoint p WHERE p.workflow_id = w.workflow_id)), '{}') AS offers,
       coalesce((SELECT jsonb_agg(to_jsonb(c) ORDER BY c.step) FROM call c WHERE c.workflow_id = w.workflow_id), '[]') AS calls,
       coalesce((SELECT jsonb_agg(to_jsonb(a) ORDER BY a.step, a.n) FROM attempt a WHERE a.workflow_id = w.workflow_id), '[]') AS attempts,
       coalesce((SELECT jsonb_agg(to_jsonb(e) ORDER BY e.step, e.attempt) FROM effect e WHERE e.workflow_id = w.workflow_id), '[]') AS effects,
       coalesce((SELECT jsonb_agg(to_jsonb(d) - 'committed_in' ORDER BY d.n) FROM decision d WHERE d.workflow_id = w.workflow_id), '[]') AS decisions,
       coalesce((SELECT jsonb_agg(to_jsonb(r) ORDER BY r.n) FROM refusal r WHERE r.workflow_id = w.workflow_id), '[]') AS refusals,
       coalesce((SELECT jsonb_agg(to_jsonb(u) ORDER BY u.audit_id) FROM audit u WHERE u.workflow_id = w.workflow_id), '[]') AS audit,
       coalesce((SELECT jsonb_agg(to_jsonb(r) - 'workflow_id'
                                  || jsonb_build_object('event_id', a.event_id, 'approver', a.approver, 'decision', a.decision,
                                                        'reason', a.reason, 'decided_at', a.decided_at,
                                                        'approval_seconds', a.approval_seconds) ORDER BY r.version)
                   FROM approval_request r LEFT JOIN approval a USING (workflow_id, version)
                  WHERE r.workflow_id = w.workflow_id), '[]') AS approvals,
       coalesce((SELECT jsonb_agg(to_jsonb(c) ORDER BY c.n) FROM compensation c WHERE c.workflow_id = w.workflow_id), '[]') AS compensations,
       w.lease_owner IS NOT NULL AS held,
       -- by which stop it is held: where all of them are lifted, until it is released by parts
       CASE WHEN w.wake_at IS NULL OR coalesce(w.wake_reason NOT IN ('stopped', 'stopped_reads'), true) THEN NULL
            WHEN w.wake_reason = 'stopped_reads' AND stopped('reads') THEN 'reads' WHEN stopped('updates') THEN 'updates'
            WHEN stopped('reads') THEN 'reads' WHEN stopped('new_work') THEN 'new_work' ELSE 'parallel' END AS held_by,
       -- who asked anew did so under the one name that the old case gives, which finds it without a search
       (SELECT n.workflow_id FROM workflow n WHERE n.tenant_id = w.tenant_id AND n.supersedes = w.workflow_id
           AND n.request_id = 'reapply.' || w.workflow_id) AS superseded_by
  FROM workflow w
 WHERE w.workflow_id = %(workflow_id)s

-- name: position
SELECT state, control_state, reason, wake_reason, lease_owner, seq, version,
       coalesce(lease_until > clock_now(), false) AS leased,
       extract(epoch FROM wake_at - clock_now())::float8 AS due_in_seconds
  FROM workflow
 WHERE workflow_id = %(workflow_id)s

-- name: timeline
-- A proposal that becomes a call has the reason `proposed`, or the rule that asks for an approval; one that is refused
-- has the code of its fault. So the moves themselves say which step and which send of it each of them belongs to.
SELECT t.seq, t.at, t.control_from, t.control_to, t.business_to AS state, t.event, t.actor, t.reason, t.evidence,
       c.tool, t.send
  FROM (SELECT s.*, count(*) FILTER (WHERE s.event = 'dispatched') OVER (PARTITION BY s.step ORDER BY s.seq) AS send
          FROM (SELECT p.workflow_id, p.seq, p.at, p.reason, p.evidence, m.control_from, m.control_to, m.business_to,
                       m.event, m.actor,
                       count(*) FILTER (WHERE m.control_from = 'planning' AND m.control_to = 'tool_proposed'
                                          AND (m.event <> 'proposed' OR p.reason = 'proposed')) OVER (ORDER BY p.seq) AS step
                  FROM checkpoint p JOIN legal_transition m USING (move_id)
                 WHERE p.workflow_id = %(workflow_id)s) s) t
  LEFT JOIN call c ON c.workflow_id = t.workflow_id AND c.step = t.step
       AND (t.control_from IN ('tool_proposed', 'tool_authorized', 'tool_running', 'observing')
            OR t.control_to = 'tool_proposed')
       AND NOT (t.event IN ('proposed', 'refused') AND t.reason <> t.event)
 WHERE t.seq > %(after)s
 ORDER BY t.seq

-- name: page
-- Ids sort by time: the newest first is the primary key backwards. What holds a case is found as for its record.
SELECT workflow_id, kind, tenant_id, resource, state, control_state, reason, wake_reason, review_closed_at, created_at,
       updated_at, lease_owner IS NOT NULL AS held, greatest(extract(epoch FROM clock_now() - updated_at), 0)::float8 AS age_seconds, NULL AS effects,
       NULL AS alerts,
       CASE WHEN wake_at IS NULL OR coalesce(wake_reason NOT IN ('stopped', 'stopped_reads'), true) THEN NULL
            WHEN wake_reason = 'stopped_reads' AND stopped('reads') THEN 'reads' WHEN stopped('updates') THEN 'updates'
            WHEN stopped('reads') THEN 'reads' WHEN stopped('new_work') THEN 'new_work' ELSE 'parallel' END AS held_by
  FROM workflow
 WHERE workflow_id < %(before)s AND (%(state)s::text IS NULL OR state = %(state)s)
   AND (%(kind)s::text IS NULL OR kind = %(kind)s)
 ORDER BY workflow_id DESC LIMIT %(most)s

-- name: exceptions
-- Handed to a person and not closed, the longest waiting first, with what was done outside.
SELECT w.workflow_id, w.kind, w.tenant_id, w.resource, w.state, w.control_state, w.reason, w.wake_reason, w.review_closed_at,
       w.created_at, w.updated_at, false AS held, greatest(extract(epoch FROM clock_now() - w.review_since), 0)::float8 AS age_seconds,
       coalesce((SELECT jsonb_agg(jsonb_build_object('name', e.name, 'outcome', e.outcome, 'external_id', e.external_id,
                                                     'verified', e.verified_at IS NOT NULL) ORDER BY e.step, e.attempt)
                   FROM effect e WHERE e.workflow_id = w.workflow_id), '[]') AS effects,
       coalesce((SELECT jsonb_agg(u.result ORDER BY u.audit_id)
                   FROM audit u WHERE u.workflow_id = w.workflow_id AND u.action = 'alert'), '[]') AS alerts, NULL AS held_by
  FROM workflow w
 WHERE w.review_since IS NOT NULL AND w.review_closed_at IS NULL
 ORDER BY w.review_since, w.workflow_id LIMIT %(most)s

-- name: exception_reasons
SELECT reason, count(*) AS cases FROM workflow WHERE review_since IS NOT NULL AND review_closed_at IS NULL GROUP BY reason

-- name: entries
-- The ledger as it is exported: one row per call, newest workflow first.
SELECT c.workflow_id, c.step_id, c.call_id, w.tenant_id, w.principal AS subject, c.tool, c.contract_version,
       (SELECT coalesce(jsonb_agg(k ORDER BY k), '[]') FROM jsonb_object_keys(c.arguments) k) AS arguments,
       c.fingerprint, c.execution_state, c.error ->> 'code' AS error, c.result ->> 'evidence_ref' AS evidence_ref,
       greatest(extract(epoch FROM c.returned_at - c.started_at), 0)::float8 * 1000 AS latency_ms,
       (SELECT count(*) FROM attempt a WHERE a.workflow_id = c.workflow_id AND a.step = c.step AND a.purpose = 'call') AS attempts,
       (SELECT jsonb_agg(a.started_at ORDER BY a.n) FROM attempt a
         WHERE a.workflow_id = c.workflow_id AND a.step = c.step AND a.purpose = 'call') AS attempted_at,
       (SELECT coalesce(jsonb_agg(a.jti ORDER BY a.n), '[]') FROM attempt a
         WHERE a.workflow_id = c.workflow_id AND a.step = c.step) AS jtis,
       (SELECT to_jsonb(e) FROM effect e WHERE e.workflow_id = c.workflow_id AND e.step = c.step
         ORDER BY e.attempt DESC LIMIT 1) AS effect,
       (SELECT x.state FROM compensation x WHERE x.workflow_id = c.workflow_id AND x.step = c.step
         ORDER BY x.n DESC LIMIT 1) AS compensation_state, c.proposed_at, c.started_at, c.verified_at
  FROM call c JOIN workflow w USING (workflow_id)
 WHERE (%(workflow_id)s::uuid IS NULL OR c.workflow_id = %(workflow_id)s)
 ORDER BY c.workflow_id DESC, c.step DESC LIMIT %(most)s

-- name: rights
-- The engine's role reads tables and writes through functions; one that can write by hand, or is the auditor, is not it.
SELECT current_user::text AS role,
       NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
       AND NOT has_table_privilege('workflow', 'INSERT, UPDATE, DELETE')
       AND has_function_privilege('commit_steps(jsonb)', 'EXECUTE') AS narrow
