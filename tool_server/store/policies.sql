-- The policy family states facts; what they lead to is decided elsewhere.

-- name: check_return_policy
SELECT a.code, a.result FROM calls.answer(
    %(call)s::jsonb, policies.facts(%(tenant)s, %(customer)s, %(resource)s, %(requested_at)s::timestamptz)) AS a
