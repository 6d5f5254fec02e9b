-- name: release
SELECT release_compensation(%(workflow_id)s, %(by)s, %(details)s)
