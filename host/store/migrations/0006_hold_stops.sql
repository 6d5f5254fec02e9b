-- Stops: engaged by anybody who runs the host, lifted by its owner alone, and only over a record of what was reconciled.
CREATE TABLE stop_log (
    stop_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    act         text NOT NULL CHECK (act IN ('stop', 'resume', 'release', 'full')),
    scopes      text[] NOT NULL,
    actor       label NOT NULL,
    reason      text NOT NULL CHECK (length(reason) BETWEEN 1 AND 2000),
    cause       text NOT NULL,  -- `operator`, `restore`, or what was found
    workflow_id uuid REFERENCES workflow,  -- where it was found
    details     jsonb NOT NULL DEFAULT '{}',
    at          timestamptz NOT NULL
);

-- What stood where, when somebody asked to go on: cases per state, and the effects of each by what is known of them.
CREATE TABLE reconciliation (
    reconciliation_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    actor             label NOT NULL,
    states            jsonb NOT NULL,
    unsettled         jsonb NOT NULL,  -- the effects that nobody knows the outcome of
    at                timestamptz NOT NULL
);

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON stop_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON stop_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON reconciliation FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON reconciliation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Nothing new begins from this commit on. What was found in the same transaction may engage it twice; each is logged.
CREATE FUNCTION engage_stop(p_scopes text[], p_actor text, p_reason text, p_cause text, p_workflow uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(stop_lock_key());
    INSERT INTO stop (scope, engaged, actor, reason, at)
    SELECT s, true, p_actor, p_reason, clock_now() FROM unnest(p_scopes || ARRAY['parallel']) s
    ON CONFLICT (scope) DO UPDATE
        SET engaged = true, actor = excluded.actor, reason = excluded.reason, at = excluded.at
      WHERE NOT stop.engaged;  -- who stopped it first, and why, stays
    INSERT INTO stop_log (act, scopes, actor, reason, cause, workflow_id, at)
    VALUES ('stop', p_scopes, p_actor, p_reason, p_cause, p_workflow, clock_now());
    INSERT INTO audit (workflow_id, actor, action, resource, result, details, at)
    VALUES (p_workflow, p_actor, 'stop', array_to_string(p_scopes, ','), 'engaged',
            jsonb_build_object('reason', p_reason, 'cause', p_cause), clock_now());
END $$;

REVOKE ALL ON stop_log, reconciliation FROM PUBLIC;
REVOKE ALL ON FUNCTION engage_stop(text[], text, text, text, uuid) FROM PUBLIC;
GRANT SELECT ON stop_log, reconciliation TO host_rt, host_auditor;
GRANT EXECUTE ON FUNCTION engage_stop(text[], text, text, text, uuid) TO host_rt;
