-- What one side keeps of the other is sealed as well, with the next lines of its own and never by itself: else each head
-- that is kept would make a new one for the other side to keep. Whoever writes one record anew would have to write the
-- other's copies of its heads anew too, and has no key for that.
ALTER TABLE seal_link DROP CONSTRAINT seal_link_source_check,
    ADD CONSTRAINT seal_link_source_check CHECK (source IN ('audit', 'history', 'kept'));
CREATE INDEX seal_link_kept ON seal_link ((row_id::bigint)) WHERE source = 'kept';

CREATE FUNCTION sealed_kept(w seal_witness) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT jsonb_build_object('seen', w.seen, 'n', w.n, 'signed', 'sha256:' || sha256_hex(w.signed), 'at', utc_text(w.at))::text $$;

-- As before, and in addition: the heads that are kept.
CREATE OR REPLACE FUNCTION seal_batch(p_most integer)
RETURNS TABLE (chain_id uuid, n bigint, chained text, horizon text, whole boolean, at text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_from xid8;
    v_next xid8 := pg_snapshot_xmin(pg_current_snapshot());  -- before anything is read
    v_n    bigint;
    v_hash text;
    v_seen integer := 0;
    v_salt uuid;
    r      record;
BEGIN
    PERFORM refuse_old_snapshot();
    IF NOT pg_try_advisory_xact_lock(118058463519597) THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM seal_chain) THEN
        INSERT INTO seal_chain DEFAULT VALUES;
    END IF;
    SELECT h.horizon INTO v_from FROM seal_head h ORDER BY h.n DESC LIMIT 1;
    IF v_from IS NULL OR v_from > v_next THEN  -- none yet, or another cluster's numbers: then all is looked through
        v_from := '0';
    END IF;
    SELECT l.n, l.chained INTO v_n, v_hash FROM (SELECT n, chained FROM seal_link UNION ALL SELECT n, chained FROM seal_cut) l
     ORDER BY l.n DESC LIMIT 1;
    IF v_n IS NULL THEN
        v_n := 0;
        v_hash := sha256_hex('kessai-seal-1 host ' || (SELECT chain_id FROM seal_chain));
    END IF;
    FOR r IN SELECT a AS line, a.workflow_id, a.committed_in FROM audit a
              WHERE a.committed_in >= v_from
                AND NOT EXISTS (SELECT FROM seal_link l WHERE l.source = 'audit' AND l.row_id = a.audit_id::text)
              ORDER BY a.committed_in, a.audit_id LIMIT p_most LOOP
        v_salt := gen_random_uuid();
        v_n := v_n + 1;
        v_seen := v_seen + 1;
        v_hash := chain_link(v_hash, v_n, 'audit', (r.line).audit_id::text, v_salt, sealed_audit(r.line, v_salt));
        IF v_seen = p_most THEN
            v_next := least(v_next, r.committed_in);
        END IF;
    END LOOP;
    IF v_seen > 0 THEN
        -- no two lines of the chain are about the same length of the same history
        FOR r IN SELECT c.*, gen_random_uuid() AS salt FROM (
                     SELECT w.workflow_id, w.seq::integer AS checkpoints,
                            coalesce((SELECT max(d.n) FROM decision d WHERE d.workflow_id = w.workflow_id), 0)::integer AS decisions,
                            ARRAY(SELECT e.step || '/' || e.attempt FROM effect e
                                   WHERE e.workflow_id = w.workflow_id AND e.outcome IS NOT NULL ORDER BY 1) AS closed
                       FROM workflow w
                      WHERE w.workflow_id IN (SELECT a.workflow_id FROM seal_link l JOIN audit a ON a.audit_id::text = l.row_id
                                               WHERE l.source = 'audit' AND l.n > v_n - v_seen AND a.workflow_id IS NOT NULL)
                      ORDER BY 1) c
                  WHERE NOT EXISTS (SELECT FROM seal_link l WHERE l.source = 'history' AND l.row_id = concat_ws(
                                    '/', c.workflow_id, c.checkpoints, c.decisions, cardinality(c.closed))) LOOP
            v_n := v_n + 1;
            v_hash := chain_link(v_hash, v_n, 'history',
                concat_ws('/', r.workflow_id, r.checkpoints, r.decisions, cardinality(r.closed)), r.salt,
                sealed_history(r.workflow_id, r.checkpoints, r.decisions, r.closed, r.salt));
        END LOOP;
        FOR r IN SELECT w AS line, w.seen FROM seal_witness w
                  WHERE w.seen > coalesce((SELECT max(l.row_id::bigint) FROM seal_link l WHERE l.source = 'kept'),
                                          -- what was cut is not sealed again
                                          (SELECT max(x.seen) FROM seal_witness x, seal_cut c WHERE x.at <= c.at), 0)
                  ORDER BY w.seen LIMIT p_most LOOP
            v_n := v_n + 1;
            v_hash := chain_link(v_hash, v_n, 'kept', r.seen::text, NULL, sealed_kept(r.line));
        END LOOP;
        INSERT INTO seal_head (n, chained, horizon, whole, at) VALUES (v_n, v_hash, v_next, v_seen < p_most, clock_now());
    END IF;
    RETURN QUERY SELECT c.chain_id, h.n, h.chained::text, h.horizon::text, h.whole, utc_text(h.at)
                   FROM seal_head h, seal_chain c WHERE h.signed IS NULL ORDER BY h.n;
END $$;

-- As before, and in addition: the heads that are kept.
CREATE OR REPLACE FUNCTION sealed_lines(p_after bigint, p_most integer)
RETURNS TABLE (n bigint, source text, row_id text, sealed text, chained text, erased boolean, stands text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT l.n, l.source, l.row_id, l.sealed, l.chained::text, l.salt IS NULL AND l.source <> 'kept',
           CASE l.source WHEN 'audit' THEN (SELECT sealed_audit(a, l.salt) FROM audit a WHERE a.audit_id = l.row_id::bigint)
                WHEN 'kept' THEN (SELECT sealed_kept(w) FROM seal_witness w WHERE w.seen = l.row_id::bigint)
                WHEN 'history' THEN sealed_history((h.j ->> 'workflow_id')::uuid, (h.j ->> 'checkpoints')::integer,
                    (h.j ->> 'decisions')::integer, ARRAY(SELECT jsonb_array_elements_text(h.j -> 'closed')), l.salt) END
      FROM (SELECT * FROM seal_link k WHERE k.n > p_after ORDER BY k.n LIMIT p_most) l,
           LATERAL (SELECT CASE l.source WHEN 'history' THEN l.sealed::jsonb END AS j) h
     ORDER BY l.n
$$;

REVOKE ALL ON FUNCTION sealed_kept(seal_witness) FROM PUBLIC;
