-- The policy family: versions of the return rules. A version never changes; a change is a new version.
CREATE SCHEMA policies;
GRANT USAGE ON SCHEMA policies TO tools_policies, tools_returns;

CREATE TABLE policies.versions (
    version text PRIMARY KEY,
    owner text NOT NULL,
    effective_from timestamptz NOT NULL UNIQUE,
    effective_until timestamptz,
    zone text NOT NULL,
    content_sha256 text NOT NULL,
    CHECK (effective_until > effective_from)
);

-- Two rows of one category that disagree are a conflict that a person decides, so `source` is in the key.
CREATE TABLE policies.rules (
    version text NOT NULL REFERENCES policies.versions,
    category text NOT NULL,
    source text NOT NULL,
    window_days integer NOT NULL CHECK (window_days BETWEEN 0 AND 3650),
    dangerous boolean NOT NULL,
    final_sale boolean NOT NULL,
    PRIMARY KEY (version, category, source)
);

CREATE TABLE policies.amounts (
    version text NOT NULL REFERENCES policies.versions,
    kind text NOT NULL CHECK (kind IN ('approval_threshold', 'return_fee')),
    currency orders.currency NOT NULL,
    amount orders.minor NOT NULL,
    PRIMARY KEY (version, kind, currency)
);
