-- Who seals locks seal_chain, and no longer a number that any role could lock to keep the log from being sealed. No role of
-- a running server has the right to a lock that is in the way of this one; ROW EXCLUSIVE, which preparing a statement takes
-- before a right is asked for, is not. Otherwise as before.
CREATE OR REPLACE FUNCTION calls.seal_batch(most integer)
    RETURNS TABLE (chain_id uuid, n bigint, chained text, horizon text, whole boolean, at text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
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
    BEGIN
        LOCK TABLE calls.seal_chain IN SHARE UPDATE EXCLUSIVE MODE NOWAIT;
    EXCEPTION WHEN lock_not_available THEN
        RETURN;
    END;
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

-- What excuses missing lines is read from the sealed line of the act itself: where a restored record ended is in its key.
CREATE OR REPLACE FUNCTION calls.acted() RETURNS TABLE (relation text, key text[], later text[], acts text)
    LANGUAGE sql IMMUTABLE AS $$
    VALUES ('calls.tool_switch', ARRAY['seq'], '{}'::text[], '1'), ('calls.revocation', ARRAY['kind', 'value'], '{}', '1'),
           ('returns.approvers', ARRAY['seq'], ARRAY['ended_at', 'ended_by', 'ended_how'],
            '1 + (t.ended_at IS NOT NULL)::integer'),
           ('calls.seal_cut', ARRAY['n'], '{}', '1'), ('calls.seal_restored', ARRAY['k', 'n', 'seen'], '{}', '1')
$$;
CREATE OR REPLACE TRIGGER noted AFTER INSERT ON calls.seal_restored FOR EACH ROW
    EXECUTE FUNCTION calls.note_act('{k,n,seen}', '{}');
INSERT INTO calls.act (relation, key, columns)
SELECT 'calls.seal_restored', jsonb_build_object('k', k, 'n', n, 'seen', seen), '{at,k,n,seen}' FROM calls.seal_restored;

-- The first line up to a head that does not stand as it was sealed, in its place; NULL where there is none. What a head is
-- signed with, and what the other side keeps, is the auditor's to compare.
CREATE FUNCTION calls.first_unlike(head_n bigint, head_chained text) RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH begun AS (
        SELECT n, chained FROM calls.seal_cut
        UNION ALL SELECT 0, calls.sha256_hex('kessai-seal-1 tools ' || chain_id) FROM calls.seal_chain
        ORDER BY n DESC LIMIT 1),
    line AS (
        SELECT l.*, lag(l.n, 1, b.n) OVER in_order AS n_before, lag(l.chained, 1, b.chained) OVER in_order AS before
        FROM begun AS b, calls.sealed_lines(b.n, least(head_n - b.n, 2147483647)::integer) AS l
        WINDOW in_order AS (ORDER BY l.n))
    SELECT min(x.n) FROM (
        SELECT n FROM line WHERE n <> n_before + 1 OR stands IS DISTINCT FROM sealed
            OR chained <> calls.sha256_hex(concat_ws(' ', before, n, source, row_id, calls.sha256_hex(sealed)))
        UNION ALL SELECT head_n WHERE NOT EXISTS (SELECT FROM line WHERE n = head_n AND chained = head_chained)) AS x
$$;
DROP FUNCTION calls.cut_record(timestamptz, text);
CREATE FUNCTION calls.cut_record(before timestamptz, actor text, unverified boolean) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head calls.seal_head;
    wrong bigint;
BEGIN
    LOCK TABLE calls.seal_chain IN SHARE UPDATE EXCLUSIVE MODE;  -- as the sealer does
    -- a clock that was wrong for a while makes no head old that is none
    SELECT * INTO head FROM calls.seal_head AS h WHERE h.signed IS NOT NULL AND h.at < before
        AND NOT EXISTS (SELECT FROM calls.seal_head AS e WHERE e.n < h.n AND e.at >= before) ORDER BY h.n DESC LIMIT 1;
    IF NOT FOUND OR EXISTS (SELECT FROM calls.seal_cut AS c WHERE c.n >= head.n) THEN
        RETURN 0;
    END IF;
    wrong := CASE WHEN NOT unverified THEN calls.first_unlike(head.n, head.chained) END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'line % is not what was sealed', wrong USING ERRCODE = 'check_violation', CONSTRAINT = 'whole';
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
