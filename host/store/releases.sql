-- name: begins_under
SELECT begins_under(%(kind)s)

-- name: take_turn
SELECT pg_advisory_xact_lock(stop_lock_key())

-- name: record
INSERT INTO release_log (act, kind, release, report_sha256, build, evaluated_at, gate, actor, reason, details, at)
SELECT 'record', %(kind)s, %(release)s, %(report_sha256)s, %(build)s, %(evaluated_at)s, %(gate)s, %(actor)s, %(reason)s,
       %(details)s, clock_now()
RETURNING *

-- name: last_passed
SELECT * FROM release_log
 WHERE act = 'record' AND kind = %(kind)s AND release = ANY (%(carried)s::text[])
   AND release IS DISTINCT FROM begins_under(%(kind)s)
 ORDER BY act_id DESC LIMIT 1

-- name: roll_back
INSERT INTO release_log (act, kind, release, left_release, rests_on, actor, reason, details, at)
SELECT 'rollback', %(kind)s::text, %(release)s, begins_under(%(kind)s::text), %(rests_on)s, %(actor)s, %(reason)s, %(details)s,
       clock_now()
RETURNING *

-- name: history
SELECT * FROM release_log ORDER BY act_id

-- name: open_under
SELECT kind, release, count(*)::integer AS cases FROM workflow
 WHERE control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed') GROUP BY kind, release ORDER BY kind, release
