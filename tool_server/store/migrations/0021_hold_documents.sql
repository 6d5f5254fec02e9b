-- The document family: what a claim has and what its rules require. Versioned rows that never change: a case, a
-- document, a rule set or an alias that changes is a new version beside the old. Only the owner's `load` writes here.
GRANT USAGE ON SCHEMA public TO tools_document;
GRANT EXECUTE ON FUNCTION public.clock_now() TO tools_document;
GRANT USAGE ON SCHEMA calls TO tools_document;
GRANT INSERT ON calls.log TO tools_document;
GRANT SELECT ON calls.tool_switch, calls.revocation TO tools_document;
GRANT EXECUTE ON FUNCTION calls.gate(jsonb), calls.write_log(jsonb, text), calls.answer(jsonb, jsonb),
    calls.refuse(jsonb, text) TO tools_document;

CREATE SCHEMA document;
GRANT USAGE ON SCHEMA document TO tools_document;

-- What a claim of this kind has to come with, who answers for that, and when it holds.
CREATE TABLE document.rule_sets (
    tenant_id text NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    owner text NOT NULL,
    effective_from timestamptz NOT NULL,
    effective_until timestamptz,
    required_document_codes text[] NOT NULL,
    PRIMARY KEY (tenant_id, name, version),
    CHECK (effective_until > effective_from)
);

-- A title that documents of this kind also go by. It is governed by one version of the rules, and by nobody's guess.
CREATE TABLE document.aliases (
    tenant_id text NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    title text NOT NULL,
    canonical_code text NOT NULL,
    owner text NOT NULL,
    effective_from timestamptz NOT NULL,
    effective_until timestamptz,
    PRIMARY KEY (tenant_id, name, version, title),
    FOREIGN KEY (tenant_id, name, version) REFERENCES document.rule_sets,
    CHECK (effective_until > effective_from)
);

CREATE TABLE document.cases (
    tenant_id text NOT NULL,
    case_id text NOT NULL,
    version integer NOT NULL CHECK (version >= 1),
    claimant_id text NOT NULL,
    rule_name text NOT NULL,
    rule_version text NOT NULL,
    PRIMARY KEY (tenant_id, case_id, version),
    FOREIGN KEY (tenant_id, rule_name, rule_version) REFERENCES document.rule_sets
);

-- `code` NULL: it is there, and nobody has classified it.
CREATE TABLE document.documents (
    tenant_id text NOT NULL,
    case_id text NOT NULL,
    document_id text NOT NULL,
    version integer NOT NULL CHECK (version >= 1),
    title text NOT NULL,
    code text,
    PRIMARY KEY (tenant_id, case_id, document_id, version)
);

-- The newest version of each is what holds.
CREATE VIEW document.current_cases AS
SELECT DISTINCT ON (c.tenant_id, c.case_id) c.*, c.rule_name || '@' || c.rule_version AS rule_set
FROM document.cases AS c ORDER BY c.tenant_id, c.case_id, c.version DESC;
CREATE VIEW document.current_documents AS
SELECT DISTINCT ON (d.tenant_id, d.case_id, d.document_id) d.*
FROM document.documents AS d ORDER BY d.tenant_id, d.case_id, d.document_id, d.version DESC;

GRANT SELECT ON document.rule_sets, document.aliases, document.current_cases, document.current_documents
    TO tools_document;

DO $$
DECLARE
    history text;
BEGIN
    FOREACH history IN ARRAY ARRAY['document.rule_sets', 'document.aliases', 'document.cases', 'document.documents'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %s
                        FOR EACH STATEMENT EXECUTE FUNCTION calls.refuse_change()', history);
    END LOOP;
END $$;
