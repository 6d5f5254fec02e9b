-- name: keys
SELECT kid, name::text, x FROM approver_key WHERE revoked_at IS NULL ORDER BY name, kid

-- name: trust
SELECT trust_approver(%(kid)s, %(name)s, %(x)s, %(by)s)
