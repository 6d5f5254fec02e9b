-- Loading, as the owner: versions are added and never changed, so a row that is there has to be the row that is given.

-- name: put_rule_sets
INSERT INTO document.rule_sets
SELECT * FROM jsonb_populate_recordset(NULL::document.rule_sets, %(rows)s::jsonb) ON CONFLICT DO NOTHING

-- name: put_aliases
INSERT INTO document.aliases
SELECT * FROM jsonb_populate_recordset(NULL::document.aliases, %(rows)s::jsonb) ON CONFLICT DO NOTHING

-- name: put_cases
INSERT INTO document.cases
SELECT * FROM jsonb_populate_recordset(NULL::document.cases, %(rows)s::jsonb) ON CONFLICT DO NOTHING

-- name: put_documents
INSERT INTO document.documents
SELECT * FROM jsonb_populate_recordset(NULL::document.documents, %(rows)s::jsonb) ON CONFLICT DO NOTHING

-- name: changed_rule_sets
SELECT r.name || '@' || r.version FROM (
    SELECT * FROM jsonb_populate_recordset(NULL::document.rule_sets, %(rows)s::jsonb)
    EXCEPT SELECT * FROM document.rule_sets) AS r ORDER BY 1

-- name: changed_aliases
SELECT r.name || '@' || r.version || ' ' || r.title FROM (
    SELECT * FROM jsonb_populate_recordset(NULL::document.aliases, %(rows)s::jsonb)
    EXCEPT SELECT * FROM document.aliases) AS r ORDER BY 1

-- name: changed_cases
SELECT r.case_id || '@' || r.version FROM (
    SELECT * FROM jsonb_populate_recordset(NULL::document.cases, %(rows)s::jsonb)
    EXCEPT SELECT * FROM document.cases) AS r ORDER BY 1

-- name: changed_documents
SELECT r.case_id || '/' || r.document_id || '@' || r.version FROM (
    SELECT * FROM jsonb_populate_recordset(NULL::document.documents, %(rows)s::jsonb)
    EXCEPT SELECT * FROM document.documents) AS r ORDER BY 1

-- Titles that a rule set which is known does not have.
-- name: grown_rule_sets
SELECT DISTINCT a.name || '@' || a.version FROM jsonb_populate_recordset(NULL::document.aliases, %(rows)s::jsonb) AS a
JOIN document.rule_sets AS r ON (r.tenant_id, r.name, r.version) = (a.tenant_id, a.name, a.version)
WHERE NOT EXISTS (SELECT FROM document.aliases AS k
                  WHERE (k.tenant_id, k.name, k.version, k.title) = (a.tenant_id, a.name, a.version, a.title))
ORDER BY 1

-- Documents that would turn up in a version of a case that is known: the one they are given with, or a newer one.
-- name: grown_cases
SELECT DISTINCT c.case_id || '@' || c.version
FROM jsonb_to_recordset(%(rows)s::jsonb) AS d (
    tenant_id text, case_id text, document_id text, version integer, case_version integer)
JOIN document.cases AS c ON (c.tenant_id, c.case_id) = (d.tenant_id, d.case_id) AND c.version >= d.case_version
WHERE NOT EXISTS (SELECT FROM document.documents AS k
                  WHERE (k.tenant_id, k.case_id, k.document_id, k.version)
                      = (d.tenant_id, d.case_id, d.document_id, d.version))
ORDER BY 1
