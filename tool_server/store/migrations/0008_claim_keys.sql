-- One key, one intention, one effect. Rows here are append-only; the lock of a key is an advisory lock, since
-- there may be no row yet that could be locked. A hash that collides makes a stranger wait and nothing more.
CREATE TABLE calls.key (
    tenant_id text NOT NULL,
    idempotency_key text NOT NULL,
    tool text NOT NULL,
    customer_id text NOT NULL,
    arguments_sha256 text NOT NULL,
    at timestamptz NOT NULL DEFAULT public.clock_now(),
    PRIMARY KEY (tenant_id, idempotency_key)
);

-- A look-up that found nothing: attempts up to `through` can no longer act, however late they arrive.
CREATE TABLE calls.key_closed (
    tenant_id text NOT NULL,
    idempotency_key text NOT NULL,
    through integer NOT NULL CHECK (through >= 1),
    at timestamptz NOT NULL DEFAULT public.clock_now(),
    PRIMARY KEY (tenant_id, idempotency_key, through)
);

-- Tokens of calls that acted; the row is of the effect's own transaction, so a rollback frees the token.
CREATE TABLE calls.token_used (
    iss text NOT NULL,
    jti text NOT NULL,
    at timestamptz NOT NULL DEFAULT public.clock_now(),
    PRIMARY KEY (iss, jti)
);

GRANT SELECT, INSERT ON calls.key, calls.key_closed, calls.token_used TO tools_returns, tools_notices;

CREATE FUNCTION calls.lock_key(call jsonb) RETURNS void LANGUAGE sql VOLATILE
    RETURN pg_advisory_xact_lock(hashtextextended((call ->> 'tenant') || '/' || (call ->> 'key'), 1));

CREATE FUNCTION calls.closed_through(call jsonb) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT max(c.through) FROM calls.key_closed AS c
                     WHERE c.tenant_id = call ->> 'tenant' AND c.idempotency_key = call ->> 'key'), 0);
END $$;

CREATE FUNCTION calls.owned(call jsonb) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM orders.owned AS o WHERE o.tenant_id = call ->> 'tenant'
                   AND o.customer_id = call ->> 'customer' AND o.order_id = call ->> 'resource');
END $$;

-- A write's first statement. Every refusal is decided before anything is written, so a refused call leaves
-- nothing behind; the token's row comes last and makes a second use of the token wait for the first one's end.
CREATE FUNCTION calls.claim(call jsonb, OUT code text, OUT replayed boolean) LANGUAGE plpgsql AS $$
DECLARE
    known record;
BEGIN
    code := calls.gate(call);
    IF code IS NULL AND NOT calls.owned(call) THEN
        code := 'not_found';
    END IF;
    IF code IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM calls.lock_key(call);
    SELECT k.tool, k.customer_id, k.arguments_sha256 INTO known FROM calls.key AS k
    WHERE k.tenant_id = call ->> 'tenant' AND k.idempotency_key = call ->> 'key';
    replayed := FOUND;
    code := CASE
        WHEN (call ->> 'attempt')::integer <= calls.closed_through(call) THEN 'attempt_superseded'
        WHEN replayed AND (known.tool, known.customer_id, known.arguments_sha256)
            <> (call ->> 'tool', call ->> 'customer', call ->> 'arguments_sha256') THEN 'key_reused'
    END;
    IF code IS NOT NULL THEN
        RETURN;
    END IF;
    INSERT INTO calls.token_used (iss, jti) VALUES (call ->> 'iss', call ->> 'jti') ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        code := 'token_used';
    ELSIF NOT replayed THEN
        INSERT INTO calls.key (tenant_id, idempotency_key, tool, customer_id, arguments_sha256)
        VALUES (call ->> 'tenant', call ->> 'key', call ->> 'tool', call ->> 'customer', call ->> 'arguments_sha256');
    END IF;
END $$;

-- A look-up's last word, under the key's lock: where the key has made nothing, its attempt and all earlier
-- ones are void from here on. Gives up to which attempt the key is closed.
CREATE FUNCTION calls.close_key(call jsonb) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM calls.key AS k
                   WHERE k.tenant_id = call ->> 'tenant' AND k.idempotency_key = call ->> 'key') THEN
        INSERT INTO calls.key_closed (tenant_id, idempotency_key, through)
        VALUES (call ->> 'tenant', call ->> 'key', (call ->> 'attempt')::integer) ON CONFLICT DO NOTHING;
    END IF;
    RETURN calls.closed_through(call);
END $$;

GRANT EXECUTE ON FUNCTION calls.lock_key(jsonb), calls.closed_through(jsonb), calls.owned(jsonb),
    calls.claim(jsonb), calls.close_key(jsonb) TO tools_returns, tools_notices;
