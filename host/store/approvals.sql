-- name: keys
SELECT kid, name::text, x FROM approver_key WHERE revoked_at IS NULL ORDER BY name, kid

-- name: trust
SELECT trust_approver(%(kid)s, %(name)s, %(x)s, %(by)s)

-- name: revoke
SELECT revoke_approver(%(kid)s, %(by)s)

-- name: listed
SELECT kid, name::text, x, added_at, added_by, revoked_at, revoked_by
  FROM approver_key
 ORDER BY name, added_at, kid
