-- The record is sealed after it was written, so that no commit waits for another's place in a chain: one sealer at a time
-- takes what was committed since, in an order of its own, and chains it. What is sealed is a copy that carries ids, codes
-- and digests; a person's words are in it as a salted digest alone, so that they can be erased and the chain stays whole.

-- The transaction that wrote a row tells the sealer what is new, whatever the rows' own numbers are.
ALTER TABLE audit ADD COLUMN committed_in xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX audit_committed ON audit (committed_in);

CREATE TABLE seal_chain (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    chain_id uuid NOT NULL DEFAULT gen_random_uuid()
);
-- `sealed` is what was chained, `chained` the digest of everything up to here. Without its salt a row's words are erased.
CREATE TABLE seal_link (
    n       bigint PRIMARY KEY CHECK (n >= 1),
    source  text NOT NULL CHECK (source IN ('audit', 'act', 'history', 'kept')),
    row_id  text NOT NULL,
    salt    uuid,
    sealed  text NOT NULL,
    chained hex_digest NOT NULL,
    UNIQUE (source, row_id)
);
CREATE INDEX seal_link_kept ON seal_link ((row_id::bigint)) WHERE source = 'kept';
-- Below `horizon` every transaction had ended, and where the batch was `whole`, all that they wrote is sealed.
CREATE TABLE seal_head (
    n       bigint PRIMARY KEY,
    chained hex_digest NOT NULL,
    horizon xid8 NOT NULL,
    whole   boolean NOT NULL,
    at      timestamptz NOT NULL,
    signed  text
);
CREATE INDEX seal_head_unsigned ON seal_head (n) WHERE signed IS NULL;
-- The other side's heads, as it signed them.
CREATE TABLE seal_witness (
    seen   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    n      bigint NOT NULL,
    signed text NOT NULL UNIQUE CHECK (length(signed) <= 2000),
    at     timestamptz NOT NULL
);
-- Where the record begins since what was older was taken out, and where a backup's ended when it was restored.
CREATE TABLE seal_cut (
    n       bigint PRIMARY KEY,
    chained hex_digest NOT NULL,
    signed  text NOT NULL,
    by      label NOT NULL,
    at      timestamptz NOT NULL
);
CREATE TABLE seal_restored (
    k    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    n    bigint NOT NULL,  -- the record's own last line
    seen bigint NOT NULL,  -- the last of the other side's heads that it holds
    at   timestamptz NOT NULL
);
CREATE TRIGGER noted AFTER INSERT ON seal_cut FOR EACH ROW EXECUTE FUNCTION note_act('{n}', '{}');
CREATE TRIGGER noted AFTER INSERT ON seal_restored FOR EACH ROW EXECUTE FUNCTION note_act('{k,n,seen}', '{}');

CREATE FUNCTION sha256_hex(p text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT encode(sha256(convert_to(p, 'UTF8')), 'hex') $$;
CREATE FUNCTION utc_text(p timestamptz) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT to_char(p AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;

-- What reads like a program's own identifier is sealed as it is; a number alone, an address or anything with other letters
-- may be about a person, and is sealed as a digest.
CREATE FUNCTION sealed_value(p text, p_salt uuid) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p ~ '^[A-Za-z0-9#][A-Za-z0-9#._:/@,+-]{0,199}$' AND p ~ '[A-Za-z]' AND p !~ '@[^@]*[.]'
                     AND (p ~ '^[0-9a-f-]{36}$' OR p !~ '[0-9]{2,5}[.-][0-9]{2,4}[.-][0-9]{3,4}|[0-9]{9}') THEN p
                ELSE 'sha256:' || sha256_hex(p_salt || ' ' || p) END
$$;
CREATE FUNCTION sealed_audit(a audit, p_salt uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', a.audit_id, 'workflow_id', a.workflow_id, 'actor', sealed_value(a.actor, p_salt),
        'action', sealed_value(a.action, p_salt), 'resource', sealed_value(a.resource, p_salt),
        'result', sealed_value(a.result, p_salt), 'details', 'sha256:' || sha256_hex(p_salt || ' ' || a.details::text),
        'at', utc_text(a.at), 'committed_in', a.committed_in::text)::text
$$;

CREATE FUNCTION sealed_act(a act, p_salt uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', a.act_id, 'relation', a.relation, 'columns', a.columns,
        'key', (SELECT jsonb_object_agg(k, CASE jsonb_typeof(v) WHEN 'number' THEN v
                                                ELSE to_jsonb(sealed_value(v #>> '{}', p_salt)) END)
                  FROM jsonb_each(a.key) AS e(k, v)),
        'row', 'sha256:' || sha256_hex(p_salt || ' ' || act_row(a)), 'at', utc_text(a.at),
        'committed_in', a.committed_in::text)::text
$$;

-- What a case's history is when a line of the audit about it is sealed: its checkpoints and decisions up to there, the
-- effects that they allowed, and the outcomes of those that were known.
CREATE FUNCTION history_digest(p_id uuid, p_checkpoints integer, p_decisions integer, p_closed text[], p_salt uuid)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT sha256_hex(p_salt || ' ' ||
        coalesce((SELECT jsonb_build_array(tenant_id, kind, release, request_id, body_sha256, principal, resource, policy,
                         authz, utc_text(created_at))::text FROM workflow WHERE workflow_id = p_id), 'none') ||
        coalesce((SELECT jsonb_agg(jsonb_build_array(seq, move_id, reason, evidence, utc_text(at), encode(offered, 'hex'), said)
                                   ORDER BY seq)::text
                    FROM checkpoint WHERE workflow_id = p_id AND seq <= p_checkpoints), 'none') ||
        coalesce((SELECT jsonb_agg(jsonb_build_array(n, subject, rule_version, facts, outcome, reason, utc_text(at))
                                   ORDER BY n)::text
                    FROM decision WHERE workflow_id = p_id AND n <= p_decisions), 'none') ||
        coalesce((SELECT jsonb_agg(jsonb_build_array(step, attempt, name, idempotency_key, arguments_sha256, decision_n)
                                   ORDER BY step, attempt)::text
                    FROM effect WHERE workflow_id = p_id AND decision_n <= p_decisions), 'none') ||
        coalesce((SELECT jsonb_agg(jsonb_build_array(step, attempt, outcome, external_id) ORDER BY step, attempt)::text
                    FROM effect WHERE workflow_id = p_id AND (step || '/' || attempt) = ANY (p_closed)), 'none'))
$$;
CREATE FUNCTION sealed_history(p_id uuid, p_checkpoints integer, p_decisions integer, p_closed text[], p_salt uuid)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('workflow_id', p_id, 'checkpoints', p_checkpoints, 'decisions', p_decisions,
        'closed', p_closed, 'digest', 'sha256:' || history_digest(p_id, p_checkpoints, p_decisions, p_closed, p_salt))::text
$$;

-- What one side keeps of the other is sealed as well, with the next lines of its own and never by itself: else each head
-- that is kept would make a new one for the other side to keep. Whoever writes one record anew would have to write the
-- other's copies of its heads anew too, and has no key for that.
CREATE FUNCTION sealed_kept(w seal_witness) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT jsonb_build_object('seen', w.seen, 'n', w.n, 'signed', 'sha256:' || sha256_hex(w.signed), 'at', utc_text(w.at))::text $$;

-- Put one more at the end of the chain; gives the new digest.
CREATE FUNCTION chain_link(p_before text, p_n bigint, p_source text, p_row text, p_salt uuid, p_sealed text) RETURNS text
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE v text := sha256_hex(concat_ws(' ', p_before, p_n, p_source, p_row, sha256_hex(p_sealed)));
BEGIN
    INSERT INTO seal_link (n, source, row_id, salt, sealed, chained) VALUES (p_n, p_source, p_row, p_salt, p_sealed, v);
    RETURN v;
END $$;

-- Chain what is new, at most so many lines; gives what wants a signature. Nobody waits: who is not alone seals nothing.
-- A row is looked for from the horizon of the batch before on, below which no transaction was left that could still
-- write, so that one which commits late, under whatever number, is found by the next batch.
-- It is planned once in a session, since each line's own plan costs more than the line, and by keys alone, as the tables
-- may be empty then.
CREATE FUNCTION seal_batch(p_most integer)
RETURNS TABLE (chain_id uuid, n bigint, chained text, horizon text, whole boolean, at text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
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
    -- No program's role has the right to a lock that is in the way of this one: not the advisory ones, which anybody may
    -- take, and not ROW EXCLUSIVE, which preparing a statement takes before a right is asked for.
    BEGIN
        LOCK TABLE seal_chain IN SHARE UPDATE EXCLUSIVE MODE NOWAIT;
    EXCEPTION WHEN lock_not_available THEN
        RETURN;
    END;
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
    FOR r IN SELECT * FROM (
                 SELECT 'audit' AS source, audit_id AS id, committed_in FROM audit WHERE committed_in >= v_from
                 UNION ALL SELECT 'act', act_id, committed_in FROM act WHERE committed_in >= v_from) x
              WHERE NOT EXISTS (SELECT FROM seal_link l WHERE l.source = x.source AND l.row_id = x.id::text)
              ORDER BY committed_in, source, id LIMIT p_most LOOP
        v_salt := gen_random_uuid();
        v_n := v_n + 1;
        v_seen := v_seen + 1;
        v_hash := chain_link(v_hash, v_n, r.source, r.id::text, v_salt,
            CASE r.source WHEN 'audit' THEN (SELECT sealed_audit(a, v_salt) FROM audit a WHERE a.audit_id = r.id)
                 ELSE (SELECT sealed_act(a, v_salt) FROM act a WHERE a.act_id = r.id) END);
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
                      WHERE w.workflow_id IN (SELECT a.workflow_id FROM seal_link l JOIN audit a ON a.audit_id = l.row_id::bigint
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

CREATE FUNCTION sign_head(p_n bigint, p_signed text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS
$$ UPDATE seal_head SET signed = p_signed WHERE n = p_n AND signed IS NULL $$;

CREATE FUNCTION newest_head() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS
$$ SELECT signed FROM seal_head WHERE signed IS NOT NULL ORDER BY n DESC LIMIT 1 $$;

CREATE FUNCTION witness_head(p_n bigint, p_signed text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS
$$ INSERT INTO seal_witness (n, signed, at) VALUES (p_n, p_signed, clock_now()) ON CONFLICT DO NOTHING $$;

-- Beside each sealed line what stands there now: NULL where nothing does. For the auditor, who sees no words.
CREATE FUNCTION sealed_lines(p_after bigint, p_most integer)
RETURNS TABLE (n bigint, source text, row_id text, sealed text, chained text, erased boolean, stands text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT l.n, l.source, l.row_id, l.sealed, l.chained::text, l.salt IS NULL AND l.source = 'audit',
           CASE l.source WHEN 'audit' THEN (SELECT sealed_audit(a, l.salt) FROM audit a WHERE a.audit_id = l.row_id::bigint)
                WHEN 'act' THEN (SELECT sealed_act(a, l.salt) FROM act a
                                  WHERE a.act_id = l.row_id::bigint AND act_row(a) IS NOT NULL)
                WHEN 'kept' THEN (SELECT sealed_kept(w) FROM seal_witness w WHERE w.seen = l.row_id::bigint)
                WHEN 'history' THEN sealed_history((h.j ->> 'workflow_id')::uuid, (h.j ->> 'checkpoints')::integer,
                    (h.j ->> 'decisions')::integer, ARRAY(SELECT jsonb_array_elements_text(h.j -> 'closed')), l.salt) END
      FROM (SELECT * FROM seal_link k WHERE k.n > p_after ORDER BY k.n LIMIT p_most) l,
           LATERAL (SELECT CASE l.source WHEN 'history' THEN l.sealed::jsonb END AS j) h
     ORDER BY l.n
$$;
-- What is not sealed: new, or put in behind the sealer's back.
CREATE FUNCTION unsealed_lines() RETURNS TABLE (source text, row_id text, behind boolean, seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT x.source, x.id::text,
           x.committed_in < coalesce((SELECT h.horizon FROM seal_head h ORDER BY h.n DESC LIMIT 1), '0'),
           extract(epoch FROM clock_now() - x.at)::double precision
      FROM (SELECT 'audit' AS source, audit_id AS id, committed_in, at FROM audit
            UNION ALL SELECT 'act', act_id, committed_in, at FROM act) x
     WHERE NOT EXISTS (SELECT FROM seal_link l WHERE l.source = x.source AND l.row_id = x.id::text)
    UNION ALL
    SELECT u.relation, (SELECT string_agg(v, '/' ORDER BY k) FROM jsonb_each_text(u.key) AS e(k, v)), true, 0 FROM unacted() u
     ORDER BY 3 DESC, 4 DESC LIMIT 1000
$$;
-- How far behind the seals are, in seconds: the oldest line without a signed seal, our newest head, the newest of theirs.
CREATE FUNCTION seal_standing() RETURNS TABLE (waits double precision, signed double precision, kept double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH since AS (SELECT coalesce((SELECT h.horizon FROM seal_head h ORDER BY h.n DESC LIMIT 1), '0') AS horizon)
    SELECT extract(epoch FROM clock_now() - (SELECT min(x.at) FROM (
               SELECT a.at FROM audit a, since WHERE a.committed_in >= since.horizon
                  AND NOT EXISTS (SELECT FROM seal_link l WHERE l.source = 'audit' AND l.row_id = a.audit_id::text)
               UNION ALL SELECT a.at FROM act a, since WHERE a.committed_in >= since.horizon
                  AND NOT EXISTS (SELECT FROM seal_link l WHERE l.source = 'act' AND l.row_id = a.act_id::text)
               UNION ALL SELECT at FROM seal_head WHERE seal_head.signed IS NULL) x))::double precision,
           extract(epoch FROM clock_now() - (SELECT at FROM seal_head h WHERE h.signed IS NOT NULL ORDER BY n DESC LIMIT 1))::double precision,
           extract(epoch FROM clock_now() - (SELECT at FROM seal_witness ORDER BY seen DESC LIMIT 1))::double precision
$$;

-- The owner's two acts. What is older than a time goes, up to a signed head, which stays as the place where the record
-- begins; the words of one line go, and that they did is a line itself.
CREATE FUNCTION cut_record(p_before timestamptz, p_by text) RETURNS bigint
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE v seal_head%ROWTYPE;
BEGIN
    LOCK TABLE seal_chain IN SHARE UPDATE EXCLUSIVE MODE;  -- as the sealer does
    -- a clock that was wrong for a while makes no head old that is none
    SELECT * INTO v FROM seal_head h WHERE h.signed IS NOT NULL AND h.at < p_before
       AND NOT EXISTS (SELECT FROM seal_head e WHERE e.n < h.n AND e.at >= p_before) ORDER BY h.n DESC LIMIT 1;
    IF NOT FOUND OR EXISTS (SELECT FROM seal_cut c WHERE c.n >= v.n) THEN
        RETURN 0;
    END IF;
    INSERT INTO seal_cut (n, chained, signed, by, at) VALUES (v.n, v.chained, v.signed, p_by, clock_now());
    DELETE FROM audit a USING seal_link l WHERE l.source = 'audit' AND l.n <= v.n AND a.audit_id = l.row_id::bigint;
    -- the rows of acts stay, since they decide on; what is as it was sealed is sealed anew
    INSERT INTO act (relation, key, columns, at)
    SELECT a.relation, a.key, a.columns, clock_now() FROM act a JOIN seal_link l ON l.source = 'act' AND a.act_id = l.row_id::bigint
     WHERE l.n <= v.n AND l.sealed = sealed_act(a, l.salt) ORDER BY a.act_id;
    DELETE FROM act a USING seal_link l WHERE l.source = 'act' AND l.n <= v.n AND a.act_id = l.row_id::bigint;
    DELETE FROM seal_link WHERE n <= v.n;
    DELETE FROM seal_head WHERE n < v.n;
    INSERT INTO audit (actor, action, resource, result, details, at)
    VALUES (p_by, 'record_cut', 'record:' || v.n, 'cut', jsonb_build_object('before', p_before), clock_now());
    RETURN v.n;
END $$;
CREATE FUNCTION erase_words(p_audit bigint, p_by text) RETURNS boolean
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE seal_link SET salt = NULL WHERE source = 'audit' AND row_id = p_audit::text AND salt IS NOT NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE audit SET details = '{"erased": true}' WHERE audit_id = p_audit;
    INSERT INTO audit (actor, action, resource, result, details, at)
    VALUES (p_by, 'words_erased', 'audit:' || p_audit, 'erased', '{}', clock_now());
    RETURN true;
END $$;

-- What may change in the record is what the owner's two acts change, and nothing else, for whoever owns the tables too.
CREATE FUNCTION keep_record() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (SELECT FROM seal_cut c JOIN seal_link l ON l.n <= c.n
                                     WHERE l.source = 'audit' AND l.row_id = OLD.audit_id::text) THEN
        RETURN OLD;
    ELSIF TG_OP = 'UPDATE' AND EXISTS (SELECT FROM seal_link l WHERE l.source = 'audit' AND l.salt IS NULL
                                          AND l.row_id = OLD.audit_id::text)
          AND to_jsonb(NEW) - 'details' = to_jsonb(OLD) - 'details' AND NEW.details = '{"erased": true}' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'KS013';
END $$;
CREATE FUNCTION keep_act() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (SELECT FROM seal_cut c JOIN seal_link l ON l.n <= c.n
                                     WHERE l.source = 'act' AND l.row_id = OLD.act_id::text) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'KS013';
END $$;
CREATE FUNCTION keep_seal() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (SELECT FROM seal_cut c WHERE c.n > OLD.n OR (c.n = OLD.n AND TG_TABLE_NAME = 'seal_link')) THEN
        RETURN OLD;
    ELSIF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'seal_link' AND to_jsonb(NEW) = to_jsonb(OLD) || '{"salt": null}' THEN
        RETURN NEW;
    ELSIF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'seal_head' AND to_jsonb(OLD) ->> 'signed' IS NULL
          AND to_jsonb(NEW) - 'signed' = to_jsonb(OLD) - 'signed' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'KS013';
END $$;
DROP TRIGGER append_only ON audit;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION keep_record();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON act FOR EACH ROW EXECUTE FUNCTION keep_act();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON seal_link FOR EACH ROW EXECUTE FUNCTION keep_seal();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON seal_head FOR EACH ROW EXECUTE FUNCTION keep_seal();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON seal_cut FOR EACH ROW EXECUTE FUNCTION keep_seal();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON seal_chain FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON seal_witness FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON seal_restored FOR EACH ROW EXECUTE FUNCTION refuse_change();
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['act', 'seal_chain', 'seal_link', 'seal_head', 'seal_witness', 'seal_cut', 'seal_restored'] LOOP
        EXECUTE format('CREATE TRIGGER never_emptied BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', t);
    END LOOP;
END $$;

REVOKE ALL ON seal_chain, seal_link, seal_head, seal_witness, seal_cut, seal_restored FROM PUBLIC;
REVOKE ALL ON FUNCTION sealed_act(act, uuid), seal_standing(), keep_act(), sha256_hex(text), utc_text(timestamptz), sealed_value(text, uuid), sealed_audit(audit, uuid),
    history_digest(uuid, integer, integer, text[], uuid), sealed_history(uuid, integer, integer, text[], uuid),
    sealed_kept(seal_witness), chain_link(text, bigint, text, text, uuid, text), seal_batch(integer),
    sign_head(bigint, text), newest_head(), witness_head(bigint, text), sealed_lines(bigint, integer), unsealed_lines(), cut_record(timestamptz, text),
    erase_words(bigint, text), keep_record(), keep_seal() FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO host_sealer;
GRANT EXECUTE ON FUNCTION seal_batch(integer), sign_head(bigint, text), newest_head(), witness_head(bigint, text) TO host_sealer;
GRANT SELECT ON seal_chain, seal_head, seal_witness, seal_cut, seal_restored TO host_auditor;
GRANT EXECUTE ON FUNCTION seal_standing() TO host_rt, host_auditor;
GRANT EXECUTE ON FUNCTION sealed_lines(bigint, integer), unsealed_lines() TO host_auditor;
