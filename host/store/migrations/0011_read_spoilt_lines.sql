-- What somebody has put in the place of what was sealed, or of an act, is read without harm: nothing stands for it, and the
-- other lines are still looked at. Otherwise as before.
CREATE OR REPLACE FUNCTION act_row(a act) RETURNS text LANGUAGE plpgsql STABLE SET search_path = public, pg_temp SET timezone = 'UTC' AS $$
DECLARE v jsonb;
BEGIN
    EXECUTE format('SELECT to_jsonb(t) FROM %1$I t, jsonb_populate_record(NULL::%1$I, $1) k WHERE %2$s', a.relation,
        (SELECT string_agg(format('t.%1$I = k.%1$I', c), ' AND ') FROM jsonb_object_keys(a.key) c)) INTO v USING a.key;
    RETURN (SELECT jsonb_object_agg(c, v -> c) FROM unnest(a.columns) c WHERE v IS NOT NULL)::text;
EXCEPTION WHEN data_exception OR syntax_error_or_access_rule_violation OR cardinality_violation THEN
    RETURN NULL;
END $$;
CREATE FUNCTION history_as_sealed(p_sealed text, p_salt uuid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
DECLARE v jsonb;
BEGIN
    v := p_sealed::jsonb;
    RETURN sealed_history((v ->> 'workflow_id')::uuid, (v ->> 'checkpoints')::integer, (v ->> 'decisions')::integer,
                          ARRAY(SELECT jsonb_array_elements_text(v -> 'closed')), p_salt);
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION sealed_lines(p_after bigint, p_most integer)
RETURNS TABLE (n bigint, source text, row_id text, sealed text, chained text, erased boolean, stands text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT l.n, l.source, l.row_id, l.sealed, l.chained::text, l.salt IS NULL AND l.source = 'audit',
           CASE l.source WHEN 'audit' THEN (SELECT sealed_audit(a, l.salt) FROM audit a WHERE a.audit_id = i.id)
                WHEN 'act' THEN (SELECT sealed_act(a, l.salt) FROM act a WHERE a.act_id = i.id AND act_row(a) IS NOT NULL)
                WHEN 'kept' THEN (SELECT sealed_kept(w) FROM seal_witness w WHERE w.seen = i.id)
                WHEN 'history' THEN history_as_sealed(l.sealed, l.salt) END
      FROM (SELECT * FROM seal_link k WHERE k.n > p_after ORDER BY k.n LIMIT p_most) l,
           LATERAL (SELECT CASE WHEN l.row_id ~ '^[0-9]{1,18}$' THEN l.row_id::bigint END AS id) i
     ORDER BY l.n
$$;
REVOKE ALL ON FUNCTION history_as_sealed(text, uuid) FROM PUBLIC;
