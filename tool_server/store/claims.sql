-- The document family reads one case of the token's own tenant and claimant. It states facts and gives no verdict.

-- name: get_case_snapshot
SELECT a.code, a.result FROM calls.enter(%(call)s::jsonb) AS call, calls.answer(call, (
    SELECT jsonb_build_object(
        'case_id', c.case_id, 'version', c.version, 'rule_set', c.rule_set,
        'received_document_codes', (
            SELECT coalesce(jsonb_agg(DISTINCT d.code ORDER BY d.code), '[]') FROM document.current_documents AS d
            WHERE d.tenant_id = c.tenant_id AND d.case_id = c.case_id AND d.code IS NOT NULL),
        'evidence_ref', 'case://' || c.case_id || '@' || c.version)
    FROM document.current_cases AS c
    WHERE c.tenant_id = %(tenant)s AND c.claimant_id = %(customer)s AND c.case_id = %(resource)s)) AS a

-- The version is the one that was asked for, and no other one is ever answered with; another case's is not found.
-- name: get_policy_requirements
SELECT a.code, a.result FROM calls.enter(%(call)s::jsonb) AS call, calls.answer(call, (
    SELECT jsonb_build_object(
        'case_id', c.case_id, 'rule_set', c.rule_set, 'owner', r.owner,
        'in_effect', m.moment >= r.effective_from AND (r.effective_until IS NULL OR m.moment < r.effective_until),
        'required_document_codes', to_jsonb(r.required_document_codes),
        'evidence_ref', 'policy://' || c.rule_set)
    FROM document.current_cases AS c
    JOIN document.rule_sets AS r ON (r.tenant_id, r.name, r.version) = (c.tenant_id, c.rule_name, c.rule_version)
    CROSS JOIN LATERAL (SELECT coalesce(%(requested_at)s::timestamptz, public.clock_now()) AS moment) AS m
    WHERE c.tenant_id = %(tenant)s AND c.claimant_id = %(customer)s AND c.case_id = %(resource)s
      AND c.rule_set = %(rule_set)s)) AS a

-- name: list_unclassified_documents
SELECT a.code, a.result FROM calls.enter(%(call)s::jsonb) AS call, calls.answer(call, (
    SELECT jsonb_build_object(
        'case_id', c.case_id, 'version', c.version,
        'documents', (
            SELECT coalesce(jsonb_agg(jsonb_build_object('document_id', d.document_id, 'version', d.version,
                                                         'title', d.title) ORDER BY d.document_id), '[]')
            FROM document.current_documents AS d
            WHERE d.tenant_id = c.tenant_id AND d.case_id = c.case_id AND d.code IS NULL),
        'evidence_ref', 'case://' || c.case_id || '@' || c.version)
    FROM document.current_cases AS c
    WHERE c.tenant_id = %(tenant)s AND c.claimant_id = %(customer)s AND c.case_id = %(resource)s)) AS a

-- A rule of the case's own version comes first; where there is only one of another version that is told, not hidden.
-- name: resolve_document_alias
SELECT a.code, a.result FROM calls.enter(%(call)s::jsonb) AS call, calls.answer(call, (
    SELECT jsonb_build_object(
        'case_id', c.case_id, 'document_id', d.document_id, 'resolved', r.canonical_code IS NOT NULL,
        'canonical_code', r.canonical_code, 'rule_version', r.version,
        'confidence', CASE WHEN r.canonical_code IS NULL THEN 0.0 ELSE 1.0 END,
        'evidence_ref', 'evidence://' || c.case_id || '/' || d.document_id || '@' || d.version)
    FROM document.current_cases AS c
    JOIN document.current_documents AS d USING (tenant_id, case_id)
    CROSS JOIN LATERAL (SELECT coalesce(%(requested_at)s::timestamptz, public.clock_now()) AS moment) AS m
    LEFT JOIN LATERAL (
        SELECT s.canonical_code, s.version FROM document.aliases AS s
        WHERE s.tenant_id = c.tenant_id AND s.name = c.rule_name AND s.title = d.title
          AND m.moment >= s.effective_from AND (s.effective_until IS NULL OR m.moment < s.effective_until)
        ORDER BY s.version = c.rule_version DESC, s.effective_from DESC, s.version DESC LIMIT 1) AS r ON true
    WHERE c.tenant_id = %(tenant)s AND c.claimant_id = %(customer)s AND c.case_id = %(resource)s
      AND d.document_id = %(document_id)s AND d.code IS NULL)) AS a
