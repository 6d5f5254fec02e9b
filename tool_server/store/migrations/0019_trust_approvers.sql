-- Whose signature permits a return that needs a person's yes. Only the owner, by an operator's act, writes here. A row is
-- a key with the terms on which it is trusted; other terms are a new row, and an ended row stays as it was.
CREATE TABLE returns.approvers (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kid text NOT NULL CHECK (kid ~ '^[A-Za-z0-9_-]{43}$'),
    public_key text NOT NULL CHECK (public_key ~ '^[A-Za-z0-9_-]{43}$'),
    tenant_id text NOT NULL,
    approver text NOT NULL,
    limit_amount orders.minor NOT NULL,
    limit_currency orders.currency NOT NULL,
    substitutes text[] NOT NULL,
    substitutes_after_seconds integer NOT NULL CHECK (substitutes_after_seconds BETWEEN 0 AND 86400),
    trusted_at timestamptz NOT NULL DEFAULT public.clock_now(),
    trusted_by text NOT NULL,
    ended_at timestamptz,
    ended_by text,
    ended_how text CHECK (ended_how IN ('revoked', 'replaced')),
    CHECK (num_nulls(ended_at, ended_by, ended_how) IN (0, 3))
);
-- A person has one key at a time: with two, which limit holds could be chosen by whoever signs.
CREATE UNIQUE INDEX one_standing_key_per_approver ON returns.approvers (tenant_id, approver) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX one_standing_row_per_key ON returns.approvers (kid) WHERE ended_at IS NULL;
-- Revoked is for good: a key that somebody else may hold does not come back.
CREATE UNIQUE INDEX revoked_once ON returns.approvers (kid) WHERE ended_how = 'revoked';

CREATE VIEW returns.trusted_approvers AS
SELECT tenant_id, kid, public_key, approver, limit_amount, limit_currency, substitutes, substitutes_after_seconds
FROM returns.approvers WHERE ended_at IS NULL;

-- An event counts once, for one key, whose return is made in the same transaction: without the return, no use.
CREATE TABLE returns.approvals_used (
    tenant_id text NOT NULL,
    event_id text NOT NULL,
    idempotency_key text NOT NULL,
    approver text NOT NULL,
    at timestamptz NOT NULL DEFAULT public.clock_now(),
    CONSTRAINT one_use_per_event PRIMARY KEY (tenant_id, event_id),
    CONSTRAINT one_event_per_return UNIQUE (tenant_id, idempotency_key),
    CONSTRAINT used_by_its_return FOREIGN KEY (tenant_id, idempotency_key)
        REFERENCES returns.returns (tenant_id, idempotency_key)
);

GRANT SELECT ON returns.trusted_approvers TO tools_returns;
GRANT INSERT ON returns.approvals_used TO tools_returns;
GRANT SELECT ON returns.approvers, returns.approvals_used TO tools_auditor;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON returns.approvals_used
    FOR EACH STATEMENT EXECUTE FUNCTION calls.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON returns.approvers
    FOR EACH STATEMENT EXECUTE FUNCTION calls.refuse_change();
-- What may change in a row is that it ends, once.
CREATE TRIGGER ends_once BEFORE UPDATE ON returns.approvers
    FOR EACH ROW WHEN (
        OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL
        OR (to_jsonb(OLD) - ARRAY['ended_at', 'ended_by', 'ended_how'])
            IS DISTINCT FROM (to_jsonb(NEW) - ARRAY['ended_at', 'ended_by', 'ended_how']))
    EXECUTE FUNCTION calls.refuse_change();
