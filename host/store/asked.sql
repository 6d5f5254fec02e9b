-- name: keep
INSERT INTO asked_approval (what, version, asked, at)
SELECT %(what)s, %(version)s, %(asked)s, clock_now()
ON CONFLICT (what, version) DO NOTHING

-- name: kept
SELECT asked FROM asked_approval WHERE what = %(what)s AND version = %(version)s
