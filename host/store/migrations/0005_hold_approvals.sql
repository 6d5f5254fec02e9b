-- People's decisions: whose key counts, what was asked, what was answered. One request has one answer.
CREATE TABLE approver_key (
    kid        text PRIMARY KEY,
    name       label NOT NULL,
    x          text NOT NULL,  -- the public half, as RFC 8037 writes it
    added_at   timestamptz NOT NULL,
    added_by   text NOT NULL,
    revoked_at timestamptz,
    revoked_by text
);
-- A person has one key at a time: with two, whoever signs would choose between them.
CREATE UNIQUE INDEX approver_key_standing ON approver_key (name) WHERE revoked_at IS NULL;

-- `version` is the workflow's while it waits; an approval names it, and nothing else moves the row meanwhile.
CREATE TABLE approval_request (
    workflow_id   uuid NOT NULL REFERENCES workflow,
    version       ordinal NOT NULL,
    action        jsonb NOT NULL,
    action_digest hex_digest NOT NULL,
    requested_at  timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    PRIMARY KEY (workflow_id, version),
    CHECK (expires_at > requested_at AND expires_at <= requested_at + interval '24 hours')
);

-- What nobody approved in time is found without a look at what a stop has let pile up.
CREATE INDEX workflow_unapproved ON workflow (wake_at) WHERE wake_reason = 'approval';

CREATE TABLE approval (
    event_id         text PRIMARY KEY,
    workflow_id      uuid NOT NULL,
    version          ordinal NOT NULL,
    approver         label NOT NULL,
    kid              text NOT NULL REFERENCES approver_key,
    decision         text NOT NULL CHECK (decision IN ('approve', 'deny')),
    reason           text NOT NULL,
    event            text NOT NULL,  -- as it was signed; the tool server verifies it again
    decided_at       timestamptz NOT NULL,
    recorded_at      timestamptz NOT NULL,
    approval_seconds double precision NOT NULL CHECK (approval_seconds >= 0),  -- what a person's look took
    UNIQUE (workflow_id, version),
    FOREIGN KEY (workflow_id, version) REFERENCES approval_request
);

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval_request FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON approval FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE ON approver_key FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER fixed BEFORE UPDATE OF kid, name, x, added_at, added_by ON approver_key
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER revoked_for_good BEFORE UPDATE ON approver_key
    FOR EACH ROW WHEN (OLD.revoked_at IS NOT NULL) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON approval_request FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON approval FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- No decision after its time, by the database's clock, and none by the requester or under a revoked key.
CREATE FUNCTION check_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM approval_request r JOIN workflow w USING (workflow_id)
                    WHERE r.workflow_id = NEW.workflow_id AND r.version = NEW.version
                      AND r.expires_at > clock_now() AND lower(w.principal) <> NEW.approver) THEN
        RAISE EXCEPTION 'nothing is asked of % in workflow % any more', NEW.approver, NEW.workflow_id
            USING ERRCODE = 'KS019';
    END IF;
    IF NOT EXISTS (SELECT FROM approver_key k WHERE k.kid = NEW.kid AND k.name = NEW.approver AND k.revoked_at IS NULL) THEN
        RAISE EXCEPTION 'the key % is not one of %', NEW.kid, NEW.approver USING ERRCODE = 'KS020';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER decided BEFORE INSERT ON approval FOR EACH ROW EXECUTE FUNCTION check_approval();

CREATE FUNCTION trust_approver(p_kid text, p_name text, p_x text, p_by text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    known approver_key;
BEGIN
    LOCK TABLE approver_key IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO known FROM approver_key WHERE kid = p_kid OR (name = p_name AND revoked_at IS NULL)
     ORDER BY kid = p_kid DESC LIMIT 1;
    IF known.revoked_at IS NOT NULL THEN
        RAISE EXCEPTION 'the key % was revoked by %, for good; a new key is needed', p_kid, known.revoked_by
            USING ERRCODE = 'KS023';
    ELSIF known.name <> p_name THEN
        RAISE EXCEPTION 'the key % is the one of %; a key stands for one person', p_kid, known.name
            USING ERRCODE = 'KS023';
    ELSIF known.kid <> p_kid THEN
        RAISE EXCEPTION '% has the key % already; revoke it first, a person has one key at a time', p_name, known.kid
            USING ERRCODE = 'KS023';
    END IF;
    INSERT INTO approver_key (kid, name, x, added_at, added_by) VALUES (p_kid, p_name, p_x, clock_now(), p_by)
    ON CONFLICT (kid) DO NOTHING;
    IF FOUND THEN
        INSERT INTO audit (actor, action, resource, result, details, at)
        VALUES (p_by, 'approver_trusted', p_name, 'trusted', jsonb_build_object('kid', p_kid), clock_now());
    END IF;
    RETURN FOUND;
END $$;

-- From now on nothing that the key signed counts, what it signed before included.
CREATE FUNCTION revoke_approver(p_kid text, p_by text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    whose text;
BEGIN
    UPDATE approver_key SET revoked_at = clock_now(), revoked_by = p_by WHERE kid = p_kid AND revoked_at IS NULL
    RETURNING name INTO whose;
    IF whose IS NOT NULL THEN
        INSERT INTO audit (actor, action, resource, result, details, at)
        VALUES (p_by, 'approver_revoked', whose, 'revoked', jsonb_build_object('kid', p_kid), clock_now());
    END IF;
    RETURN whose IS NOT NULL;
END $$;

REVOKE ALL ON approver_key, approval_request, approval FROM PUBLIC;
REVOKE ALL ON FUNCTION check_approval(), trust_approver(text, text, text, text), revoke_approver(text, text)
    FROM PUBLIC;
GRANT SELECT ON approver_key, approval_request, approval TO host_rt, host_auditor;
