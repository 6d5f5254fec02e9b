-- The log is sealed after it was written, so that no call waits for another's place in a chain: one sealer at a time takes
-- what was committed since, in an order of its own, and chains it. It is another role than those that answer calls.

-- The transaction that wrote a row tells the sealer what is new, whatever the rows' own numbers are. No family says it.
ALTER TABLE calls.log ADD COLUMN committed_in xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX log_committed ON calls.log (committed_in);
DO $$
DECLARE
    families text := 'tools_orders, tools_policies, tools_returns, tools_notices, tools_document';
BEGIN
    EXECUTE 'REVOKE INSERT ON calls.log FROM ' || families;
    EXECUTE 'GRANT INSERT (iss, sub, client_id, kid, jti, use, purpose, tenant_id, task_id, tool, version, resource,
             arguments_sha256, idempotency_key, attempt, outcome, duration_us, approval_event, approver)
             ON calls.log TO ' || families;
END $$;

CREATE TABLE calls.seal_chain (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    chain_id uuid NOT NULL DEFAULT gen_random_uuid()
);
-- `sealed` is what was chained, `chained` the digest of everything up to here.
CREATE TABLE calls.seal_link (
    n bigint PRIMARY KEY CHECK (n >= 1),
    source text NOT NULL CHECK (source IN ('call', 'kept')),
    row_id text NOT NULL,
    salt uuid,  -- of a call: a head that is kept tells nothing of anybody
    sealed text NOT NULL,
    chained text NOT NULL CHECK (chained ~ '^[0-9a-f]{64}$'),
    UNIQUE (source, row_id)
);
CREATE INDEX seal_link_kept ON calls.seal_link ((row_id::bigint)) WHERE source = 'kept';
-- Below `horizon` every transaction had ended, and where the batch was `whole`, all that they wrote is sealed.
CREATE TABLE calls.seal_head (
    n bigint PRIMARY KEY,
    chained text NOT NULL,
    horizon xid8 NOT NULL,
    whole boolean NOT NULL,
    at timestamptz NOT NULL,
    signed text
);
CREATE INDEX seal_head_unsigned ON calls.seal_head (n) WHERE signed IS NULL;
-- The hosts' heads, as they signed them.
CREATE TABLE calls.seal_witness (
    seen bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    n bigint NOT NULL,
    signed text NOT NULL UNIQUE CHECK (length(signed) <= 2000),
    at timestamptz NOT NULL
);
-- Where the record begins since what was older was taken out, and where a backup's ended when it was restored.
CREATE TABLE calls.seal_cut (
    n bigint PRIMARY KEY,
    chained text NOT NULL,
    signed text NOT NULL,
    by text NOT NULL,
    at timestamptz NOT NULL
);
CREATE TABLE calls.seal_restored (
    k bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    n bigint NOT NULL,
    seen bigint NOT NULL,
    at timestamptz NOT NULL
);

CREATE FUNCTION calls.sha256_hex(p text) RETURNS text LANGUAGE sql IMMUTABLE
    RETURN encode(sha256(convert_to(p, 'UTF8')), 'hex');
CREATE FUNCTION calls.utc_text(p timestamptz) RETURNS text LANGUAGE sql STABLE
    RETURN to_char(p AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

-- What reads like a program's own identifier is sealed as it is; a number alone, an address or anything with other letters
-- may be about a person, and is sealed as a digest.
CREATE FUNCTION calls.sealed_value(p text, salt uuid) RETURNS text LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN p ~ '^[A-Za-z0-9#][A-Za-z0-9#._:/@,+-]{0,199}$' AND p ~ '[A-Za-z]' AND p !~ '@[^@]*[.]'
                     AND (p ~ '^[0-9a-f-]{36}$' OR p !~ '[0-9]{2,5}[.-][0-9]{2,4}[.-][0-9]{3,4}|[0-9]{9}') THEN p
                WHEN p IS NOT NULL THEN 'sha256:' || calls.sha256_hex(salt || ' ' || p) END;
CREATE FUNCTION calls.sealed_call(l calls.log, salt uuid) RETURNS text LANGUAGE sql STABLE
    RETURN jsonb_build_object('id', l.seq, 'iss', l.iss, 'sub', calls.sealed_value(l.sub, salt),
        'client_id', calls.sealed_value(l.client_id, salt), 'kid', l.kid, 'jti', calls.sealed_value(l.jti, salt),
        'use', l.use, 'purpose', l.purpose, 'tenant_id', calls.sealed_value(l.tenant_id, salt),
        'task_id', calls.sealed_value(l.task_id, salt), 'version', l.version,
        -- without a version there is no such tool, and the name is whatever its caller wrote
        'tool', CASE WHEN l.version IS NULL THEN 'sha256:' || calls.sha256_hex(salt || ' ' || l.tool) ELSE l.tool END,
        'resource', calls.sealed_value(l.resource, salt), 'arguments_sha256', l.arguments_sha256,
        'idempotency_key', calls.sealed_value(l.idempotency_key, salt), 'attempt', l.attempt, 'outcome', l.outcome,
        'duration_us', l.duration_us, 'approval_event', calls.sealed_value(l.approval_event, salt),
        'approver', calls.sealed_value(l.approver, salt), 'at', calls.utc_text(l.at),
        'committed_in', l.committed_in::text)::text;

-- What one side keeps of the other is sealed as well, with the next lines of its own and never by itself: else each head
-- that is kept would make a new one for the other side to keep. Whoever writes one record anew would have to write the
-- other's copies of its heads anew too, and has no key for that.
CREATE FUNCTION calls.sealed_kept(w calls.seal_witness) RETURNS text LANGUAGE sql STABLE
    RETURN jsonb_build_object('seen', w.seen, 'n', w.n, 'signed', 'sha256:' || calls.sha256_hex(w.signed),
                              'at', calls.utc_text(w.at))::text;

-- Chain what is new, at most so many lines; gives what wants a signature. Nobody waits: who is not alone seals nothing.
-- A row is looked for from the horizon of the batch before on, below which no transaction was left that could still
-- write, so that one which commits late, under whatever number, is found by the next batch.
CREATE FUNCTION calls.seal_batch(most integer)
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

CREATE FUNCTION calls.sign_head(of_n bigint, text_signed text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ UPDATE calls.seal_head SET signed = text_signed WHERE n = of_n AND signed IS NULL $$;

CREATE FUNCTION calls.newest_head() RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ SELECT signed FROM calls.seal_head WHERE signed IS NOT NULL ORDER BY n DESC LIMIT 1 $$;

CREATE FUNCTION calls.witness_head(of_n bigint, text_signed text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ INSERT INTO calls.seal_witness (n, signed, at) VALUES (of_n, text_signed, public.clock_now()) ON CONFLICT DO NOTHING $$;

-- Beside each sealed line what stands there now: NULL where nothing does. For the auditor.
CREATE FUNCTION calls.sealed_lines(after_n bigint, most integer)
    RETURNS TABLE (n bigint, source text, row_id text, sealed text, chained text, erased boolean, stands text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT k.n, k.source, k.row_id, k.sealed, k.chained, false,
           CASE k.source
               WHEN 'call' THEN (SELECT calls.sealed_call(l, k.salt) FROM calls.log AS l WHERE l.seq = k.row_id::bigint)
               ELSE (SELECT calls.sealed_kept(w) FROM calls.seal_witness AS w WHERE w.seen = k.row_id::bigint) END
    FROM calls.seal_link AS k WHERE k.n > after_n ORDER BY k.n LIMIT most
$$;
-- What is not sealed: new, or put in behind the sealer's back.
CREATE FUNCTION calls.unsealed_lines() RETURNS TABLE (source text, row_id text, behind boolean, seconds double precision)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT 'call', l.seq::text,
           l.committed_in < coalesce((SELECT h.horizon FROM calls.seal_head AS h ORDER BY h.n DESC LIMIT 1), '0'),
           extract(epoch FROM public.clock_now() - l.at)::double precision
    FROM calls.log AS l
    WHERE NOT EXISTS (SELECT FROM calls.seal_link AS k WHERE k.source = 'call' AND k.row_id = l.seq::text)
    ORDER BY l.seq LIMIT 1000
$$;

-- The owner's act: what is older than a time goes, up to a signed head, which stays as the place where the record begins.
CREATE FUNCTION calls.cut_record(before timestamptz, actor text) RETURNS bigint
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

-- What may change is what the owner's act takes out, and nothing else, for whoever owns the tables too.
CREATE FUNCTION calls.keep_sealed() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND (CASE TG_TABLE_NAME
           WHEN 'log' THEN EXISTS (SELECT FROM calls.seal_cut AS c JOIN calls.seal_link AS k ON k.n <= c.n
                                   WHERE k.source = 'call' AND k.row_id = to_jsonb(OLD) ->> 'seq')
           ELSE EXISTS (SELECT FROM calls.seal_cut AS c WHERE c.n > (to_jsonb(OLD) ->> 'n')::bigint
                        OR (c.n = (to_jsonb(OLD) ->> 'n')::bigint AND TG_TABLE_NAME = 'seal_link')) END) THEN
        RETURN OLD;
    ELSIF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'seal_head' AND to_jsonb(OLD) ->> 'signed' IS NULL
          AND to_jsonb(NEW) - 'signed' = to_jsonb(OLD) - 'signed' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '%.% is append-only', TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = 'append_only', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
END $$;
DROP TRIGGER append_only ON calls.log;
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON calls.log FOR EACH STATEMENT EXECUTE FUNCTION calls.refuse_change();
CREATE TRIGGER kept BEFORE DELETE ON calls.log FOR EACH ROW EXECUTE FUNCTION calls.keep_sealed();
DO $$
DECLARE
    history text;
BEGIN
    FOREACH history IN ARRAY ARRAY['seal_link', 'seal_head', 'seal_cut'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE TRUNCATE ON calls.%I
                        FOR EACH STATEMENT EXECUTE FUNCTION calls.refuse_change()', history);
        EXECUTE format('CREATE TRIGGER kept BEFORE UPDATE OR DELETE ON calls.%I
                        FOR EACH ROW EXECUTE FUNCTION calls.keep_sealed()', history);
    END LOOP;
    FOREACH history IN ARRAY ARRAY['seal_chain', 'seal_witness', 'seal_restored'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON calls.%I
                        FOR EACH STATEMENT EXECUTE FUNCTION calls.refuse_change()', history);
    END LOOP;
END $$;

GRANT USAGE ON SCHEMA calls TO tools_sealer;
GRANT EXECUTE ON FUNCTION calls.seal_batch(integer), calls.sign_head(bigint, text), calls.newest_head(),
    calls.witness_head(bigint, text) TO tools_sealer;
GRANT SELECT ON calls.seal_chain, calls.seal_head, calls.seal_witness, calls.seal_cut, calls.seal_restored TO tools_auditor;
GRANT EXECUTE ON FUNCTION calls.sealed_lines(bigint, integer), calls.unsealed_lines() TO tools_auditor;
