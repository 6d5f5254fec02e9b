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
