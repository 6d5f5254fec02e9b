-- The operator's switches: rows are added, never changed, so that the history of both stays.

-- name: switch_tool
INSERT INTO calls.tool_switch (tool, enabled, actor) VALUES (%(tool)s, %(enabled)s, %(actor)s)

-- name: revoke
INSERT INTO calls.revocation (kind, value, actor) VALUES (%(kind)s, %(value)s, %(actor)s) ON CONFLICT DO NOTHING

-- name: kid_has_called
SELECT EXISTS (SELECT FROM calls.log WHERE kid = %(value)s)

-- name: jti_has_called
SELECT EXISTS (SELECT FROM calls.log WHERE jti = %(value)s)

-- name: switched
SELECT DISTINCT ON (tool) tool, enabled, actor, at FROM calls.tool_switch ORDER BY tool, seq DESC
