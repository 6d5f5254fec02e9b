-- A durable step is one statement and one commit. Each function writes all of it or nothing at all.

-- Held shared by every commit that begins something (a case, a call, an intent, a token) and exclusively by a stop: after a stop
-- has committed nothing new begins. 'kessai' in letters, so that no other advisory lock of this database meets it.
CREATE FUNCTION stop_lock_key() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 118058463519593';

-- Whoever has waited for a lock has to see what was committed meanwhile.
CREATE FUNCTION refuse_old_snapshot() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'this is done in read committed transactions alone' USING ERRCODE = 'KS021';
    END IF;
END $$;

-- Another workflow is in doubt over the same units. One that ended so needs a person, who looks first; one that is at
-- work will know in a moment, so a write waits for it. The units are locked in one order: of two that begin at once one
-- sees the other; two that begin in one statement are sent away, to begin one after the other.
CREATE FUNCTION refuse_contested(p jsonb) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_ended boolean;
    x       jsonb;
BEGIN
    IF (SELECT count(DISTINCT (c ->> 'workflow_id', u)) > count(DISTINCT (c ->> 'tenant_id', u))
          FROM jsonb_array_elements(p) c, jsonb_array_elements_text(c -> 'units') u) THEN
        RAISE EXCEPTION 'another workflow is at work on these units' USING ERRCODE = 'KS005';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(u.unit, 0))
       FROM (SELECT (c ->> 'tenant_id') || ' ' || jsonb_array_elements_text(c -> 'units') AS unit
               FROM jsonb_array_elements(p) c ORDER BY 1) u;
    FOR x IN SELECT jsonb_array_elements(p) LOOP
        SELECT bool_or((SELECT w.control_state IN ('needs_human', 'failed', 'stopped')
                          FROM workflow w WHERE w.workflow_id = e.workflow_id)) INTO v_ended
          FROM effect e
         WHERE e.tenant_id = x ->> 'tenant_id' AND e.workflow_id <> (x ->> 'workflow_id')::uuid AND e.outcome IS NULL
           AND e.units && ARRAY(SELECT jsonb_array_elements_text(x -> 'units'));
        IF v_ended THEN
            RAISE EXCEPTION 'another workflow ended in doubt over these units' USING ERRCODE = 'KS002';
        ELSIF NOT v_ended AND (x ->> 'writes')::boolean THEN
            RAISE EXCEPTION 'another workflow is at work on these units' USING ERRCODE = 'KS005';
        END IF;
    END LOOP;
END $$;

-- What a workflow has been at work for, once this step is written; beyond the limit no call begins.
CREATE FUNCTION at_work(p_ms bigint, p_since timestamptz, p_at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT p_ms + coalesce(greatest(0, extract(epoch FROM p_at - p_since) * 1000)::bigint, 0) $$;
CREATE FUNCTION within_limit(p_ms bigint, p_limit_ms bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p_ms >= p_limit_ms THEN
        RAISE EXCEPTION 'no time is left for a call' USING ERRCODE = 'KS003';
    END IF;
    RETURN p_ms;
END $$;

-- Whether a stop halts one of them: what a named person has released is undone under a stop too.
CREATE FUNCTION any_halted(p jsonb) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM jsonb_to_recordset(p) AS s(workflow_id uuid) WHERE NOT released(s.workflow_id));
END $$;

-- After a stop was lifted one workflow is driven at a time, whatever the number of workers.
CREATE FUNCTION refuse_parallel(p_claims bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(118058463519596);
    IF p_claims > 1 OR EXISTS (SELECT FROM workflow WHERE lease_owner IS NOT NULL AND lease_until > clock_now()) THEN
        RAISE EXCEPTION 'one workflow is driven at a time' USING ERRCODE = 'KS007';
    END IF;
END $$;

-- Write the steps of one or of several workflows: one list of rows for each table, all of them or none. Raises KS018
-- where one of the workflows was moved by somebody else. Most of what a step costs is to set a statement up, so each
-- table is written by one statement whatever the number of steps, planned once in a session, by keys alone.
CREATE FUNCTION commit_steps(p jsonb)
RETURNS TABLE (workflow_id uuid, version integer, fence bigint, at timestamptz, active_ms bigint,
               entered_active_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
#variable_conflict use_column
DECLARE
    v_at    timestamptz := clock_now();
    v_count integer;
    -- A limit that the planner does not know is taken for a tenth. Two of them make it expect one row, and so look up what
    -- is updated by key, however few rows the table had when the statement was planned.
    v_all   integer := 2147483647;
BEGIN
    -- nothing is written of a workflow whose version and fence are not held against its row
    IF jsonb_path_exists(p, '$.*[*] ? (!(@.workflow_id == $ids[*]))',
                         jsonb_build_object('ids', jsonb_path_query_array(p, '$.workflows[*].workflow_id'))) THEN
        RAISE EXCEPTION 'a row belongs to none of the workflows of this step' USING ERRCODE = 'KS022';
    END IF;
    PERFORM refuse_old_snapshot();
    IF p ? 'stops' THEN  -- a finding stops the rest of its own transaction too
        PERFORM engage_stop(ARRAY(SELECT jsonb_array_elements_text(s -> 'scopes')), s ->> 'actor', s ->> 'reason',
                            s ->> 'cause', (s ->> 'workflow_id')::uuid)
           FROM jsonb_array_elements(p -> 'stops') s;
    END IF;
    IF p @? '$.attempts_opened[*] ? (@.purpose == "call")' THEN  -- what is in doubt may still be looked up
        PERFORM pg_advisory_xact_lock_shared(stop_lock_key());
        IF stopped('reads') AND any_halted(jsonb_path_query_array(p, '$.attempts_opened[*] ? (@.purpose == "call")')) THEN
            RAISE EXCEPTION 'calls are stopped' USING ERRCODE = 'KS004';
        END IF;
    END IF;
    IF p ? 'deadlines' AND EXISTS (SELECT FROM jsonb_to_recordset(p -> 'deadlines') AS s(workflow_id uuid)
            JOIN compensation c ON c.workflow_id = s.workflow_id AND c.state = 'required' AND c.due_at <= v_at) THEN
        RAISE EXCEPTION 'what is undone had to be by now' USING ERRCODE = 'KS003';
    END IF;
    IF p ? 'effects_opened' THEN
        PERFORM pg_advisory_xact_lock_shared(stop_lock_key());
        IF stopped('updates') AND any_halted(p -> 'effects_opened') THEN
            RAISE EXCEPTION 'updates are stopped' USING ERRCODE = 'KS001';
        END IF;
    END IF;
    IF p @? '$.workflows[*] ? (@.claim == true && @.release == false)' THEN
        IF stopped('parallel') THEN
            PERFORM refuse_parallel((SELECT count(*) FROM jsonb_array_elements(p -> 'workflows')));
        END IF;
    END IF;

    RETURN QUERY UPDATE workflow w SET
        version = w.version + 1,
        fence = w.fence + s.claim::integer,
        seq = s.seq,
        state = s.state,
        control_state = s.control_state,
        resume_state = s.resume_state,
        reason = s.reason,
        refusals_in_a_row = s.refusals_in_a_row,
        recoveries = s.recoveries,
        tokens = s.tokens,
        cost_micros = s.cost_micros,
        -- the time since a driver died is nobody's work
        active_ms = within_limit(at_work(w.active_ms, CASE WHEN NOT s.claim THEN w.active_since END, v_at), s.active_limit_ms),
        active_since = CASE WHEN NOT s.release THEN v_at END,
        entered_active_ms = CASE WHEN w.state = s.state THEN w.entered_active_ms
            ELSE at_work(w.active_ms, CASE WHEN NOT s.claim THEN w.active_since END, v_at) END,
        review_since = CASE WHEN s.state = 'NEEDS_REVIEW' THEN coalesce(w.review_since, v_at) END,
        review_closed_at = CASE WHEN s.state = 'NEEDS_REVIEW' THEN CASE WHEN s.closes_review THEN v_at
            ELSE w.review_closed_at END END,
        wake_at = v_at + make_interval(secs => s.wake_after),
        wake_reason = s.wake_reason,
        lease_owner = CASE WHEN NOT s.release THEN s.owner END,
        lease_until = CASE WHEN NOT s.release THEN v_at + make_interval(secs => s.lease_seconds) END,
        updated_at = v_at
      FROM (SELECT * FROM (SELECT * FROM jsonb_to_recordset(p -> 'workflows') AS r(
           workflow_id uuid, version integer, fence bigint, claim boolean, seq integer, state text, control_state text,
           resume_state text, reason text, refusals_in_a_row integer, recoveries integer, tokens bigint, cost_micros bigint,
           active_limit_ms bigint, closes_review boolean, release boolean, owner text, lease_seconds float8, wake_reason text, wake_after float8)
           LIMIT v_all) r LIMIT v_all) s
     WHERE w.workflow_id = s.workflow_id AND w.version = s.version AND w.fence = s.fence
       -- a claim meets no live lease; a holder's own lease may have run out, its fence says whether it was taken
       AND (NOT s.claim OR w.lease_until IS NULL OR w.lease_until < v_at)
    RETURNING w.workflow_id, w.version::integer, w.fence, v_at, w.active_ms::bigint, w.entered_active_ms;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count < jsonb_array_length(p -> 'workflows') THEN
        RAISE EXCEPTION 'somebody else moved the workflow' USING ERRCODE = 'KS018';
    END IF;

    IF p ? 'effects_closed' THEN  -- before a new one opens: at most one is in flight
        UPDATE effect e SET
            outcome = s.outcome,
            external_id = s.external_id,
            closed_at = coalesce(e.closed_at, v_at),
            mismatch = s.mismatch,
            verified_at = CASE WHEN s.verified THEN v_at END
          FROM (SELECT * FROM (SELECT * FROM jsonb_to_recordset(p -> 'effects_closed') AS r(
               workflow_id uuid, step integer, attempt integer, outcome text, external_id text, mismatch jsonb,
               verified boolean) LIMIT v_all) r LIMIT v_all) s
         WHERE e.workflow_id = s.workflow_id AND e.step = s.step AND e.attempt = s.attempt;
    END IF;
    IF p ? 'approvals' THEN  -- a person's decision, before the move that it makes
        INSERT INTO approval (event_id, workflow_id, version, approver, kid, decision, reason, event, decided_at, recorded_at,
                              approval_seconds)
        SELECT s.event_id, s.workflow_id, s.version, s.approver, s.kid, s.decision, s.reason, s.event, s.decided_at, v_at,
               s.approval_seconds
          FROM jsonb_to_recordset(p -> 'approvals') AS s(
               workflow_id uuid, event_id text, version integer, approver text, kid text, decision text, reason text,
               event text, decided_at timestamptz, approval_seconds float8);
    END IF;
    IF p ? 'offers' THEN  -- what no commit of the process is known to have kept; in one order, for two that meet
        INSERT INTO offer (sha256, definitions, at)
        SELECT decode(s.sha256, 'hex'), s.definitions, v_at
          FROM jsonb_to_recordset(p -> 'offers') AS s(sha256 text, definitions jsonb) ORDER BY 1
        ON CONFLICT DO NOTHING;
    END IF;
    IF p ? 'checkpoints' THEN
        INSERT INTO checkpoint (workflow_id, seq, move_id, reason, evidence, at, offered, said)
        SELECT s.workflow_id, s.seq, s.move_id, s.reason, s.evidence, v_at, decode(s.offered, 'hex'), s.said
          FROM jsonb_to_recordset(p -> 'checkpoints') AS s(
               workflow_id uuid, seq integer, move_id integer, reason text, evidence text[], offered text, said jsonb);
    END IF;
    IF p ? 'decisions' THEN
        INSERT INTO decision (workflow_id, n, subject, rule_version, facts, outcome, reason, at)
        SELECT s.workflow_id, s.n, s.subject, s.rule_version, s.facts, s.outcome, s.reason, v_at
          FROM jsonb_to_recordset(p -> 'decisions') AS s(
               workflow_id uuid, n integer, subject text, rule_version text, facts jsonb, outcome text, reason text);
    END IF;
    IF p ? 'calls_updated' THEN
        UPDATE call c SET
            execution_state = s.execution_state,
            result = coalesce(s.result, c.result),
            error = s.error,
            authorized_at = CASE WHEN 'authorized' = ANY (s.stamps) THEN v_at ELSE c.authorized_at END,
            started_at = CASE WHEN 'started' = ANY (s.stamps) THEN v_at ELSE c.started_at END,
            returned_at = CASE WHEN 'returned' = ANY (s.stamps) THEN v_at ELSE c.returned_at END,
            delivered_at = CASE WHEN 'delivered' = ANY (s.stamps) THEN v_at ELSE c.delivered_at END,
            verified_at = CASE WHEN 'verified' = ANY (s.stamps) THEN v_at ELSE c.verified_at END
          FROM (SELECT * FROM (SELECT * FROM jsonb_to_recordset(p -> 'calls_updated') AS r(
               workflow_id uuid, step integer, execution_state text, result jsonb, error jsonb, stamps text[]) LIMIT v_all) r LIMIT v_all) s
         WHERE c.workflow_id = s.workflow_id AND c.step = s.step;
    END IF;
    IF p ? 'calls_opened' THEN
        INSERT INTO call (workflow_id, step, undoes, call_id, tool, contract_version, arguments, fingerprint, execution_state,
                          proposed_at, authorized_at, started_at)
        SELECT s.workflow_id, s.step, s.undoes, s.call_id, s.tool, s.contract_version, s.arguments, s.fingerprint,
               s.execution_state, v_at, CASE WHEN 'authorized' = ANY (s.stamps) THEN v_at END,
               CASE WHEN 'started' = ANY (s.stamps) THEN v_at END
          FROM jsonb_to_recordset(p -> 'calls_opened') AS s(
               workflow_id uuid, step integer, undoes integer, call_id text, tool text, contract_version text, arguments jsonb,
               fingerprint text, execution_state text, stamps text[]);
    END IF;
    IF p ? 'attempts_closed' THEN
        UPDATE attempt a SET ended_at = v_at, outcome = s.outcome, error = s.error
          FROM (SELECT * FROM (SELECT * FROM jsonb_to_recordset(p -> 'attempts_closed') AS r(
               workflow_id uuid, step integer, n integer, outcome text, error jsonb) LIMIT v_all) r LIMIT v_all) s
         WHERE a.workflow_id = s.workflow_id AND a.step = s.step AND a.n = s.n;
    END IF;
    IF p ? 'attempts_opened' THEN
        -- a request belongs to a row that runs it; nothing begins on a workflow that has ended or waits
        INSERT INTO attempt (workflow_id, step, n, purpose, tool, jti, started_at)
        SELECT s.workflow_id, s.step, s.n, s.purpose, s.tool, s.jti, v_at
          FROM jsonb_to_recordset(p -> 'attempts_opened') AS s(
               workflow_id uuid, step integer, n integer, purpose text, tool text, jti text)
         WHERE (SELECT w.control_state = 'tool_running'
                    -- a person who has the case may have the engine look at what was done
                    OR (w.control_state IN ('observing', 'needs_human', 'failed') AND s.purpose <> 'call')
                  FROM workflow w WHERE w.workflow_id = s.workflow_id);
        GET DIAGNOSTICS v_count = ROW_COUNT;
        IF v_count < jsonb_array_length(p -> 'attempts_opened') THEN
            RAISE EXCEPTION 'no request begins where no tool runs' USING ERRCODE = 'KS017';
        END IF;
    END IF;
    IF p ? 'approval_requests' THEN
        INSERT INTO approval_request (workflow_id, version, action, action_digest, requested_at, expires_at)
        SELECT s.workflow_id, (SELECT w.version FROM workflow w WHERE w.workflow_id = s.workflow_id), s.action,
               s.action_digest, v_at, v_at + make_interval(secs => s.lifetime_seconds)
          FROM jsonb_to_recordset(p -> 'approval_requests') AS s(
               workflow_id uuid, action jsonb, action_digest text, lifetime_seconds float8);
    END IF;
    IF p ? 'compensations_opened' THEN
        INSERT INTO compensation (workflow_id, n, step, first_step, ordered_by, reason, ordered_at, due_at, state)
        SELECT s.workflow_id,
               1 + coalesce((SELECT max(c.n) FROM compensation c WHERE c.workflow_id = s.workflow_id), 0),
               s.step, s.first_step, s.ordered_by, s.reason, v_at, v_at + make_interval(hours => s.hours), 'required'
          FROM jsonb_to_recordset(p -> 'compensations_opened') AS s(
               workflow_id uuid, step integer, first_step integer, ordered_by text, reason text, hours integer);
    END IF;
    IF p ? 'compensations_closed' THEN
        UPDATE compensation c SET state = s.state, ended_at = v_at
          FROM jsonb_to_recordset(p -> 'compensations_closed') AS s(workflow_id uuid, state text)
         WHERE c.workflow_id = s.workflow_id AND c.state = 'required';
    END IF;
    IF p ? 'contests' THEN
        PERFORM refuse_contested(p -> 'contests');
    END IF;
    IF p ? 'effects_opened' THEN
        -- what a person has to approve is sent only while an approval of it stands
        IF EXISTS (SELECT FROM jsonb_to_recordset(p -> 'effects_opened') AS s(workflow_id uuid, approved_version integer)
                    WHERE s.approved_version IS NOT NULL AND NOT EXISTS (
                          SELECT FROM approval a JOIN approval_request r USING (workflow_id, version)
                            JOIN approver_key k ON k.kid = a.kid AND k.revoked_at IS NULL
                           WHERE a.workflow_id = s.workflow_id AND a.version = s.approved_version
                             AND a.decision = 'approve' AND r.expires_at > v_at)) THEN
            RAISE EXCEPTION 'the approval has run out' USING ERRCODE = 'KS006';
        END IF;
        INSERT INTO effect (workflow_id, step, attempt, name, tenant_id, idempotency_key, arguments_sha256, units,
                            decision_n, opened_at)
        SELECT s.workflow_id, s.step, s.attempt, s.name,
               (SELECT w.tenant_id FROM workflow w WHERE w.workflow_id = s.workflow_id),
               s.idempotency_key, s.arguments_sha256, s.units, s.decision_n, v_at
          FROM jsonb_to_recordset(p -> 'effects_opened') AS s(
               workflow_id uuid, step integer, attempt integer, name text, idempotency_key text, arguments_sha256 text,
               units text[], decision_n integer);
    END IF;
    IF p ? 'planner_costs' THEN
        INSERT INTO planner_cost AS c (day, cost_micros)
        SELECT (v_at AT TIME ZONE 'UTC')::date, sum(s.cost_micros)
          FROM jsonb_to_recordset(p -> 'planner_costs') AS s(cost_micros bigint)
        ON CONFLICT (day) DO UPDATE SET cost_micros = c.cost_micros + excluded.cost_micros;
    END IF;
    IF p ? 'refusals' THEN
        INSERT INTO refusal (workflow_id, n, code, message, call_id, tool, arguments, at)
        SELECT s.workflow_id, s.n, s.code, s.message, s.call_id, s.tool, s.arguments, v_at
          FROM jsonb_to_recordset(p -> 'refusals') AS s(
               workflow_id uuid, n integer, code text, message text, call_id text, tool text, arguments jsonb);
    END IF;
    IF p ? 'audit' THEN
        INSERT INTO audit (workflow_id, actor, action, resource, result, details, at)
        SELECT s.workflow_id, s.actor, s.action, s.resource, s.result, s.details, v_at
          FROM jsonb_to_recordset(p -> 'audit') AS s(
               workflow_id uuid, actor text, action text, resource text, result text, details jsonb);
    END IF;
    IF p ? 'outbox' THEN
        INSERT INTO outbox (workflow_id, seq, topic, payload, at)
        SELECT s.workflow_id, s.seq, s.topic, s.payload, v_at
          FROM jsonb_to_recordset(p -> 'outbox') AS s(workflow_id uuid, seq integer, topic text, payload jsonb);
    END IF;
END $$;

-- As what a case is taken in (0008): in which opened stage, and one of how many is looked at by a person afterwards.
CREATE TYPE admitted AS (counted boolean, opening bigint, one_in integer);

-- Take a case in. Same tenant and request: the row that is there, whoever was first; the caller compares the body.
CREATE FUNCTION accept_case(p jsonb)
RETURNS TABLE (workflow_id uuid, body_sha256 text, created boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_at       timestamptz := clock_now();
    v_admitted admitted;
BEGIN
    RETURN QUERY SELECT w.workflow_id, w.body_sha256::text, false FROM workflow w
        WHERE w.tenant_id = p ->> 'tenant_id' AND w.request_id = p ->> 'request_id';
    IF FOUND THEN
        RETURN;
    END IF;
    PERFORM refuse_old_snapshot();
    PERFORM pg_advisory_xact_lock_shared(stop_lock_key());
    IF stopped('new_work') THEN
        RAISE EXCEPTION 'new work is stopped' USING ERRCODE = 'KS001';
    END IF;
    v_admitted := admit_case(p ->> 'kind', p ->> 'release', p ->> 'audience');
    INSERT INTO workflow (workflow_id, tenant_id, kind, release, request_id, body_sha256, principal, customer, resource,
        case_body, requested_at, order_snapshot, policy, authz, supersedes, state, control_state, reason, version, seq,
        wake_at, wake_reason, created_at, updated_at)
    SELECT (p ->> 'workflow_id')::uuid, p ->> 'tenant_id', p ->> 'kind', p ->> 'release', p ->> 'request_id',
        p ->> 'body_sha256', p ->> 'principal', p ->> 'customer', p ->> 'resource', p -> 'case_body',
        coalesce((p ->> 'requested_at')::timestamptz, v_at), p ->> 'order_snapshot', p ->> 'policy', p ->> 'authz',
        (p ->> 'supersedes')::uuid, m.business_to, m.control_to, 'received', 1, 1, v_at, 'accepted', v_at, v_at
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
    IF v_admitted.counted THEN
        INSERT INTO admission (workflow_id, opening, audience, one_in, to_check, at)
        SELECT (p ->> 'workflow_id')::uuid, v_admitted.opening, p ->> 'audience', v_admitted.one_in,
               drawn((p ->> 'workflow_id')::uuid, v_admitted.one_in), v_at;
    END IF;
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
    -- what may end in a stop takes the stop's lock before the row, as every step does
    IF EXISTS (SELECT FROM compensation WHERE workflow_id = p_id AND state = 'required') THEN
        PERFORM pg_advisory_xact_lock(stop_lock_key());
    END IF;
    SELECT * INTO w FROM workflow
     WHERE workflow_id = p_id AND control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed')
       AND (lease_until IS NULL OR lease_until <= v_at)
       AND (wake_at IS NULL OR wake_at <= v_at) FOR UPDATE;  -- who sleeps was not driven
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
        UPDATE compensation SET state = 'impossible', ended_at = v_at WHERE workflow_id = p_id AND state = 'required';
        IF FOUND THEN
            PERFORM engage_stop(ARRAY['new_work', 'updates'], 'engine', 'recoveries_exhausted', 'compensation_impossible', p_id);
        END IF;
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

-- What an outside host may do begins with its token, so a stop refuses the token.
CREATE FUNCTION register_external_task(p jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(stop_lock_key());
    IF stopped('reads') THEN
        RAISE EXCEPTION 'calls are stopped' USING ERRCODE = 'KS004';
    END IF;
    IF p ->> 'tool' IS NOT NULL AND stopped('updates') THEN
        RAISE EXCEPTION 'updates are stopped' USING ERRCODE = 'KS001';
    END IF;
    INSERT INTO external_task (jti, task_id, tenant_id, principal, customer, scopes, tool, resource, idempotency_key,
                               issued_by, issued_at, expires_at)
    SELECT p ->> 'jti', p ->> 'task_id', p ->> 'tenant_id', p ->> 'principal', p ->> 'customer',
           ARRAY(SELECT jsonb_array_elements_text(p -> 'scopes')), p ->> 'tool', p ->> 'resource',
           p ->> 'idempotency_key', p ->> 'issued_by', clock_now(),
           clock_now() + make_interval(secs => (p ->> 'seconds')::double precision);
    INSERT INTO audit (actor, action, resource, result, details, at)
    VALUES (p ->> 'issued_by', 'token_issued', coalesce(p ->> 'resource', '-'), 'issued',
            jsonb_build_object('jti', p ->> 'jti', 'scopes', p -> 'scopes', 'tool', p -> 'tool'), clock_now());
END $$;
