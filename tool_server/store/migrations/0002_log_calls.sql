-- Every call, answered or refused, and the operator's two switches. All append-only: no role may change a row.
CREATE SCHEMA calls;
GRANT USAGE ON SCHEMA calls TO tools_orders, tools_policies, tools_returns, tools_notices, tools_auditor;

-- `outcome` is `ok`, a code of the error page, or `begun`: the call started an effect that no transaction can
-- hold, and a later row of the same token tells its end. Arguments are kept as a digest only.
CREATE TABLE calls.log (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT public.clock_now(),
    iss text NOT NULL,
    sub text NOT NULL,
    client_id text NOT NULL,
    kid text NOT NULL,
    jti text NOT NULL,
    use text NOT NULL CHECK (use IN ('call', 'probe', 'external')),
    purpose text CHECK (purpose IN ('verification', 'reconciliation')),
    tenant_id text NOT NULL,
    task_id text NOT NULL,
    tool text NOT NULL,
    version text,
    resource text,
    arguments_sha256 text CHECK (arguments_sha256 ~ '^[0-9a-f]{64}$'),
    idempotency_key text,
    attempt integer CHECK (attempt >= 1),
    outcome text NOT NULL,
    duration_us bigint NOT NULL CHECK (duration_us >= 0)
);
CREATE INDEX log_jti ON calls.log (jti);

-- The newest row of a tool decides. No row means enabled: a tool exists by its contract, this only removes it.
CREATE TABLE calls.tool_switch (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT public.clock_now(),
    tool text NOT NULL,
    enabled boolean NOT NULL,
    actor text NOT NULL
);
CREATE INDEX tool_switch_newest ON calls.tool_switch (tool, seq DESC);

CREATE TABLE calls.revocation (
    kind text NOT NULL CHECK (kind IN ('kid', 'jti')),
    value text NOT NULL,
    at timestamptz NOT NULL DEFAULT public.clock_now(),
    actor text NOT NULL,
    PRIMARY KEY (kind, value)
);

GRANT INSERT ON calls.log TO tools_orders, tools_policies, tools_returns, tools_notices;
GRANT SELECT ON calls.tool_switch, calls.revocation TO tools_orders, tools_policies, tools_returns, tools_notices;
GRANT SELECT ON calls.log TO tools_auditor;

-- What is refused whatever the call asks for; read inside the call's own statement, so it acts on the next call.
CREATE FUNCTION calls.gate(call jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM calls.revocation WHERE kind = 'kid' AND value = call ->> 'kid')
       OR EXISTS (SELECT FROM calls.revocation WHERE kind = 'jti' AND value = call ->> 'jti') THEN
        RETURN 'token_revoked';
    END IF;
    IF NOT coalesce((SELECT s.enabled FROM calls.tool_switch AS s WHERE s.tool = call ->> 'tool'
                     ORDER BY s.seq DESC LIMIT 1), true) THEN
        RETURN 'tool_disabled';
    END IF;
    RETURN NULL;
END $$;

-- `spent_us` is what the server had spent on the call before this statement reached the database.
CREATE FUNCTION calls.write_log(call jsonb, outcome text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calls.log (iss, sub, client_id, kid, jti, use, purpose, tenant_id, task_id, tool, version, resource,
                           arguments_sha256, idempotency_key, attempt, outcome, duration_us)
    SELECT c.iss, c.sub, c.client_id, c.kid, c.jti, c.use, c.purpose, c.tenant, c.task_id, c.tool, c.version,
           c.resource, c.arguments_sha256, c.key, c.attempt, write_log.outcome,
           c.spent_us + (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::bigint
    FROM jsonb_to_record(call) AS c (
        iss text, sub text, client_id text, kid text, jti text, use text, purpose text, tenant text, task_id text,
        tool text, version text, resource text, arguments_sha256 text, key text, attempt integer, spent_us bigint);
END $$;

-- A read's one statement: `selected` stands beside it, bounded by tenant and customer; NULL is not found,
-- an object with the member `refused` is a refusal of that code.
CREATE FUNCTION calls.answer(call jsonb, selected jsonb, OUT code text, OUT result jsonb) LANGUAGE plpgsql AS $$
BEGIN
    code := calls.gate(call);
    IF code IS NULL THEN
        code := CASE WHEN selected IS NULL THEN 'not_found' ELSE selected ->> 'refused' END;
        result := selected;
    END IF;
    PERFORM calls.write_log(call, coalesce(code, 'ok'));
END $$;

-- A call that was refused elsewhere; what the gate says outranks it.
CREATE FUNCTION calls.refuse(call jsonb, refusal text, OUT code text) LANGUAGE plpgsql AS $$
BEGIN
    code := coalesce(calls.gate(call), refusal);
    PERFORM calls.write_log(call, code);
END $$;

GRANT EXECUTE ON FUNCTION calls.gate(jsonb), calls.write_log(jsonb, text), calls.answer(jsonb, jsonb),
    calls.refuse(jsonb, text) TO tools_orders, tools_policies, tools_returns, tools_notices;
