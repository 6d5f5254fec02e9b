-- A durable step is one statement and one commit. Each function writes all of it or, where somebody else moved the
-- row first, nothing at all and returns no row.

-- Held shared by every commit that writes an intent and exclusively by a stop: after a stop has committed no new
-- intent commits. 'kessai' in letters, so that no other advisory lock of this database meets it.
CREATE FUNCTION stop_lock_key() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 118058463519593';

-- Most of what a step costs is here, so: each statement is planned once per session, whatever its values are, and the
-- members of the JSON are taken out one by one, since a function that stands in FROM is set up anew each time.
CREATE FUNCTION commit_step(p_id uuid, p_version integer, p_fence bigint, p jsonb)
RETURNS TABLE (version integer, fence bigint, at timestamptz, active_ms bigint, entered_active_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_at    timestamptz := clock_now();
    v_row   jsonb := p -> 'row';
    v_claim jsonb := p -> 'claim';
    v_moves jsonb := p -> 'moves';
    v_count integer := jsonb_array_length(p -> 'moves');
    v_out   record;
    x       jsonb;
    v_units text[];
    v_ended boolean;
BEGIN
    IF p -> 'attempt_opened' ->> 'purpose' = 'call' AND stopped('reads') THEN
        RAISE EXCEPTION 'calls are stopped' USING ERRCODE = 'KS004';  -- what is in doubt may still be looked up
    END IF;
    IF p ? 'effect_opened' THEN
        PERFORM pg_advisory_xact_lock_shared(stop_lock_key());
        IF stopped('updates') THEN
            RAISE EXCEPTION 'updates are stopped' USING ERRCODE = 'KS001';
        END IF;
    END IF;

    UPDATE workflow w SET
        version = w.version + 1,
        seq = w.seq + v_count,
        state = v_row ->> 'state',
        control_state = v_row ->> 'control_state',
        resume_state = v_row ->> 'resume_state',
        reason = v_row ->> 'reason',
        refusals_in_a_row = (v_row ->> 'refusals_in_a_row')::integer,
        recoveries = (v_row ->> 'recoveries')::integer,
        active_ms = w.active_ms + CASE WHEN v_claim IS NULL AND w.active_since IS NOT NULL
            THEN greatest(0, extract(epoch FROM v_at - w.active_since) * 1000)::bigint ELSE 0 END,
        active_since = CASE WHEN (v_row ->> 'release')::boolean THEN NULL ELSE v_at END,
        entered_active_ms = CASE WHEN w.state = v_row ->> 'state' THEN w.entered_active_ms ELSE
            w.active_ms + CASE WHEN v_claim IS NULL AND w.active_since IS NOT NULL
                THEN greatest(0, extract(epoch FROM v_at - w.active_since) * 1000)::bigint ELSE 0 END END,
        entered_at = CASE WHEN w.state = v_row ->> 'state' THEN w.entered_at ELSE v_at END,
        review_since = CASE WHEN v_row ->> 'state' = 'NEEDS_REVIEW' THEN coalesce(w.review_since, v_at) END,
        wake_at = v_at + make_interval(secs => (v_row ->> 'wake_after')::double precision),
        wake_reason = v_row ->> 'wake_reason',
        lease_owner = CASE WHEN (v_row ->> 'release')::boolean THEN NULL ELSE v_row ->> 'owner' END,
        lease_until = CASE WHEN (v_row ->> 'release')::boolean THEN NULL
            ELSE v_at + make_interval(secs => (v_row ->> 'lease_seconds')::double precision) END,
        fence = w.fence + CASE WHEN v_claim IS NULL THEN 0 ELSE 1 END,
        updated_at = v_at
    WHERE w.workflow_id = p_id AND w.version = p_version AND w.fence = p_fence
      -- a claim meets no live lease; a holder's own lease may have run out, its fence says whether it was taken
      AND (v_claim IS NULL OR w.lease_until IS NULL OR w.lease_until < v_at)
    RETURNING w.version, w.fence, w.seq, w.tenant_id, w.active_ms, w.entered_active_ms INTO v_out;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- a request belongs to a row that runs it; nothing begins on a workflow that has ended or waits
    IF p ? 'attempt_opened' AND NOT (v_row ->> 'control_state' = 'tool_running'
            OR (v_row ->> 'control_state' = 'observing' AND p -> 'attempt_opened' ->> 'purpose' <> 'call')) THEN
        RAISE EXCEPTION 'no request begins in %', v_row ->> 'control_state' USING ERRCODE = 'KS017';
    END IF;
    IF v_out.active_ms >= (p ->> 'active_limit_ms')::bigint THEN
        RAISE EXCEPTION 'no time is left for a call' USING ERRCODE = 'KS003';
    END IF;

    IF p ? 'effect_closed' THEN  -- before a new one opens: at most one is in flight
        x := p -> 'effect_closed';
        UPDATE effect e SET
            outcome = x ->> 'outcome',
            external_id = x ->> 'external_id',
            closed_at = coalesce(e.closed_at, v_at),
            mismatch = nullif(x -> 'mismatch', 'null'),
            verified_at = CASE WHEN (x ->> 'verified')::boolean THEN v_at END
        WHERE e.workflow_id = p_id AND e.step = (x ->> 'step')::integer AND e.attempt = (x ->> 'attempt')::integer;
    END IF;

    INSERT INTO checkpoint (workflow_id, seq, move_id, reason, evidence, at)
    SELECT p_id, v_out.seq - v_count + m.n, (m.move ->> 0)::integer, m.move ->> 1,
           ARRAY(SELECT jsonb_array_elements_text(m.move -> 2)), v_at
      FROM jsonb_array_elements(v_moves) WITH ORDINALITY AS m(move, n);

    FOR i IN 0 .. coalesce(jsonb_array_length(p -> 'decisions'), 0) - 1 LOOP
        x := p -> 'decisions' -> i;
        INSERT INTO decision (workflow_id, n, subject, rule_version, facts, outcome, reason, at)
        VALUES (p_id, (x ->> 'n')::integer, x ->> 'subject', x ->> 'rule_version', x -> 'facts', x ->> 'outcome',
                x ->> 'reason', v_at);
    END LOOP;
    FOR i IN 0 .. coalesce(jsonb_array_length(p -> 'call_updated'), 0) - 1 LOOP
        x := p -> 'call_updated' -> i;
        UPDATE call c SET
            execution_state = x ->> 'execution_state',
            result = coalesce(nullif(x -> 'result', 'null'), c.result),
            error = nullif(x -> 'error', 'null'),
            authorized_at = CASE WHEN x -> 'stamps' ? 'authorized' THEN v_at ELSE c.authorized_at END,
            started_at = CASE WHEN x -> 'stamps' ? 'started' THEN v_at ELSE c.started_at END,
            returned_at = CASE WHEN x -> 'stamps' ? 'returned' THEN v_at ELSE c.returned_at END,
            delivered_at = CASE WHEN x -> 'stamps' ? 'delivered' THEN v_at ELSE c.delivered_at END,
            verified_at = CASE WHEN x -> 'stamps' ? 'verified' THEN v_at ELSE c.verified_at END
        WHERE c.workflow_id = p_id AND c.step = (x ->> 'step')::integer;
    END LOOP;
    IF p ? 'call_opened' THEN
        x := p -> 'call_opened';
        INSERT INTO call (workflow_id, step, call_id, tool, contract_version, arguments, fingerprint, execution_state,
                          proposed_at, authorized_at, started_at)
        VALUES (p_id, (x ->> 'step')::integer, x ->> 'call_id', x ->> 'tool', x ->> 'contract_version',
                x -> 'arguments', x ->> 'fingerprint', x ->> 'execution_state', v_at,
                CASE WHEN x -> 'stamps' ? 'authorized' THEN v_at END,
                CASE WHEN x -> 'stamps' ? 'started' THEN v_at END);
    END IF;
    FOR i IN 0 .. coalesce(jsonb_array_length(p -> 'attempts_closed'), 0) - 1 LOOP
        x := p -> 'attempts_closed' -> i;
        UPDATE attempt a SET ended_at = v_at, outcome = x ->> 'outcome', error = nullif(x -> 'error', 'null')
         WHERE a.workflow_id = p_id AND a.step = (x ->> 'step')::integer AND a.n = (x ->> 'n')::integer;
    END LOOP;
    IF p ? 'attempt_opened' THEN
        x := p -> 'attempt_opened';
        INSERT INTO attempt (workflow_id, step, n, purpose, tool, jti, started_at)
        VALUES (p_id, (x ->> 'step')::integer, (x ->> 'n')::integer, x ->> 'purpose', x ->> 'tool', x ->> 'jti', v_at);
    END IF;
    IF p ? 'contested' THEN
        -- Another workflow is in doubt over the same units. One that ended so needs a person, who looks first; one that
        -- is at work will know in a moment, so a write waits for it. Locked in one order: of two that begin at once one
        -- sees the other.
        v_units := ARRAY(SELECT jsonb_array_elements_text(p -> 'contested'));
        PERFORM pg_advisory_xact_lock(hashtextextended(u.unit, 0))
           FROM (SELECT v_out.tenant_id || ' ' || unnest(v_units) AS unit ORDER BY 1) u;
        SELECT bool_or(w.control_state IN ('needs_human', 'failed', 'stopped')) INTO v_ended
          FROM effect e JOIN workflow w ON w.workflow_id = e.workflow_id
         WHERE e.tenant_id = v_out.tenant_id AND e.workflow_id <> p_id AND e.outcome IS NULL AND e.units && v_units;
        IF v_ended THEN
            RAISE EXCEPTION 'another workflow ended in doubt over these units' USING ERRCODE = 'KS002';
        ELSIF NOT v_ended AND p ? 'effect_opened' THEN
            RAISE EXCEPTION 'another workflow is at work on these units' USING ERRCODE = 'KS005';
        END IF;
    END IF;
    IF p ? 'effect_opened' THEN
        x := p -> 'effect_opened';
        INSERT INTO effect (workflow_id, step, attempt, name, tenant_id, idempotency_key, arguments_sha256, units,
                            decision_n, opened_at)
        VALUES (p_id, (x ->> 'step')::integer, (x ->> 'attempt')::integer, x ->> 'name', v_out.tenant_id,
                x ->> 'idempotency_key', x ->> 'arguments_sha256', coalesce(v_units, '{}'), (x ->> 'decision_n')::integer, v_at);
    END IF;
    IF p ? 'refusals' THEN
        INSERT INTO refusal (workflow_id, n, code, message, call_id, tool, arguments, at)
        SELECT p_id, x.n, x.code, x.message, x.call_id, x.tool, x.arguments, v_at
          FROM jsonb_to_recordset(p -> 'refusals')
               AS x(n integer, code text, message text, call_id text, tool text, arguments jsonb);
    END IF;
    IF p ? 'audit' THEN
        INSERT INTO audit (workflow_id, actor, action, resource, result, details, at)
        SELECT p_id, x.actor, x.action, x.resource, x.result, x.details, v_at
          FROM jsonb_to_recordset(p -> 'audit')
               AS x(actor text, action text, resource text, result text, details jsonb);
    END IF;
    IF p ? 'outbox' THEN
        INSERT INTO outbox (workflow_id, seq, topic, payload, at)
        SELECT p_id, v_out.seq, p -> 'outbox' ->> 'topic', p -> 'outbox' -> 'payload', v_at;
    END IF;
    version := v_out.version;
    fence := v_out.fence;
    at := v_at;
    active_ms := v_out.active_ms;
    entered_active_ms := v_out.entered_active_ms;
    RETURN NEXT;
END $$;

-- Take a case in. Same tenant and request: the row that is there, whoever was first; the caller compares the body.
CREATE FUNCTION accept_case(p jsonb)
RETURNS TABLE (workflow_id uuid, body_sha256 text, created boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_at timestamptz := clock_now();
BEGIN
    RETURN QUERY SELECT w.workflow_id, w.body_sha256::text, false FROM workflow w
        WHERE w.tenant_id = p ->> 'tenant_id' AND w.request_id = p ->> 'request_id';
    IF FOUND THEN
        RETURN;
    END IF;
    IF stopped('new_work') THEN
        RAISE EXCEPTION 'new work is stopped' USING ERRCODE = 'KS001';
    END IF;
    INSERT INTO workflow (workflow_id, tenant_id, kind, release, request_id, body_sha256, principal, customer, resource,
        case_body, requested_at, order_snapshot, policy, authz, supersedes, state, control_state, reason, version, seq,
        entered_at, wake_at, wake_reason, created_at, updated_at)
    SELECT (p ->> 'workflow_id')::uuid, p ->> 'tenant_id', p ->> 'kind', p ->> 'release', p ->> 'request_id',
        p ->> 'body_sha256', p ->> 'principal', p ->> 'customer', p ->> 'resource', p -> 'case_body',
        coalesce((p ->> 'requested_at')::timestamptz, v_at), p ->> 'order_snapshot', p ->> 'policy', p ->> 'authz',
        (p ->> 'supersedes')::uuid, m.business_to, m.control_to, 'received', 1, 1, v_at, v_at, 'accepted', v_at, v_at
      FROM legal_transition m
     WHERE m.kind = p ->> 'kind' AND m.release = p ->> 'release' AND m.control_from = '' AND m.event = 'received'
    ON CONFLICT (tenant_id, request_id) DO NOTHING;
    IF NOT FOUND THEN  -- somebody's first submission committed while ours waited: read it in a new statement
        RETURN QUERY SELECT w.workflow_id, w.body_sha256::text, false FROM workflow w
            WHERE w.tenant_id = p ->> 'tenant_id' AND w.request_id = p ->> 'request_id';
        RETURN;
    END IF;
    INSERT INTO checkpoint (workflow_id, seq, move_id, reason, evidence, at)
    SELECT (p ->> 'workflow_id')::uuid, 1, m.move_id, 'received', '{}', v_at
      FROM legal_transition m
     WHERE m.kind = p ->> 'kind' AND m.release = p ->> 'release' AND m.control_from = '' AND m.event = 'received';
    RETURN QUERY SELECT (p ->> 'workflow_id')::uuid, p ->> 'body_sha256', true;
END $$;

-- A driver that broke before it could commit anything is counted here, so that no case kills workers for ever: the next
-- try waits longer, and beyond the bound the case goes to a person.
CREATE FUNCTION count_broken_drive(p_id uuid, p_most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_at   timestamptz := clock_now();
    w      workflow%ROWTYPE;
    v_move legal_transition%ROWTYPE;
    v_started integer;  -- a case that was never begun is begun before it ends
BEGIN
    SELECT * INTO w FROM workflow
     WHERE workflow_id = p_id AND control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed')
       AND (lease_until IS NULL OR lease_until <= v_at) FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF w.recoveries >= p_most AND w.control_state = 'created' THEN
        SELECT * INTO v_move FROM legal_transition m
         WHERE m.kind = w.kind AND m.release = w.release AND m.control_from = 'created' AND m.business_from = w.state;
        w.control_state := v_move.control_to;
        v_started := v_move.move_id;
    END IF;
    SELECT * INTO v_move FROM legal_transition m
     WHERE m.kind = w.kind AND m.release = w.release AND m.control_from = w.control_state
       AND m.business_from = w.state AND m.control_to = 'needs_human' AND m.event = 'attempts_exhausted';
    IF FOUND AND w.recoveries >= p_most THEN
        w.seq := w.seq + CASE WHEN v_started IS NULL THEN 1 ELSE 2 END;
        UPDATE workflow SET version = version + 1, fence = fence + 1, seq = w.seq, state = v_move.business_to,
            control_state = v_move.control_to, resume_state = NULL, reason = 'recoveries_exhausted', review_since = v_at,
            wake_at = NULL, wake_reason = NULL, lease_owner = NULL, lease_until = NULL, active_since = NULL,
            updated_at = v_at
         WHERE workflow_id = p_id;
        INSERT INTO checkpoint
        SELECT p_id, c.seq, c.move_id, c.reason, '{}', v_at
          FROM (VALUES (w.seq - 1, v_started, 'started'), (w.seq, v_move.move_id, 'recoveries_exhausted'))
               AS c(seq, move_id, reason)
         WHERE c.move_id IS NOT NULL;
        INSERT INTO audit (workflow_id, actor, action, resource, result, details, at)
        VALUES (p_id, w.principal, 'workflow_ended', w.resource, v_move.business_to,
                jsonb_build_object('reason', 'recoveries_exhausted'), v_at);
        INSERT INTO outbox (workflow_id, seq, topic, payload, at)
        VALUES (p_id, w.seq, w.kind || '.' || lower(v_move.business_to),
                jsonb_build_object('workflow_id', p_id, 'reason', 'recoveries_exhausted'), v_at);
        RETURN w.recoveries;
    END IF;
    UPDATE workflow SET version = version + 1, fence = fence + 1, recoveries = recoveries + 1,
        wake_at = v_at + make_interval(secs => least(30, 2 ^ least(recoveries, 5))), wake_reason = 'broken_drive',
        lease_owner = NULL, lease_until = NULL, active_since = NULL, updated_at = v_at
     WHERE workflow_id = p_id;
    RETURN w.recoveries + 1;
END $$;

-- A driver that is busy with a slow call keeps its lease; a stale one is told so by no row.
CREATE FUNCTION renew_lease(p_id uuid, p_fence bigint, p_owner text, p_seconds double precision)
RETURNS boolean LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE workflow SET lease_until = clock_now() + make_interval(secs => p_seconds)
     WHERE workflow_id = p_id AND fence = p_fence AND lease_owner = p_owner
    RETURNING true
$$;

CREATE FUNCTION register_external_task(p jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    INSERT INTO external_task (jti, task_id, tenant_id, principal, customer, scopes, tool, resource, idempotency_key,
                               issued_by, issued_at, expires_at)
    SELECT p ->> 'jti', p ->> 'task_id', p ->> 'tenant_id', p ->> 'principal', p ->> 'customer',
           ARRAY(SELECT jsonb_array_elements_text(p -> 'scopes')), p ->> 'tool', p ->> 'resource',
           p ->> 'idempotency_key', p ->> 'issued_by', clock_now(),
           clock_now() + make_interval(secs => (p ->> 'seconds')::double precision);
    INSERT INTO audit (actor, action, resource, result, details, at)
    VALUES (p ->> 'issued_by', 'token_issued', coalesce(p ->> 'resource', '-'), 'issued',
            jsonb_build_object('jti', p ->> 'jti', 'scopes', p -> 'scopes', 'tool', p -> 'tool'), clock_now())
$$;
