-- Acts that decide: whom a person trusts, what was asked and answered, let in, released, stopped. Whoever writes a row of
-- these tables notes it in the same commit, and the note is sealed with a digest of what the act has written: `columns`.
CREATE TABLE act (
    act_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    relation     text NOT NULL,
    key          jsonb NOT NULL,
    columns      text[] NOT NULL,
    at           timestamptz NOT NULL,
    committed_in xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX act_committed ON act (committed_in);
CREATE INDEX act_of ON act (relation, key);

-- `later` is what another act fills in; `acts` how many there have been for a row.
CREATE FUNCTION acted() RETURNS TABLE (relation text, key text[], later text[], acts text) LANGUAGE sql IMMUTABLE AS $$
    VALUES ('approver_key', ARRAY['kid'], ARRAY['revoked_at', 'revoked_by'], '1 + (t.revoked_at IS NOT NULL)::integer'),
           -- what comes of one is an outcome, and whoever releases it has a line of the audit
           ('compensation', ARRAY['workflow_id', 'n'], ARRAY['state', 'ended_at', 'released_by', 'released_at'], '1'),
           ('approval_request', ARRAY['workflow_id', 'version'], '{}', '1'), ('approval', ARRAY['event_id'], '{}', '1'),
           ('asked_approval', ARRAY['what', 'version'], '{}', '1'), ('external_task', ARRAY['jti'], '{}', '1'),
           ('stop_log', ARRAY['stop_id'], '{}', '1'), ('reconciliation', ARRAY['reconciliation_id'], '{}', '1'),
           ('release_log', ARRAY['act_id'], '{}', '1'), ('rollout_log', ARRAY['act_id'], '{}', '1'),
           ('admission', ARRAY['workflow_id'], '{}', '1'), ('case_check', ARRAY['workflow_id', 'actor'], '{}', '1'),
           -- what excuses missing lines is read from the sealed line itself
           ('seal_cut', ARRAY['n'], '{}', '1'), ('seal_restored', ARRAY['k', 'n', 'seen'], '{}', '1')
$$;
CREATE FUNCTION note_act() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_row   jsonb := to_jsonb(NEW);
    v_later text[] := TG_ARGV[1];
BEGIN
    INSERT INTO act (relation, key, columns, at)
    SELECT TG_TABLE_NAME, (SELECT jsonb_object_agg(c, v_row -> c) FROM unnest(TG_ARGV[0]::text[]) c),
           CASE TG_OP WHEN 'UPDATE' THEN v_later
                ELSE ARRAY(SELECT c FROM jsonb_object_keys(v_row) c WHERE c <> ALL (v_later) ORDER BY c) END, clock_now();
    RETURN NULL;
END $$;
DO $$
DECLARE r record;
BEGIN
    FOR r IN SELECT * FROM acted() WHERE to_regclass(relation) IS NOT NULL LOOP  -- the others are made with their tables
        EXECUTE format('CREATE TRIGGER noted AFTER INSERT ON %I FOR EACH ROW EXECUTE FUNCTION note_act(%L, %L)',
                       r.relation, r.key, r.later);
    END LOOP;
END $$;
CREATE TRIGGER noted_end AFTER UPDATE ON approver_key FOR EACH ROW
    EXECUTE FUNCTION note_act('{kid}', '{revoked_at,revoked_by}');

-- What an act has written, as it stands now; NULL where its row is gone.
CREATE FUNCTION act_row(a act) RETURNS text LANGUAGE plpgsql STABLE SET search_path = public, pg_temp SET timezone = 'UTC' AS $$
DECLARE v jsonb;
BEGIN
    EXECUTE format('SELECT to_jsonb(t) FROM %1$I t, jsonb_populate_record(NULL::%1$I, $1) k WHERE %2$s', a.relation,
        (SELECT string_agg(format('t.%1$I = k.%1$I', c), ' AND ') FROM jsonb_object_keys(a.key) c)) INTO v USING a.key;
    RETURN (SELECT jsonb_object_agg(c, v -> c) FROM unnest(a.columns) c WHERE v IS NOT NULL)::text;
END $$;
-- A row of which no act is noted: nobody has written it by any way that there is.
CREATE FUNCTION unacted() RETURNS TABLE (relation text, key jsonb) LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
DECLARE r record;
BEGIN
    FOR r IN SELECT * FROM acted() LOOP
        RETURN QUERY EXECUTE format('SELECT %1$L, k.key FROM %1$I t, LATERAL (SELECT jsonb_object_agg(c, to_jsonb(t) -> c) AS key
            FROM unnest($1) c) k WHERE (SELECT count(*) FROM act a WHERE a.relation = %1$L AND a.key = k.key) < %2$s',
            r.relation, r.acts) USING r.key;
    END LOOP;
END $$;

REVOKE ALL ON act FROM PUBLIC;
REVOKE ALL ON FUNCTION acted(), note_act(), act_row(act), unacted() FROM PUBLIC;
GRANT SELECT ON act TO host_auditor;
