-- What somebody has put in the place of what was sealed, or of an act, is read without harm: nothing stands for it, and the
-- other lines are still looked at. Otherwise as before.
CREATE OR REPLACE FUNCTION calls.act_row(a calls.act) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    stands jsonb;
BEGIN
    EXECUTE format('SELECT to_jsonb(t) FROM %1$s AS t, jsonb_populate_record(NULL::%1$s, $1) AS k WHERE %2$s',
                   a.relation::regclass, (SELECT string_agg(format('t.%1$I = k.%1$I', c), ' AND ')
                                          FROM jsonb_object_keys(a.key) AS c)) INTO stands USING a.key;
    RETURN (SELECT jsonb_object_agg(c, stands -> c) FROM unnest(a.columns) AS c WHERE stands IS NOT NULL)::text;
EXCEPTION WHEN data_exception OR syntax_error_or_access_rule_violation OR cardinality_violation THEN
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION calls.sealed_lines(after_n bigint, most integer)
    RETURNS TABLE (n bigint, source text, row_id text, sealed text, chained text, erased boolean, stands text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT k.n, k.source, k.row_id, k.sealed, k.chained, false,
           CASE k.source
               WHEN 'call' THEN (SELECT calls.sealed_call(l, k.salt) FROM calls.log AS l WHERE l.seq = i.id)
               WHEN 'act' THEN (SELECT calls.sealed_act(a, k.salt) FROM calls.act AS a
                                WHERE a.act_id = i.id AND calls.act_row(a) IS NOT NULL)
               ELSE (SELECT calls.sealed_kept(w) FROM calls.seal_witness AS w WHERE w.seen = i.id) END
    FROM calls.seal_link AS k,
         LATERAL (SELECT CASE WHEN k.row_id ~ '^[0-9]{1,18}$' THEN k.row_id::bigint END AS id) AS i
    WHERE k.n > after_n ORDER BY k.n LIMIT most
$$;
