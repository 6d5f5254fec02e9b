-- The policy family states facts; what they lead to is decided elsewhere.

-- name: check_return_policy
SELECT a.code, a.result FROM calls.enter(%(call)s::jsonb) AS call, calls.answer(
    call, policies.facts(%(tenant)s, %(customer)s, %(resource)s, %(requested_at)s::timestamptz)) AS a
