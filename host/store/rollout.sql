-- name: take_turn
SELECT pg_advisory_xact_lock(stop_lock_key())

-- name: history
SELECT * FROM rollout_log ORDER BY act_id

-- name: waive_anew
INSERT INTO rollout_log (act, actor, reason, details, at)
SELECT 'waive', %(actor)s, %(reason)s, %(details)s, clock_now()
 WHERE NOT EXISTS (SELECT FROM rollout_log)
RETURNING act_id

-- name: waive
INSERT INTO rollout_log (act, actor, reason, details, at)
SELECT 'waive', %(actor)s, %(reason)s, %(details)s, clock_now()
RETURNING *

-- name: open
INSERT INTO rollout_log (act, stage, releases, actor, reason, details, at)
SELECT 'open', %(stage)s, begun_releases(), %(actor)s, %(reason)s, %(details)s, clock_now()
RETURNING *

-- name: abandon
INSERT INTO rollout_log (act, stage, opening, actor, reason, details, at)
SELECT 'abandon', s.stage, s.opening, %(actor)s, %(reason)s, %(details)s, clock_now() FROM stage_standing s
 WHERE s.stage = %(stage)s
RETURNING *

-- name: pass
INSERT INTO rollout_log (act, stage, opening, releases, cases, compared, untracked, missing, duplicate, uncompensated,
                         checked, wrong, actor, reason, details, at)
SELECT 'pass', s.stage, s.opening, s.releases, s.ended, %(compared)s, %(untracked)s, %(missing)s, %(duplicate)s,
       s.uncompensated, s.checked, s.wrong, %(actor)s, %(reason)s, %(details)s, clock_now()
  FROM stage_standing s
 WHERE s.stage = %(stage)s
RETURNING *

-- name: current_stage
SELECT * FROM stage_standing

-- name: to_check
SELECT a.workflow_id, w.kind, w.tenant_id, w.resource, w.state, a.at,
       ended(w.control_state, w.review_since, w.review_closed_at) AS ended
  FROM admission a JOIN workflow w USING (workflow_id)
 WHERE a.to_check AND NOT EXISTS (SELECT FROM case_check k WHERE k.workflow_id = a.workflow_id)
 ORDER BY a.n LIMIT %(most)s

-- name: sampling
SELECT checked_one_in() AS one_in, incidents() AS incidents,
       (SELECT count(*)::integer FROM admission WHERE opening IS NULL) AS cases,
       (SELECT count(*)::integer FROM case_check) AS checks,
       (SELECT count(*)::integer FROM case_check WHERE verdict = 'wrong') AS wrong

-- name: check
INSERT INTO case_check (workflow_id, actor, verdict, reason, details, at)
SELECT %(workflow_id)s, %(actor)s, %(verdict)s, %(reason)s, %(details)s, clock_now()
RETURNING workflow_id

-- name: tenant
SELECT tenant_id FROM workflow WHERE workflow_id = %(workflow_id)s

-- name: tracked
SELECT EXISTS (SELECT FROM rollout_log WHERE act = 'pass' AND untracked = 0)
    OR coalesce((SELECT act = 'waive' FROM rollout_log ORDER BY act_id DESC LIMIT 1), false)
