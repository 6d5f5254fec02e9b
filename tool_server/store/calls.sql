-- What every family's role may do around a call.

-- The bounds of what follows in the same transaction.
-- name: enter
SELECT calls.enter(%(within)s::jsonb)

-- name: refuse
SELECT r.code FROM calls.enter(%(call)s::jsonb) AS call, calls.refuse(call, %(refusal)s) AS r

-- name: claim
SELECT c.code, c.replayed FROM calls.enter(%(call)s::jsonb) AS call, calls.claim(call) AS c

-- name: disabled
SELECT coalesce(array_agg(s.tool), '{}')
FROM (SELECT DISTINCT ON (tool) tool, enabled FROM calls.tool_switch ORDER BY tool, seq DESC) AS s
WHERE NOT s.enabled

-- What is refused of a token, whatever it asks for; no tool, so none is disabled.
-- name: token_fault
SELECT calls.gate(jsonb_build_object('kid', %(kid)s::text, 'jti', %(jti)s::text))

-- name: forget_tokens
SELECT calls.forget_tokens()

-- name: schema_state
SELECT coalesce(max(version), 0) FROM public.schema_version
