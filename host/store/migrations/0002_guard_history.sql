-- What code promises about histories, the database makes impossible to break, for raw SQL too.

-- A history is a chain: each checkpoint starts where the one before it ended, by a move of its own kind and release.
CREATE FUNCTION check_chain() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    broken  text;
    outside boolean;  -- somebody else than the engine moved
BEGIN
    -- A few rows at a time: OFFSET 0 has each looked up by its keys, so that no table is ever read whole. What is not
    -- there is no match.
    SELECT min(a.workflow_id || '/' || a.seq) FILTER (
            WHERE (m.kind = w.kind AND m.release = w.release
               AND a.seq <= w.seq  -- the row has moved already, in this very transaction
               AND (a.seq = 1 OR pm.move_id IS NOT NULL)
               AND coalesce(pm.control_to, '') = m.control_from
               AND coalesce(pm.business_to, '') = m.business_from
               -- a retry goes back to the very state that it left
               AND (m.event <> 'due' OR (pm.event = 'transient' AND pm.business_from = m.business_to))) IS NOT TRUE),
           bool_or(m.actor <> 'engine')
      INTO broken, outside
      FROM added a
      LEFT JOIN LATERAL (SELECT * FROM legal_transition WHERE move_id = a.move_id OFFSET 0) m ON true
      LEFT JOIN LATERAL (SELECT kind, release, seq FROM workflow WHERE workflow_id = a.workflow_id OFFSET 0) w ON true
      LEFT JOIN LATERAL (SELECT move_id FROM checkpoint
                          WHERE workflow_id = a.workflow_id AND seq = a.seq - 1 OFFSET 0) p ON true
      LEFT JOIN LATERAL (SELECT * FROM legal_transition WHERE move_id = p.move_id OFFSET 0) pm ON true;
    IF broken IS NULL AND outside THEN
        SELECT min(a.workflow_id || '/' || a.seq) INTO broken
          FROM added a
          JOIN legal_transition m ON m.move_id = a.move_id
          LEFT JOIN checkpoint p ON p.workflow_id = a.workflow_id AND p.seq = a.seq - 1
          LEFT JOIN legal_transition pm ON pm.move_id = p.move_id
         -- a retry is ended by a clock only where that clock would have ended the state that it left
         WHERE (m.event <> 'due' AND m.actor = 'timer' AND pm.event = 'transient' AND NOT EXISTS (
                   SELECT FROM legal_transition x WHERE x.kind = m.kind AND x.release = m.release
                      AND x.event = m.event AND x.actor = m.actor AND x.business_from = pm.business_from))
            -- an approver's move is one that a recorded decision makes, about what was asked for last
            OR (m.actor = 'approver' AND NOT EXISTS (
                   SELECT FROM approval d WHERE d.workflow_id = a.workflow_id
                      AND d.version = (SELECT max(r.version) FROM approval_request r WHERE r.workflow_id = a.workflow_id)
                      AND d.decision = CASE m.event WHEN 'approved' THEN 'approve' ELSE 'deny' END))
            -- nobody's time is up before it is
            OR (m.event = 'expired' AND EXISTS (
                   SELECT FROM approval_request r WHERE r.workflow_id = a.workflow_id AND r.expires_at > clock_now()))
            -- no clock, approver or operator moves a row whose effect has no outcome
            OR (m.actor <> 'engine' AND EXISTS (
                   SELECT FROM effect e WHERE e.workflow_id = a.workflow_id AND e.outcome IS NULL));
    END IF;
    IF broken IS NOT NULL THEN
        RAISE EXCEPTION 'checkpoint % does not continue its history', broken USING ERRCODE = 'KS010';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER checkpoint_chain AFTER INSERT ON checkpoint
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION check_chain();

-- The row equals the fold of its history, and a successful end means verified effects. The chain lets no history run
-- ahead of its row and `never_back` lets no row go back, so the one checkpoint that the row names is the last.
CREATE FUNCTION check_fold() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp
SET enable_seqscan = off AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM checkpoint c JOIN legal_transition m USING (move_id)
         WHERE c.workflow_id = NEW.workflow_id AND c.seq = NEW.seq
           AND m.control_to = NEW.control_state AND m.business_to = NEW.state
           AND (NEW.resume_state IS NULL OR (m.event = 'transient' AND m.business_from = NEW.resume_state))) THEN
        RAISE EXCEPTION 'workflow % does not stand where its history ends', NEW.workflow_id USING ERRCODE = 'KS011';
    END IF;
    IF NEW.control_state = 'completed' THEN
        IF EXISTS (
            SELECT FROM expected_effect x
             WHERE x.kind = NEW.kind AND x.release = NEW.release AND x.success = NEW.state
               AND (NOT EXISTS (SELECT FROM effect e WHERE e.workflow_id = NEW.workflow_id
                                   AND e.name = x.name AND e.verified_at IS NOT NULL)
                    OR EXISTS (SELECT FROM effect e WHERE e.workflow_id = NEW.workflow_id
                                  AND (e.outcome IS NULL OR (e.outcome = 'succeeded' AND e.verified_at IS NULL))))) THEN
            RAISE EXCEPTION 'workflow % ends as done with an effect that is not verified', NEW.workflow_id
                USING ERRCODE = 'KS012';
        END IF;
    END IF;
    IF NEW.control_state IN ('needs_human', 'failed') OR 'COMPENSATION_REQUIRED' IN (NEW.state, NEW.resume_state) THEN
        IF EXISTS (SELECT FROM compensation c WHERE c.workflow_id = NEW.workflow_id AND c.state = 'required')
           IS DISTINCT FROM ('COMPENSATION_REQUIRED' IN (NEW.state, coalesce(NEW.resume_state, ''))) THEN
            RAISE EXCEPTION 'something of workflow % is to be undone, or not, other than its state says', NEW.workflow_id
                USING ERRCODE = 'KS012';
        END IF;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER workflow_fold
    AFTER INSERT OR UPDATE OF seq, state, control_state, resume_state, kind, release ON workflow
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_fold();

CREATE FUNCTION refuse_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'workflow % does not go back', NEW.workflow_id USING ERRCODE = 'KS011';
END $$;
CREATE TRIGGER never_back BEFORE UPDATE ON workflow FOR EACH ROW
    WHEN (NEW.seq < OLD.seq OR NEW.version < OLD.version OR NEW.fence < OLD.fence) EXECUTE FUNCTION refuse_back();

-- Histories, decisions and the audit are appended to and never changed; an outcome is written once.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'KS013';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON checkpoint FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON offer FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON decision FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON refusal FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_change();
-- what was delivered is taken out of the outbox, and never said otherwise
CREATE TRIGGER fixed BEFORE UPDATE ON outbox FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON external_task FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON expected_effect FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON legal_transition FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE ON attempt FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE ON call FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE ON effect FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE ON workflow FOR EACH ROW EXECUTE FUNCTION refuse_change();
-- what a row is about never changes, only where it stands
CREATE TRIGGER fixed BEFORE UPDATE OF workflow_id, step, undoes, call_id, tool, contract_version, arguments, fingerprint, proposed_at
    ON call FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER fixed BEFORE UPDATE OF workflow_id, tenant_id, kind, release, request_id, body_sha256, principal, customer,
    resource, case_body, requested_at, order_snapshot, policy, authz, supersedes, created_at
    ON workflow FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER fixed BEFORE UPDATE OF workflow_id, step, attempt, name, tenant_id, idempotency_key, arguments_sha256, units,
    decision_n, committed_in, opened_at
    ON effect FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER fixed BEFORE UPDATE OF workflow_id, step, n, purpose, tool, jti, started_at
    ON attempt FOR EACH ROW EXECUTE FUNCTION refuse_change();
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['workflow', 'checkpoint', 'offer', 'decision', 'call', 'attempt', 'effect', 'refusal', 'audit',
                             'legal_transition', 'expected_effect', 'external_task'] LOOP
        EXECUTE format('CREATE TRIGGER never_emptied BEFORE TRUNCATE ON %I
                        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', t);
    END LOOP;
END $$;

CREATE FUNCTION check_outcome_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the outcome of %/% was written before', OLD.workflow_id, OLD.step USING ERRCODE = 'KS014';
END $$;
CREATE TRIGGER outcome_once BEFORE UPDATE ON effect FOR EACH ROW
    WHEN (OLD.outcome IS NOT NULL AND (NEW.outcome IS DISTINCT FROM OLD.outcome
          OR NEW.external_id IS DISTINCT FROM OLD.external_id
          OR (OLD.verified_at IS NOT NULL AND NEW.verified_at IS DISTINCT FROM OLD.verified_at)
          OR (OLD.mismatch IS NOT NULL AND NEW.mismatch IS DISTINCT FROM OLD.mismatch)))
    EXECUTE FUNCTION check_outcome_once();
CREATE TRIGGER outcome_once BEFORE UPDATE ON attempt FOR EACH ROW
    WHEN (OLD.outcome IS NOT NULL) EXECUTE FUNCTION check_outcome_once();

-- The transaction that wrote a row is a fact, not a claim of the one who writes.
CREATE FUNCTION stamp_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.committed_in := pg_current_xact_id();
    RETURN NEW;
END $$;
CREATE TRIGGER stamped BEFORE INSERT ON decision FOR EACH ROW EXECUTE FUNCTION stamp_transaction();

-- One key means one intention: what is sent again is what was sent. And no effect without an allow decision, written
-- by the very transaction that writes the intent.
CREATE FUNCTION check_intent() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    NEW.committed_in := pg_current_xact_id();
    IF NOT EXISTS (SELECT FROM decision d WHERE d.workflow_id = NEW.workflow_id AND d.n = NEW.decision_n
                      AND d.outcome = 'allow' AND d.committed_in = NEW.committed_in
                      AND d.facts ->> 'tool_name' = NEW.name) THEN
        RAISE EXCEPTION 'nothing allows the effect % of workflow %', NEW.name, NEW.workflow_id USING ERRCODE = 'KS016';
    END IF;
    IF EXISTS (SELECT FROM effect e WHERE e.workflow_id = NEW.workflow_id AND e.idempotency_key = NEW.idempotency_key
                  AND (e.name, e.arguments_sha256) <> (NEW.name, NEW.arguments_sha256)) THEN
        RAISE EXCEPTION 'the key % belongs to another request', NEW.idempotency_key USING ERRCODE = 'KS015';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER intended BEFORE INSERT ON effect FOR EACH ROW EXECUTE FUNCTION check_intent();

-- A call leaves only with the permission that its own transaction wrote down, for this very tool.
CREATE FUNCTION check_permission() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM decision d WHERE d.workflow_id = NEW.workflow_id AND d.outcome = 'allow'
                      AND d.committed_in = pg_current_xact_id() AND d.facts ->> 'tool_name' = NEW.tool) THEN
        RAISE EXCEPTION 'nothing allows the call of % in workflow %', NEW.tool, NEW.workflow_id USING ERRCODE = 'KS016';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER permitted BEFORE INSERT ON attempt FOR EACH ROW WHEN (NEW.purpose = 'call')
    EXECUTE FUNCTION check_permission();
