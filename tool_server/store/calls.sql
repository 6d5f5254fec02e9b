-- What every family's role may do around a call.

-- name: refuse
SELECT code FROM calls.refuse(%(call)s::jsonb, %(refusal)s)

-- name: claim
SELECT code, replayed FROM calls.claim(%(call)s::jsonb)

-- name: disabled
SELECT coalesce(array_agg(s.tool), '{}')
FROM (SELECT DISTINCT ON (tool) tool, enabled FROM calls.tool_switch ORDER BY tool, seq DESC) AS s
WHERE NOT s.enabled

-- name: forget_tokens
SELECT calls.forget_tokens()

-- name: schema_state
SELECT coalesce(max(version), 0) FROM public.schema_version
