-- What the return family needs of approvals, inside the transaction of a return.

-- name: trusted
SELECT public.clock_now(), coalesce(jsonb_agg(jsonb_build_object(
    'approver', jsonb_build_object(
        'name', a.approver, 'tenant_id', a.tenant_id,
        'limit', jsonb_build_object('amount', a.limit_amount, 'currency', a.limit_currency),
        'substitutes', to_jsonb(a.substitutes), 'substitutes_after_seconds', a.substitutes_after_seconds),
    'key', jsonb_build_object('kty', 'OKP', 'crv', 'Ed25519', 'x', a.public_key, 'kid', a.kid))), '[]')
FROM returns.trusted_approvers AS a WHERE a.tenant_id = %(tenant)s

-- No row is inserted where the event was used before, or where the key has used another one.
-- name: use_event
INSERT INTO returns.approvals_used (tenant_id, event_id, idempotency_key, approver)
VALUES (%(tenant)s, %(event)s, %(key)s, %(approver)s) ON CONFLICT DO NOTHING
