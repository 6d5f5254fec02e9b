-- Trusting and revoking approvers, as the owner. Rows are added and ended, never changed.

-- One operator at a time; whoever reads does not wait.
-- name: lock_approvers
SELECT pg_advisory_xact_lock(hashtextextended('returns.approvers', 4))

-- What speaks about a key or a person: every row of the key, and the active row of the person.
-- name: speaking
SELECT kid, tenant_id, approver, limit_amount, limit_currency, substitutes, substitutes_after_seconds, trusted_at,
       trusted_by, ended_at, ended_by, ended_how
FROM returns.approvers
WHERE kid = %(kid)s OR (tenant_id = %(tenant)s AND approver = %(approver)s AND ended_at IS NULL)
ORDER BY seq

-- name: listed
SELECT kid, tenant_id, approver, limit_amount, limit_currency, substitutes, substitutes_after_seconds, trusted_at,
       trusted_by, ended_at, ended_by, ended_how
FROM returns.approvers WHERE ended_how IS DISTINCT FROM 'replaced'
ORDER BY tenant_id, approver, seq

-- name: insert_approver
INSERT INTO returns.approvers (kid, public_key, tenant_id, approver, limit_amount, limit_currency, substitutes,
                               substitutes_after_seconds, trusted_by)
VALUES (%(kid)s, %(public_key)s, %(tenant)s, %(approver)s, %(amount)s, %(currency)s, %(substitutes)s::text[],
        %(after)s, %(actor)s)

-- name: end_row
UPDATE returns.approvers SET ended_at = public.clock_now(), ended_by = %(actor)s, ended_how = %(how)s
WHERE kid = %(kid)s AND ended_at IS NULL
