-- The ledger: what the host believes, what it tried, and what really happened, in one database.
-- Runtime roles read tables and call functions; they write nothing by hand (0004 grants).

CREATE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT clock_timestamp()';
COMMENT ON FUNCTION clock_now() IS 'The one clock for leases, expiry, due times and windows.';

-- What one value may be stands in a domain: it is looked at where a value is written, while a table's own CHECK is
-- read and planned anew by every statement on the table. What two columns owe each other stays with the table.
CREATE DOMAIN ordinal AS integer CHECK (VALUE >= 1);
CREATE DOMAIN tally AS integer CHECK (VALUE >= 0);
CREATE DOMAIN milliseconds AS bigint CHECK (VALUE >= 0);
CREATE DOMAIN label AS text CHECK (length(VALUE) BETWEEN 1 AND 80);
CREATE DOMAIN planner_id AS text CHECK (length(VALUE) BETWEEN 1 AND 250);
CREATE DOMAIN hex_digest AS text CHECK (VALUE ~ '^[0-9a-f]{64}$');
CREATE DOMAIN decision_subject AS text CHECK (VALUE IN ('authorization', 'business'));
CREATE DOMAIN execution_state AS text CHECK (VALUE IN
    ('requested', 'waiting_for_approval', 'running', 'succeeded', 'verified', 'failed', 'unknown'));
CREATE DOMAIN request_purpose AS text CHECK (VALUE IN ('call', 'verification', 'reconciliation'));
CREATE DOMAIN effect_outcome AS text CHECK (VALUE IN ('succeeded', 'rejected', 'absent'));

-- Every checkpoint that may ever be written; filled from the workflow files when the host migrates.
CREATE TABLE legal_transition (
    move_id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          text NOT NULL,
    release       text NOT NULL,
    control_from  text NOT NULL,
    control_to    text NOT NULL,
    business_from text NOT NULL,
    business_to   text NOT NULL,
    event         text NOT NULL,
    actor         text NOT NULL CHECK (actor IN ('engine', 'approver', 'timer', 'operator')),
    UNIQUE (kind, release, control_from, control_to, business_from, business_to, event, actor)
);

-- What has to be verified before a workflow of this kind may stand in its successful end.
CREATE TABLE expected_effect (
    kind    text NOT NULL,
    release text NOT NULL,
    success text NOT NULL,
    name    text NOT NULL,
    PRIMARY KEY (kind, release, name)
);

CREATE TABLE workflow (
    workflow_id       uuid PRIMARY KEY,
    tenant_id         label NOT NULL,
    kind              text NOT NULL,
    release           text NOT NULL,
    request_id        label NOT NULL,
    body_sha256       hex_digest NOT NULL,
    principal         text NOT NULL,
    customer          text NOT NULL,
    resource          text NOT NULL,
    case_body         jsonb NOT NULL,
    requested_at      timestamptz NOT NULL,
    order_snapshot    text NOT NULL,
    policy            text NOT NULL,
    authz             text NOT NULL,
    supersedes        uuid REFERENCES workflow,
    -- where it stands
    state             text NOT NULL,
    control_state     text NOT NULL,
    resume_state      text,
    reason            text NOT NULL,
    version           ordinal NOT NULL,
    seq               ordinal NOT NULL,
    -- budgets; persisted, so that a restart resets none
    refusals_in_a_row tally NOT NULL DEFAULT 0,
    recoveries        tally NOT NULL DEFAULT 0,
    tokens            bigint NOT NULL DEFAULT 0,
    cost_micros       bigint NOT NULL DEFAULT 0,
    active_ms         milliseconds NOT NULL DEFAULT 0,
    active_since      timestamptz,
    entered_active_ms bigint NOT NULL DEFAULT 0,
    review_since      timestamptz,  -- set while a person has it; an index on what each step changes would slow each step
    review_closed_at  timestamptz,  -- a person has said why it stays as it is
    -- waiting and working
    wake_at           timestamptz,
    wake_reason       text,
    lease_owner       text,
    lease_until       timestamptz,
    fence             bigint NOT NULL DEFAULT 0,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    UNIQUE (request_id, tenant_id),  -- in this order a request is found by its name alone
    CHECK ((lease_owner IS NULL) = (lease_until IS NULL)),
    CHECK ((wake_at IS NULL) = (wake_reason IS NULL)),
    -- what has ended is due for nothing
    CHECK (wake_at IS NULL OR control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed')),
    -- a retry must know where it goes back to
    CHECK (state <> 'RETRY_WAIT' OR resume_state IS NOT NULL),
    -- nobody is missing in the exception queue, or stays in it
    CHECK ((state = 'NEEDS_REVIEW') = (review_since IS NOT NULL)),
    CHECK (review_closed_at IS NULL OR review_since IS NOT NULL)
) WITH (fillfactor = 70);

-- Timers are rows, not scheduled jobs: 100,000 of them must not slow a queue.
CREATE INDEX workflow_timer ON workflow (wake_at) WHERE wake_at IS NOT NULL;
-- Work whose driver may have died.
CREATE INDEX workflow_leased ON workflow (workflow_id) WHERE lease_owner IS NOT NULL;
CREATE INDEX workflow_exception ON workflow (review_since) WHERE review_since IS NOT NULL AND review_closed_at IS NULL;

-- Its workflow and its move are looked up by check_chain (0002), once for all rows of a statement: a foreign key would
-- look up and lock both for every row, and every workflow writes rows of the same few moves.
CREATE TABLE checkpoint (
    workflow_id uuid NOT NULL,
    seq         ordinal NOT NULL,
    move_id     integer NOT NULL,
    reason      text NOT NULL,
    evidence    text[] NOT NULL,
    at          timestamptz NOT NULL,
    -- of the first move that a turn of the planner led to: the digest of what it was shown, and what it gave, masked
    offered     bytea,
    said        jsonb,
    PRIMARY KEY (workflow_id, seq)
);

-- The tool definitions that planners were shown together, as they were shown them; each such set once, under its digest.
CREATE TABLE offer (
    sha256      bytea PRIMARY KEY CHECK (length(sha256) = 32),
    definitions jsonb NOT NULL,
    at          timestamptz NOT NULL
);

CREATE TABLE decision (
    workflow_id  uuid NOT NULL REFERENCES workflow,
    n            ordinal NOT NULL,
    subject      decision_subject NOT NULL,
    rule_version text NOT NULL,
    facts        jsonb NOT NULL,
    outcome      text NOT NULL,
    reason       text NOT NULL,
    at           timestamptz NOT NULL,
    committed_in xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (workflow_id, n),
    CHECK (outcome <> 'allow' OR subject = 'authorization')  -- a business finding allows nothing
);

CREATE TABLE call (
    workflow_id      uuid NOT NULL REFERENCES workflow,
    step             ordinal NOT NULL,
    step_id          text GENERATED ALWAYS AS (workflow_id::text || '.' || step::text) STORED,
    undoes           integer CHECK (undoes >= 1),  -- the step whose effect this one undoes; code's call, no planner's
    -- the planner's own id; one id, one step
    call_id          planner_id NOT NULL,
    tool             text NOT NULL,
    contract_version text NOT NULL,
    arguments        jsonb NOT NULL,
    fingerprint      hex_digest NOT NULL,
    execution_state  execution_state NOT NULL,
    result           jsonb,
    error            jsonb,
    proposed_at      timestamptz NOT NULL,
    authorized_at    timestamptz,
    started_at       timestamptz,
    returned_at      timestamptz,
    delivered_at     timestamptz,
    verified_at      timestamptz,
    PRIMARY KEY (workflow_id, step),
    UNIQUE (workflow_id, call_id),
    CHECK (execution_state <> 'verified' OR verified_at IS NOT NULL)
);

-- a call is looked for by its own id alone
CREATE INDEX call_by_id ON call (call_id);

-- One row per request that leaves the host: a call's attempts, its verifications and reconciliations.
CREATE TABLE attempt (
    workflow_id uuid NOT NULL,
    step        integer NOT NULL,
    n           ordinal NOT NULL,
    purpose     request_purpose NOT NULL,
    tool        text NOT NULL,
    jti         text NOT NULL UNIQUE,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    outcome     text,
    error       jsonb,
    PRIMARY KEY (workflow_id, step, n),
    FOREIGN KEY (workflow_id, step) REFERENCES call,
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);

-- The effect ledger: one row per intent that was sent, under the key of its business intention.
CREATE TABLE effect (
    workflow_id      uuid NOT NULL,
    step             integer NOT NULL,
    attempt          ordinal NOT NULL,
    name             text NOT NULL,
    tenant_id        text NOT NULL,
    idempotency_key  text NOT NULL,
    arguments_sha256 text NOT NULL,
    units            text[] NOT NULL,
    decision_n       integer NOT NULL,
    committed_in     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    outcome          effect_outcome,
    external_id      text,
    verified_at      timestamptz,
    mismatch         jsonb,
    opened_at        timestamptz NOT NULL,
    closed_at        timestamptz,
    PRIMARY KEY (workflow_id, step, attempt),
    FOREIGN KEY (workflow_id, step) REFERENCES call,
    FOREIGN KEY (workflow_id, decision_n) REFERENCES decision,  -- and an allowing one of this transaction (0002)
    CHECK ((outcome IS NULL) = (closed_at IS NULL)),
    CHECK (outcome IS DISTINCT FROM 'succeeded' OR external_id IS NOT NULL),
    CHECK (verified_at IS NULL OR (outcome IS NOT DISTINCT FROM 'succeeded' AND mismatch IS NULL))
);
-- at most one effect in flight per workflow
CREATE UNIQUE INDEX effect_in_flight ON effect (workflow_id) WHERE outcome IS NULL;
-- one key, one effect
CREATE UNIQUE INDEX effect_of_key ON effect (idempotency_key)
    WHERE outcome IS DISTINCT FROM 'rejected' AND outcome IS DISTINCT FROM 'absent';
-- who else is in doubt
CREATE INDEX effect_in_doubt ON effect (tenant_id) WHERE outcome IS NULL;
-- what was made is one intention's: no look-up makes another case's number this one's
CREATE UNIQUE INDEX effect_external ON effect (external_id, name, tenant_id) WHERE external_id IS NOT NULL;

-- Proposals that came to nothing: recorded, told to the planner, counted.
CREATE TABLE refusal (
    workflow_id uuid NOT NULL REFERENCES workflow,
    n           ordinal NOT NULL,
    code        text NOT NULL,
    message     text NOT NULL,
    call_id     text,
    tool        text,
    arguments   jsonb,
    at          timestamptz NOT NULL,
    PRIMARY KEY (workflow_id, n)
);

CREATE TABLE audit (
    audit_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workflow_id uuid REFERENCES workflow,
    actor       text NOT NULL,
    action      text NOT NULL,
    resource    text NOT NULL,
    result      text NOT NULL,
    details     jsonb NOT NULL,
    at          timestamptz NOT NULL
);
CREATE INDEX audit_workflow ON audit (workflow_id);

CREATE TABLE outbox (
    workflow_id uuid NOT NULL REFERENCES workflow,
    seq         integer NOT NULL,
    topic       text NOT NULL,
    payload     jsonb NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (workflow_id, seq)
);

-- What planners have cost, day by day (UTC), in millionths of the currency of the daily limit.
CREATE TABLE planner_cost (
    day         date PRIMARY KEY,
    cost_micros bigint NOT NULL CHECK (cost_micros >= 0)
);

-- A missing row reads as stopped. `parallel`: one workflow at a time, as it is after a stop was lifted.
CREATE TABLE stop (
    scope   text PRIMARY KEY CHECK (scope IN ('new_work', 'updates', 'reads', 'parallel')),
    engaged boolean NOT NULL,
    actor   text NOT NULL,
    reason  text NOT NULL,
    at      timestamptz NOT NULL
);
INSERT INTO stop VALUES
    ('new_work', false, 'migration', 'first set-up', clock_now()),
    ('updates', false, 'migration', 'first set-up', clock_now()),
    ('reads', false, 'migration', 'first set-up', clock_now()),
    ('parallel', false, 'migration', 'first set-up', clock_now());

CREATE FUNCTION stopped(p_scope text) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT coalesce((SELECT engaged FROM stop WHERE scope = p_scope), true) $$;

-- Tokens for outside hosts: an external task, found again by its token's id.
CREATE TABLE external_task (
    jti       text PRIMARY KEY,
    task_id   text NOT NULL,
    tenant_id text NOT NULL,
    principal text NOT NULL,
    customer  text NOT NULL,
    scopes    text[] NOT NULL,
    tool      text,
    resource  text,
    idempotency_key text,
    issued_by text NOT NULL,
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
-- which are good still
CREATE INDEX external_task_expiry ON external_task (expires_at);
