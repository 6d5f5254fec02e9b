-- What one side keeps of the other is sealed as well, with the next lines of its own and never by itself: else each head
-- that is kept would make a new one for the other side to keep. Whoever writes one record anew would have to write the
-- other's copies of its heads anew too, and has no key for that.
ALTER TABLE calls.seal_link DROP CONSTRAINT seal_link_source_check,
    ADD CONSTRAINT seal_link_source_check CHECK (source IN ('call', 'kept')), ALTER COLUMN salt DROP NOT NULL;
CREATE INDEX seal_link_kept ON calls.seal_link ((row_id::bigint)) WHERE source = 'kept';

CREATE FUNCTION calls.sealed_kept(w calls.seal_witness) RETURNS text LANGUAGE sql STABLE
    RETURN jsonb_build_object('seen', w.seen, 'n', w.n, 'signed', 'sha256:' || calls.sha256_hex(w.signed),
                              'at', calls.utc_text(w.at))::text;

-- As before, and in addition: the heads that are kept.
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
    FOR r IN SELECT l AS line, l.seq, l.committed_in FROM calls.log AS l
             WHERE l.committed_in >= since
               AND NOT EXISTS (SELECT FROM calls.seal_link AS k WHERE k.source = 'call' AND k.row_id = l.seq::text)
             ORDER BY l.committed_in, l.seq LIMIT most LOOP
        salted := gen_random_uuid();
        last_n := last_n + 1;
        seen := seen + 1;
        body := calls.sealed_call(r.line, salted);
        last_hash := calls.sha256_hex(concat_ws(' ', last_hash, last_n, 'call', r.seq, calls.sha256_hex(body)));
        INSERT INTO calls.seal_link (n, source, row_id, salt, sealed, chained)
        VALUES (last_n, 'call', r.seq::text, salted, body, last_hash);
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

-- As before, and in addition: the heads that are kept.
CREATE OR REPLACE FUNCTION calls.sealed_lines(after_n bigint, most integer)
    RETURNS TABLE (n bigint, source text, row_id text, sealed text, chained text, erased boolean, stands text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT k.n, k.source, k.row_id, k.sealed, k.chained, false,
           CASE k.source
               WHEN 'call' THEN (SELECT calls.sealed_call(l, k.salt) FROM calls.log AS l WHERE l.seq = k.row_id::bigint)
               ELSE (SELECT calls.sealed_kept(w) FROM calls.seal_witness AS w WHERE w.seen = k.row_id::bigint) END
    FROM calls.seal_link AS k WHERE k.n > after_n ORDER BY k.n LIMIT most
$$;

-- As before, and of lines about calls alone.
CREATE OR REPLACE FUNCTION calls.cut_record(before timestamptz, actor text) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head calls.seal_head;
BEGIN
    PERFORM pg_advisory_xact_lock(7265637402);
    SELECT * INTO head FROM calls.seal_head AS h WHERE h.signed IS NOT NULL AND h.at < before ORDER BY h.n DESC LIMIT 1;
    IF NOT FOUND OR EXISTS (SELECT FROM calls.seal_cut AS c WHERE c.n >= head.n) THEN
        RETURN 0;
    END IF;
    INSERT INTO calls.seal_cut (n, chained, signed, by, at)
    VALUES (head.n, head.chained, head.signed, actor, public.clock_now());
    DELETE FROM calls.log AS l USING calls.seal_link AS k WHERE k.source = 'call' AND k.n <= head.n AND l.seq = k.row_id::bigint;
    DELETE FROM calls.seal_link AS k WHERE k.n <= head.n;
    DELETE FROM calls.seal_head AS h WHERE h.n < head.n;
    DELETE FROM calls.seal_cut AS c WHERE c.n < head.n;
    RETURN head.n;
END $$;
