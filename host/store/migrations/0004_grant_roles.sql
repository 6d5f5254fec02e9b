-- The worker's role reads, and writes through the functions alone; the auditor reads what it compares.
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC;

GRANT USAGE ON SCHEMA public TO host_rt, host_auditor;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO host_rt;
GRANT EXECUTE ON FUNCTION clock_now(), stopped(text), commit_steps(jsonb), accept_case(jsonb),
    renew_lease(uuid, bigint, text, double precision), count_broken_drive(uuid, integer), register_external_task(jsonb) TO host_rt;

GRANT SELECT ON effect, checkpoint, legal_transition, external_task, schema_version TO host_auditor;
-- what was asked and answered may hold a customer's own words; what has to be compared does not
GRANT SELECT (workflow_id, step, step_id, call_id, tool, contract_version, fingerprint, execution_state, proposed_at,
    authorized_at, started_at, returned_at, delivered_at, verified_at) ON call TO host_auditor;
GRANT SELECT (workflow_id, step, n, purpose, tool, jti, started_at, ended_at, outcome) ON attempt TO host_auditor;
GRANT SELECT (workflow_id, n, subject, rule_version, outcome, reason, at) ON decision TO host_auditor;
GRANT SELECT (workflow_id, tenant_id, kind, release, state, control_state, reason, version, seq, created_at, updated_at)
    ON workflow TO host_auditor;
GRANT EXECUTE ON FUNCTION clock_now() TO host_auditor;

-- The queue is procrastinate's own; the worker drives it, and finds a workflow's pending wake-up by its id.
GRANT SELECT, INSERT, UPDATE, DELETE ON procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers,
    procrastinate_workers TO host_rt;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO host_rt;
DO $$
DECLARE f regprocedure;
BEGIN
    FOR f IN SELECT oid::regprocedure FROM pg_proc WHERE proname LIKE 'procrastinate\_%' LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO host_rt', f);
    END LOOP;
END $$;
CREATE INDEX procrastinate_job_workflow ON procrastinate_jobs ((args ->> 'workflow_id'))
    WHERE status = 'todo';
