-- Stops: engaged by anybody who runs the host, lifted by its owner alone, and only over a record of what was reconciled.
CREATE TABLE stop_log (
    stop_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    act         text NOT NULL CHECK (act IN ('stop', 'resume', 'release', 'full')),
    scopes      text[] NOT NULL CHECK (cardinality(scopes) > 0),
    actor       label NOT NULL,
    reason      text NOT NULL CHECK (length(reason) BETWEEN 1 AND 2000),
    cause       label NOT NULL,  -- `operator`, `restore`, or what was found
    workflow_id uuid REFERENCES workflow,  -- where it was found
    details     jsonb NOT NULL DEFAULT '{}',
    at          timestamptz NOT NULL
);

-- What stood where, when somebody asked to go on: cases per state, and the effects of each by what is known of them.
CREATE TABLE reconciliation (
    reconciliation_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    actor             label NOT NULL,
    details           jsonb NOT NULL,
    after_stop        bigint NOT NULL,  -- the newest act of stop_log before anything was looked up
    states            jsonb NOT NULL,
    unsettled         jsonb NOT NULL,  -- the effects that nobody knows the outcome of
    accepted          jsonb NOT NULL,  -- those that a named person has closed the review of
    to_undo           jsonb NOT NULL,  -- what is still to be undone
    outside           jsonb NOT NULL,  -- writes of outside hosts whose token the stop met: nothing here can look them up
    at                timestamptz NOT NULL
);

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON stop_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON stop_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON reconciliation FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON reconciliation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Nothing new begins from this commit on. What was found in the same transaction may engage it twice; each is logged.
-- Not `behind` those that are committing now it does not wait for them: whoever does not let go cannot put it off.
CREATE FUNCTION engage_stop(p_scopes text[], p_actor text, p_reason text, p_cause text, p_workflow uuid,
                            p_details jsonb DEFAULT '{}', p_behind boolean DEFAULT true) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM refuse_old_snapshot();
    IF p_behind THEN
        PERFORM pg_advisory_xact_lock(stop_lock_key());
    END IF;
    INSERT INTO stop (scope, engaged, actor, reason, at)
    SELECT s, true, p_actor, p_reason, clock_now() FROM unnest(p_scopes || ARRAY['parallel']) s
    ON CONFLICT (scope) DO UPDATE
        SET engaged = true, actor = excluded.actor, reason = excluded.reason, at = excluded.at
      WHERE NOT stop.engaged;  -- who stopped it first, and why, stays
    PERFORM log_stop_act('stop', 'engaged', p_scopes, p_actor, p_reason, p_cause, p_workflow, p_details);
END $$;

-- The database's processes that hold the lock under which something is begun, until it is committed.
CREATE FUNCTION passed_by_stop() RETURNS SETOF integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT DISTINCT l.pid FROM pg_locks l
     WHERE l.locktype = 'advisory' AND l.granted AND l.pid <> pg_backend_pid() AND l.objsubid = 1
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND (l.classid::bigint << 32) + l.objid::bigint = stop_lock_key()
     ORDER BY l.pid
$$;

CREATE FUNCTION log_stop_act(p_act text, p_result text, p_scopes text[], p_actor text, p_reason text, p_cause text,
                             p_workflow uuid, p_details jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO stop_log (act, scopes, actor, reason, cause, workflow_id, details, at)
    VALUES (p_act, p_scopes, p_actor, p_reason, p_cause, p_workflow, p_details, clock_now());
    INSERT INTO audit (workflow_id, actor, action, resource, result, details, at)
    VALUES (p_workflow, p_actor, p_act, array_to_string(p_scopes, ','), p_result,
            jsonb_build_object('reason', p_reason, 'cause', p_cause) || p_details, clock_now());
END $$;

-- What is known of each effect. Nobody knows, until somebody answers for it by closing the case's review.
CREATE VIEW effect_known AS
SELECT e.workflow_id, e.step, e.attempt, e.name, e.idempotency_key, w.state,
       CASE WHEN e.outcome = 'succeeded' AND e.verified_at IS NOT NULL THEN 'verified'
            WHEN e.outcome = 'succeeded' THEN 'made_unverified'
            WHEN e.outcome IS NOT NULL THEN e.outcome
            WHEN w.review_closed_at IS NOT NULL THEN 'accepted'
            ELSE 'unknown' END AS known
  FROM effect e JOIN workflow w USING (workflow_id);

-- Count everything. Written whatever comes of it, so that who was refused can show what was known. What is looked up for
-- it may itself stop everything, so that it counts as after what was the newest act before the look-up began.
CREATE FUNCTION record_reconciliation(p_actor text, p_after bigint, p_details jsonb) RETURNS reconciliation
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE v reconciliation%ROWTYPE;
BEGIN
    INSERT INTO reconciliation (actor, details, after_stop, states, unsettled, accepted, to_undo, outside, at)
    SELECT p_actor, p_details, least(p_after, (SELECT coalesce(max(stop_id), 0) FROM stop_log)),
           (SELECT coalesce(jsonb_object_agg(c.state, jsonb_build_object('cases', c.cases, 'effects', coalesce(e.effects, '{}'))), '{}')
              FROM (SELECT state, count(*) AS cases FROM workflow GROUP BY state) c
              LEFT JOIN (SELECT k.state, jsonb_object_agg(k.known, k.n) AS effects
                           FROM (SELECT state, known, count(*) AS n FROM effect_known GROUP BY state, known) k
                          GROUP BY k.state) e USING (state)),
           (SELECT coalesce(jsonb_agg(jsonb_build_object('workflow_id', k.workflow_id, 'state', k.state, 'effect', k.name,
                                                         'idempotency_key', k.idempotency_key) ORDER BY k.workflow_id), '[]')
              FROM effect_known k WHERE k.known = 'unknown'),
           (SELECT coalesce(jsonb_agg(jsonb_build_object('workflow_id', k.workflow_id, 'effect', k.name, 'by',
                       (SELECT a.actor FROM audit a WHERE a.workflow_id = k.workflow_id AND a.action = 'review_closed'
                         ORDER BY a.audit_id DESC LIMIT 1)) ORDER BY k.workflow_id), '[]')
              FROM effect_known k WHERE k.known = 'accepted'),
           (SELECT coalesce(jsonb_agg(jsonb_build_object('workflow_id', c.workflow_id, 'due_at', c.due_at,
                                                         'released_by', c.released_by) ORDER BY c.due_at), '[]')
              FROM compensation c WHERE c.state = 'required'),
           (SELECT coalesce(jsonb_agg(jsonb_build_object('jti', x.jti, 'tool', x.tool, 'resource', x.resource,
                       'idempotency_key', x.idempotency_key, 'issued_by', x.issued_by, 'expires_at', x.expires_at)
                       ORDER BY x.expires_at, x.jti), '[]')
              FROM external_task x WHERE x.tool IS NOT NULL AND x.expires_at > coalesce(
                   (SELECT min(s.at) FROM stop_log s WHERE s.act = 'stop' AND s.stop_id > coalesce(
                           (SELECT max(r.stop_id) FROM stop_log r WHERE r.act = 'resume'), 0)), clock_now())),
           clock_now()
    RETURNING * INTO v;
    RETURN v;
END $$;

CREATE FUNCTION anything_stopped() RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT stopped('new_work') OR stopped('updates') OR stopped('reads') $$;

-- Go on: the owner's alone, over a record of what was reconciled since the newest stop. Every case that
-- has not ended is held, to be released by parts: what is queued, halted or to be tried again, and what a driver has in
-- hand, who writes nothing any more. Who waits for a person's yes goes on waiting. One case is driven at a time. Gives
-- how many are held by it.
CREATE FUNCTION lift_stop(p_actor text, p_reason text, p_reconciliation bigint, p_details jsonb) RETURNS integer
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    v_held   integer;
    v_lifted text[];
BEGIN
    PERFORM pg_advisory_xact_lock(stop_lock_key());
    IF NOT anything_stopped() THEN
        RAISE EXCEPTION 'nothing is stopped' USING ERRCODE = 'KS024';
    END IF;
    IF NOT EXISTS (SELECT FROM reconciliation r WHERE r.reconciliation_id = p_reconciliation
                      AND NOT EXISTS (SELECT FROM stop_log s WHERE s.act = 'stop' AND s.stop_id > r.after_stop)) THEN
        RAISE EXCEPTION 'it was stopped again since everything was reconciled' USING ERRCODE = 'KS025';
    END IF;
    IF EXISTS (SELECT FROM effect_known WHERE known = 'unknown') THEN
        RAISE EXCEPTION 'nobody knows the outcome of an effect' USING ERRCODE = 'KS026';
    END IF;
    IF EXISTS (SELECT FROM compensation WHERE state = 'required') THEN
        RAISE EXCEPTION 'something is still to be undone' USING ERRCODE = 'KS026';
    END IF;
    -- what a call is under way for can be held only once its answer is recorded; no call begins before this commit
    IF EXISTS (SELECT FROM workflow WHERE control_state IN ('tool_running', 'observing')) THEN
        RAISE EXCEPTION 'a call is still under way' USING ERRCODE = 'KS026';
    END IF;
    SELECT array_agg(s) INTO v_lifted FROM unnest(ARRAY['new_work', 'updates', 'reads']) s WHERE stopped(s);
    INSERT INTO stop (scope, engaged, actor, reason, at)
    SELECT s, s = 'parallel', p_actor, p_reason, clock_now() FROM unnest(v_lifted || ARRAY['parallel']) s
    ON CONFLICT (scope) DO UPDATE
        SET engaged = excluded.engaged, actor = excluded.actor, reason = excluded.reason, at = excluded.at;
    UPDATE workflow SET wake_at = coalesce(wake_at, clock_now()), wake_reason = 'stopped', lease_owner = NULL,
           lease_until = NULL, active_since = NULL, version = version + 1, fence = fence + 1
     WHERE control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed')
       AND (wake_reason IS NULL OR wake_reason NOT IN ('approval', 'compensation', 'stopped', 'stopped_reads'));
    GET DIAGNOSTICS v_held = ROW_COUNT;
    PERFORM log_stop_act('resume', 'lifted', v_lifted, p_actor, p_reason, 'operator', NULL,
                         p_details || jsonb_build_object('reconciliation', p_reconciliation, 'held', v_held));
    RETURN v_held;
END $$;

-- Let some of those that are held go on, the oldest first; gives them.
CREATE FUNCTION release_held(p_state text, p_most integer, p_actor text, p_reason text, p_details jsonb) RETURNS uuid[]
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    v_at  timestamptz := clock_now();  -- one for all, so that they are woken in their order
    v_ids uuid[];
BEGIN
    PERFORM pg_advisory_xact_lock(stop_lock_key());
    IF anything_stopped() THEN
        RAISE EXCEPTION 'work is stopped' USING ERRCODE = 'KS001';
    END IF;
    WITH chosen AS (
        SELECT workflow_id FROM workflow
         WHERE wake_at IS NOT NULL AND wake_reason IN ('stopped', 'stopped_reads') AND state = p_state
         ORDER BY created_at, workflow_id LIMIT p_most FOR UPDATE),
    freed AS (
        UPDATE workflow w SET wake_at = v_at, wake_reason = 'released' FROM chosen c
         WHERE w.workflow_id = c.workflow_id AND w.wake_reason IN ('stopped', 'stopped_reads')
        RETURNING w.workflow_id, w.created_at)
    SELECT array_agg(workflow_id ORDER BY created_at, workflow_id) INTO v_ids FROM freed;
    IF v_ids IS NOT NULL THEN
        PERFORM log_stop_act('release', 'released', ARRAY['parallel'], p_actor, p_reason, 'operator', NULL,
            p_details || jsonb_build_object('state', p_state, 'count', cardinality(v_ids), 'workflow_ids', v_ids));
    END IF;
    RETURN coalesce(v_ids, '{}');
END $$;

-- Several cases at a time again: only once nothing is stopped and nobody is held any more.
CREATE FUNCTION end_one_at_a_time(p_actor text, p_reason text, p_details jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(stop_lock_key());
    IF anything_stopped() THEN
        RAISE EXCEPTION 'work is stopped' USING ERRCODE = 'KS001';
    END IF;
    IF NOT stopped('parallel') THEN
        RAISE EXCEPTION 'several cases are driven at a time already' USING ERRCODE = 'KS024';
    END IF;
    IF EXISTS (SELECT FROM workflow WHERE wake_at IS NOT NULL AND wake_reason IN ('stopped', 'stopped_reads')) THEN
        RAISE EXCEPTION 'cases are still held' USING ERRCODE = 'KS026';
    END IF;
    INSERT INTO stop (scope, engaged, actor, reason, at) VALUES ('parallel', false, p_actor, p_reason, clock_now())
    ON CONFLICT (scope) DO UPDATE
        SET engaged = false, actor = excluded.actor, reason = excluded.reason, at = excluded.at;
    PERFORM log_stop_act('full', 'lifted', ARRAY['parallel'], p_actor, p_reason, 'operator', NULL, p_details);
END $$;

REVOKE ALL ON stop_log, reconciliation, effect_known FROM PUBLIC;
REVOKE ALL ON FUNCTION engage_stop(text[], text, text, text, uuid, jsonb, boolean), passed_by_stop(),
    record_reconciliation(text, bigint, jsonb),
    log_stop_act(text, text, text[], text, text, text, uuid, jsonb), anything_stopped(),
    lift_stop(text, text, bigint, jsonb), release_held(text, integer, text, text, jsonb),
    end_one_at_a_time(text, text, jsonb) FROM PUBLIC;
GRANT SELECT ON stop_log, reconciliation, effect_known TO host_rt, host_auditor;
GRANT EXECUTE ON FUNCTION engage_stop(text[], text, text, text, uuid, jsonb, boolean), passed_by_stop(),
    record_reconciliation(text, bigint, jsonb) TO host_rt;
