-- An operator's acts are sealed as calls are: which tool is off, which key or token is revoked, who is trusted to approve.
-- Whoever writes a row of these tables notes it in the same commit, and the note is sealed with a digest of what the act
-- has written: `columns`.
CREATE TABLE calls.act (
    act_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    relation text NOT NULL,
    key jsonb NOT NULL,
    columns text[] NOT NULL,
    at timestamptz NOT NULL DEFAULT public.clock_now(),
    committed_in xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX act_committed ON calls.act (committed_in);
CREATE INDEX act_of ON calls.act (relation, key);

-- `later` is what another act fills in; `acts` how many there have been for a row.
CREATE FUNCTION calls.acted() RETURNS TABLE (relation text, key text[], later text[], acts text) LANGUAGE sql IMMUTABLE AS $$
    VALUES ('calls.tool_switch', ARRAY['seq'], '{}'::text[], '1'), ('calls.revocation', ARRAY['kind', 'value'], '{}', '1'),
           ('returns.approvers', ARRAY['seq'], ARRAY['ended_at', 'ended_by', 'ended_how'],
            '1 + (t.ended_at IS NOT NULL)::integer'),
           ('calls.seal_cut', ARRAY['n'], '{}', '1'), ('calls.seal_restored', ARRAY['k'], '{}', '1')
$$;
CREATE FUNCTION calls.note_act() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    written jsonb := to_jsonb(NEW);
    later text[] := TG_ARGV[1];
BEGIN
    INSERT INTO calls.act (relation, key, columns)
    SELECT TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME,
           (SELECT jsonb_object_agg(c, written -> c) FROM unnest(TG_ARGV[0]::text[]) AS c),
           CASE TG_OP WHEN 'UPDATE' THEN later
                ELSE ARRAY(SELECT c FROM jsonb_object_keys(written) AS c WHERE c <> ALL (later) ORDER BY c) END;
    RETURN NULL;
END $$;
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT * FROM calls.acted() LOOP
        -- what stands already is sealed from here on
        EXECUTE format('INSERT INTO calls.act (relation, key, columns)
            SELECT %1$L, (SELECT jsonb_object_agg(c, to_jsonb(t) -> c) FROM unnest($1) AS c),
                   ARRAY(SELECT c FROM jsonb_object_keys(to_jsonb(t)) AS c WHERE c <> ALL ($2) ORDER BY c) FROM %1$s AS t',
            r.relation) USING r.key, r.later;
        EXECUTE format('CREATE TRIGGER noted AFTER INSERT ON %s FOR EACH ROW EXECUTE FUNCTION calls.note_act(%L, %L)',
                       r.relation, r.key, r.later);
    END LOOP;
    INSERT INTO calls.act (relation, key, columns)
    SELECT 'returns.approvers', jsonb_build_object('seq', seq), '{ended_at,ended_by,ended_how}' FROM returns.approvers
    WHERE ended_at IS NOT NULL;
END $$;
CREATE TRIGGER noted_end AFTER UPDATE ON returns.approvers FOR EACH ROW
    EXECUTE FUNCTION calls.note_act('{seq}', '{ended_at,ended_by,ended_how}');

-- What an act has written, as it stands now; NULL where its row is gone.
CREATE FUNCTION calls.act_row(a calls.act) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    stands jsonb;
BEGIN
    EXECUTE format('SELECT to_jsonb(t) FROM %1$s AS t, jsonb_populate_record(NULL::%1$s, $1) AS k WHERE %2$s',
                   a.relation::regclass, (SELECT string_agg(format('t.%1$I = k.%1$I', c), ' AND ')
                                          FROM jsonb_object_keys(a.key) AS c)) INTO stands USING a.key;
    RETURN (SELECT jsonb_object_agg(c, stands -> c) FROM unnest(a.columns) AS c WHERE stands IS NOT NULL)::text;
END $$;
CREATE FUNCTION calls.sealed_act(a calls.act, salt uuid) RETURNS text LANGUAGE sql STABLE
    RETURN jsonb_build_object('id', a.act_id, 'relation', a.relation, 'columns', a.columns,
        'key', (SELECT jsonb_object_agg(k, CASE jsonb_typeof(v) WHEN 'number' THEN v
                                                ELSE to_jsonb(calls.sealed_value(v #>> '{}', salt)) END)
                FROM jsonb_each(a.key) AS e(k, v)),
        'row', 'sha256:' || calls.sha256_hex(salt || ' ' || calls.act_row(a)), 'at', calls.utc_text(a.at),
        'committed_in', a.committed_in::text)::text;
-- A row of which no act is noted: nobody has written it by any way that there is.
CREATE FUNCTION calls.unacted() RETURNS TABLE (relation text, key jsonb)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT * FROM calls.acted() LOOP
        RETURN QUERY EXECUTE format('SELECT %1$L, k.key FROM %1$s AS t, LATERAL (
            SELECT jsonb_object_agg(c, to_jsonb(t) -> c) AS key FROM unnest($1) AS c) AS k
            WHERE (SELECT count(*) FROM calls.act AS a WHERE a.relation = %1$L AND a.key = k.key) < %2$s',
            r.relation, r.acts) USING r.key;
    END LOOP;
END $$;

ALTER TABLE calls.seal_link DROP CONSTRAINT seal_link_source_check,
    ADD CONSTRAINT seal_link_source_check CHECK (source IN ('call', 'act', 'kept'));

-- As before, and in addition: acts.
CREATE OR REPLACE FUNCTION calls.seal_batch(most integer)
    RETURNS TABLE (chain_id uuid, n bigint, chained text, horizon text, whole boolean, at text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    since xid8;
    until xid8 := pg_snapshot_xmin(pg_current_snapshot());  -- before anything is read
    last_n bigint;
    last_hash text;
    seen integer := 0;
    salted uuid;
    body text;
    r record;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'this is done in read committed transactions alone';
    END IF;
    IF NOT pg_try_advisory_xact_lock(7265637402) THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM calls.seal_chain) THEN
        INSERT INTO calls.seal_chain DEFAULT VALUES;
    END IF;
    SELECT h.horizon INTO since FROM calls.seal_head AS h ORDER BY h.n DESC LIMIT 1;
    IF since IS NULL OR since > until THEN  -- none yet, or another cluster's numbers: then all is looked through
        since := '0';
    END IF;
    SELECT l.n, l.chained INTO last_n, last_hash
    FROM (SELECT n, chained FROM calls.seal_link UNION ALL SELECT n, chained FROM calls.seal_cut) AS l
    ORDER BY l.n DESC LIMIT 1;
    IF last_n IS NULL THEN
        last_n := 0;
        last_hash := calls.sha256_hex('kessai-seal-1 tools ' || (SELECT c.chain_id FROM calls.seal_chain AS c));
    END IF;
    FOR r IN SELECT * FROM (
                 SELECT 'call' AS source, l.seq AS id, l.committed_in FROM calls.log AS l WHERE l.committed_in >= since
                 UNION ALL SELECT 'act', a.act_id, a.committed_in FROM calls.act AS a WHERE a.committed_in >= since) AS x
             WHERE NOT EXISTS (SELECT FROM calls.seal_link AS k WHERE k.source = x.source AND k.row_id = x.id::text)
             ORDER BY x.committed_in, x.source, x.id LIMIT most LOOP
        salted := gen_random_uuid();
        last_n := last_n + 1;
        seen := seen + 1;
        body := CASE r.source WHEN 'call' THEN (SELECT calls.sealed_call(l, salted) FROM calls.log AS l WHERE l.seq = r.id)
                     ELSE (SELECT calls.sealed_act(a, salted) FROM calls.act AS a WHERE a.act_id = r.id) END;
        last_hash := calls.sha256_hex(concat_ws(' ', last_hash, last_n, r.source, r.id, calls.sha256_hex(body)));
        INSERT INTO calls.seal_link (n, source, row_id, salt, sealed, chained)
        VALUES (last_n, r.source, r.id::text, salted, body, last_hash);
        IF seen = most THEN
            until := least(until, r.committed_in);
        END IF;
    END LOOP;
    IF seen > 0 THEN
        FOR r IN SELECT w AS line, w.seen FROM calls.seal_witness AS w
                 WHERE w.seen > coalesce((SELECT max(k.row_id::bigint) FROM calls.seal_link AS k WHERE k.source = 'kept'),
                                         -- what was cut is not sealed again
                                         (SELECT max(x.seen) FROM calls.seal_witness AS x, calls.seal_cut AS c
                                          WHERE x.at <= c.at), 0)
                 ORDER BY w.seen LIMIT most LOOP
            last_n := last_n + 1;
            body := calls.sealed_kept(r.line);
            last_hash := calls.sha256_hex(concat_ws(' ', last_hash, last_n, 'kept', r.seen, calls.sha256_hex(body)));
            INSERT INTO calls.seal_link (n, source, row_id, salt, sealed, chained)
            VALUES (last_n, 'kept', r.seen::text, NULL, body, last_hash);
        END LOOP;
        INSERT INTO calls.seal_head (n, chained, horizon, whole, at)
        VALUES (last_n, last_hash, until, seen < most, public.clock_now());
    END IF;
    RETURN QUERY SELECT c.chain_id, h.n, h.chained, h.horizon::text, h.whole, calls.utc_text(h.at)
                 FROM calls.seal_head AS h, calls.seal_chain AS c WHERE h.signed IS NULL ORDER BY h.n;
END $$;

CREATE OR REPLACE FUNCTION calls.sealed_lines(after_n bigint, most integer)
    RETURNS TABLE (n bigint, source text, row_id text, sealed text, chained text, erased boolean, stands text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT k.n, k.source, k.row_id, k.sealed, k.chained, false,
           CASE k.source
               WHEN 'call' THEN (SELECT calls.sealed_call(l, k.salt) FROM calls.log AS l WHERE l.seq = k.row_id::bigint)
               WHEN 'act' THEN (SELECT calls.sealed_act(a, k.salt) FROM calls.act AS a
                                WHERE a.act_id = k.row_id::bigint AND calls.act_row(a) IS NOT NULL)
               ELSE (SELECT calls.sealed_kept(w) FROM calls.seal_witness AS w WHERE w.seen = k.row_id::bigint) END
    FROM calls.seal_link AS k WHERE k.n > after_n ORDER BY k.n LIMIT most
$$;
CREATE OR REPLACE FUNCTION calls.unsealed_lines()
    RETURNS TABLE (source text, row_id text, behind boolean, seconds double precision)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT x.source, x.id::text,
           x.committed_in < coalesce((SELECT h.horizon FROM calls.seal_head AS h ORDER BY h.n DESC LIMIT 1), '0'),
           extract(epoch FROM public.clock_now() - x.at)::double precision
    FROM (SELECT 'call' AS source, l.seq AS id, l.committed_in, l.at FROM calls.log AS l
          UNION ALL SELECT 'act', a.act_id, a.committed_in, a.at FROM calls.act AS a) AS x
    WHERE NOT EXISTS (SELECT FROM calls.seal_link AS k WHERE k.source = x.source AND k.row_id = x.id::text)
    UNION ALL
    SELECT u.relation, (SELECT string_agg(v, '/' ORDER BY k) FROM jsonb_each_text(u.key) AS e(k, v)), true, 0
    FROM calls.unacted() AS u
    ORDER BY 3 DESC, 4 DESC LIMIT 1000
$$;
-- How far behind the seals are, in seconds: the oldest line without a signed seal, our newest head, the newest of a host's.
CREATE FUNCTION calls.seal_standing() RETURNS TABLE (waits double precision, signed double precision, kept double precision)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH since AS (SELECT coalesce((SELECT h.horizon FROM calls.seal_head AS h ORDER BY h.n DESC LIMIT 1), '0') AS horizon)
    SELECT extract(epoch FROM public.clock_now() - (SELECT min(x.at) FROM (
               SELECT l.at FROM calls.log AS l, since WHERE l.committed_in >= since.horizon
                   AND NOT EXISTS (SELECT FROM calls.seal_link AS k WHERE k.source = 'call' AND k.row_id = l.seq::text)
               UNION ALL SELECT a.at FROM calls.act AS a, since WHERE a.committed_in >= since.horizon
                   AND NOT EXISTS (SELECT FROM calls.seal_link AS k WHERE k.source = 'act' AND k.row_id = a.act_id::text)
               UNION ALL SELECT h.at FROM calls.seal_head AS h WHERE h.signed IS NULL) AS x))::double precision,
           extract(epoch FROM public.clock_now() - (SELECT h.at FROM calls.seal_head AS h WHERE h.signed IS NOT NULL
                                                    ORDER BY h.n DESC LIMIT 1))::double precision,
           extract(epoch FROM public.clock_now() - (SELECT w.at FROM calls.seal_witness AS w
                                                    ORDER BY w.seen DESC LIMIT 1))::double precision
$$;

CREATE OR REPLACE FUNCTION calls.cut_record(before timestamptz, actor text) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head calls.seal_head;
BEGIN
    PERFORM pg_advisory_xact_lock(7265637402);
    -- a clock that was wrong for a while makes no head old that is none
    SELECT * INTO head FROM calls.seal_head AS h WHERE h.signed IS NOT NULL AND h.at < before
        AND NOT EXISTS (SELECT FROM calls.seal_head AS e WHERE e.n < h.n AND e.at >= before) ORDER BY h.n DESC LIMIT 1;
    IF NOT FOUND OR EXISTS (SELECT FROM calls.seal_cut AS c WHERE c.n >= head.n) THEN
        RETURN 0;
    END IF;
    INSERT INTO calls.seal_cut (n, chained, signed, by, at)
    VALUES (head.n, head.chained, head.signed, actor, public.clock_now());
    DELETE FROM calls.log AS l USING calls.seal_link AS k WHERE k.source = 'call' AND k.n <= head.n AND l.seq = k.row_id::bigint;
    -- the rows of acts stay, since they decide on; what is as it was sealed is sealed anew
    INSERT INTO calls.act (relation, key, columns)
    SELECT a.relation, a.key, a.columns FROM calls.act AS a
    JOIN calls.seal_link AS k ON k.source = 'act' AND a.act_id = k.row_id::bigint
    WHERE k.n <= head.n AND k.sealed = calls.sealed_act(a, k.salt) ORDER BY a.act_id;
    DELETE FROM calls.act AS a USING calls.seal_link AS k WHERE k.source = 'act' AND k.n <= head.n AND a.act_id = k.row_id::bigint;
    DELETE FROM calls.seal_link AS k WHERE k.n <= head.n;
    DELETE FROM calls.seal_head AS h WHERE h.n < head.n;
    RETURN head.n;
END $$;

CREATE FUNCTION calls.keep_act() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM calls.seal_cut AS c JOIN calls.seal_link AS k ON k.n <= c.n
               WHERE k.source = 'act' AND k.row_id = OLD.act_id::text) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '%.% is append-only', TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = 'append_only', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON calls.act FOR EACH STATEMENT EXECUTE FUNCTION calls.refuse_change();
CREATE TRIGGER kept BEFORE DELETE ON calls.act FOR EACH ROW EXECUTE FUNCTION calls.keep_act();

REVOKE ALL ON FUNCTION calls.acted(), calls.note_act(), calls.act_row(calls.act), calls.sealed_act(calls.act, uuid),
    calls.unacted(), calls.seal_standing(), calls.keep_act() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION calls.seal_standing() TO tools_sealer, tools_auditor;
GRANT SELECT ON calls.act TO tools_auditor;
