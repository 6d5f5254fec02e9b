-- Which release new cases begin under, whom they are taken in for, and what a person found who looked at one afterwards.
-- Both histories only grow, and the newest act of each says what is so now. Only the owner writes: a worker that was
-- taken over lets nobody in.

-- A release is recorded with the report that it passed by; a rollback names the record that it goes back to.
CREATE TABLE release_log (
    act_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    act           text NOT NULL CHECK (act IN ('record', 'rollback')),
    kind          label NOT NULL,
    release       label NOT NULL,
    report_sha256 hex_digest,
    build         text,
    evaluated_at  timestamptz,
    gate          jsonb CHECK (gate -> 'passed' = 'true'),  -- what the gate said, with all its values and the versions
    left_release  label,
    rests_on      bigint REFERENCES release_log,
    actor         label NOT NULL,
    reason        text NOT NULL CHECK (length(reason) BETWEEN 1 AND 2000),
    details       jsonb NOT NULL,
    at            timestamptz NOT NULL,
    CHECK ((act = 'record') = (num_nulls(report_sha256, build, evaluated_at, gate) = 0)),
    CHECK ((act = 'rollback') = (num_nulls(report_sha256, build, evaluated_at, gate) = 4)),
    CHECK ((act = 'rollback') = (num_nulls(rests_on, left_release) = 0)),
    CHECK ((act = 'record') = (num_nulls(rests_on, left_release) = 2)),
    CHECK (left_release <> release)
);
CREATE UNIQUE INDEX release_report ON release_log (report_sha256);  -- what was rolled back needs a new report

-- `waive`: no rollout runs, and whoever asks is taken in. An opened stage is passed or given up before anything else.
CREATE TABLE rollout_log (
    act_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    act           text NOT NULL CHECK (act IN ('waive', 'open', 'pass', 'abandon')),
    stage         integer CHECK (stage BETWEEN 1 AND 3),
    opening       bigint UNIQUE REFERENCES rollout_log,  -- which `open` it ends; one ends once
    releases      jsonb CHECK (releases <> '{}'),  -- of each kind that has one recorded
    cases         tally,
    compared      tally,
    untracked     tally,
    missing       tally,
    duplicate     tally,
    uncompensated tally,
    checked       tally,
    wrong         tally,
    actor         label NOT NULL,
    reason        text NOT NULL CHECK (length(reason) BETWEEN 1 AND 2000),
    details       jsonb NOT NULL,
    at            timestamptz NOT NULL,
    CHECK ((act = 'waive') = (stage IS NULL)),
    CHECK ((act IN ('pass', 'abandon')) = (opening IS NOT NULL)),
    CHECK ((act IN ('open', 'pass')) = (releases IS NOT NULL)),
    CHECK (num_nulls(cases, compared, untracked, missing, duplicate, uncompensated, checked, wrong)
           = CASE act WHEN 'pass' THEN 0 ELSE 8 END)
);

CREATE FUNCTION stage_cases(p_stage integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE p_stage WHEN 1 THEN 10 WHEN 2 THEN 20 WHEN 3 THEN 50 END
$$;

-- How far an audience is let in: from which stage on. What is none is let in nowhere.
CREATE FUNCTION first_stage(p_audience text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE p_audience WHEN 'internal' THEN 1 WHEN 'cooperating' THEN 2 WHEN 'ordinary' THEN 3 END
$$;

-- Elapsed time is in none of them: nothing is passed by it.
ALTER TABLE rollout_log ADD CONSTRAINT passed_at_its_count CHECK (act <> 'pass' OR cases = stage_cases(stage)),
    ADD CONSTRAINT passed_reconciled
        CHECK (act <> 'pass' OR (compared > 0 AND untracked = 0 AND missing = 0 AND duplicate = 0)),
    ADD CONSTRAINT passed_undone CHECK (act <> 'pass' OR uncompensated = 0),
    ADD CONSTRAINT passed_checked CHECK (act <> 'pass' OR (wrong = 0 AND (stage < 3 OR checked = cases)));

-- What was taken in under a rollout, and whether a person has to look at it. A case under a waiver is in no row.
CREATE TABLE admission (
    n           bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    workflow_id uuid PRIMARY KEY REFERENCES workflow,
    opening     bigint REFERENCES rollout_log,  -- none: its release has passed all stages
    audience    text NOT NULL CHECK (first_stage(audience) IS NOT NULL),
    one_in      integer CHECK (one_in >= 1),  -- how many of them were to be looked at, when it was taken in
    to_check    boolean NOT NULL,
    at          timestamptz NOT NULL
);
CREATE INDEX admission_opening ON admission (opening);

CREATE TABLE case_check (
    workflow_id uuid NOT NULL REFERENCES workflow,
    actor       label NOT NULL,
    verdict     text NOT NULL CHECK (verdict IN ('ok', 'wrong')),
    reason      text NOT NULL CHECK (length(reason) <= 2000),
    details     jsonb NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (workflow_id, actor),
    CHECK (verdict = 'ok' OR length(reason) >= 1)
);

DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['release_log', 'rollout_log', 'admission', 'case_check'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change()', t);
        EXECUTE format('CREATE TRIGGER never_emptied BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', t);
    END LOOP;
END $$;

-- A case that has ended, and that nobody has to take over any more.
CREATE FUNCTION ended(p_control text, p_review_since timestamptz, p_closed_at timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_control IN ('completed', 'needs_human', 'stopped', 'failed')
       AND (p_review_since IS NULL OR p_closed_at IS NOT NULL)
$$;

CREATE FUNCTION begins_under(p_kind text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT release FROM release_log WHERE kind = p_kind ORDER BY act_id DESC LIMIT 1
$$;
CREATE FUNCTION begun_releases() RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_object_agg(kind, release), '{}')
      FROM (SELECT DISTINCT ON (kind) kind, release FROM release_log ORDER BY kind, act_id DESC) newest
$$;

-- What is still to be undone, or could not be and nobody answers for: of each case, its newest compensation.
CREATE FUNCTION uncompensated() RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT count(*)::integer
      FROM (SELECT DISTINCT ON (workflow_id) workflow_id, state FROM compensation ORDER BY workflow_id, n DESC) c
      JOIN workflow w USING (workflow_id)
     WHERE c.state = 'required' OR (c.state <> 'done' AND w.review_closed_at IS NULL)
$$;

-- An incident: a case that a person found wrong, that stopped the system, or in which something had to be undone.
CREATE FUNCTION incidents() RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT count(*)::integer
      FROM (SELECT workflow_id FROM admission a LEFT JOIN rollout_log o ON o.act_id = a.opening
             WHERE o.stage IS NULL OR o.stage = 3 ORDER BY n DESC LIMIT 50) newest
     WHERE EXISTS (SELECT FROM case_check k WHERE k.workflow_id = newest.workflow_id AND k.verdict = 'wrong')
        OR EXISTS (SELECT FROM compensation c WHERE c.workflow_id = newest.workflow_id)
        OR EXISTS (SELECT FROM stop_log s WHERE s.workflow_id = newest.workflow_id AND s.act = 'stop')
$$;
-- After the last stage, of how many cases one is looked at: by the incidents among the newest fifty.
CREATE FUNCTION checked_one_in() RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT CASE incidents() WHEN 0 THEN 10 WHEN 1 THEN 2 ELSE 1 END
$$;
-- By a digest of its id, so that nobody chooses which; none where nobody is to look.
CREATE FUNCTION drawn(p_id uuid, p_one_in integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT p_one_in IS NOT NULL AND ('x' || substr(md5(p_id::text), 1, 7))::bit(28)::integer % p_one_in = 0
$$;

-- The stage that is open, with what it has to show; no row where none is.
CREATE VIEW stage_standing AS
SELECT o.act_id AS opening, o.stage, o.releases, o.actor, o.reason, o.details ->> 'os_user' AS os_user,
       o.details ->> 'authz' AS authz, o.at, stage_cases(o.stage) AS due, c.cases, c.ended,
       c.checked, c.wrong, uncompensated() AS uncompensated, o.releases = begun_releases() AS same_releases
  FROM (SELECT * FROM rollout_log ORDER BY act_id DESC LIMIT 1) o
 CROSS JOIN LATERAL (
    SELECT count(*)::integer AS cases,
           (count(*) FILTER (WHERE ended(w.control_state, w.review_since, w.review_closed_at)))::integer AS ended,
           (count(*) FILTER (WHERE EXISTS (SELECT FROM case_check k WHERE k.workflow_id = a.workflow_id)))::integer AS checked,
           (count(*) FILTER (WHERE EXISTS (SELECT FROM case_check k
                                            WHERE k.workflow_id = a.workflow_id AND k.verdict = 'wrong')))::integer AS wrong
      FROM admission a JOIN workflow w USING (workflow_id)
     WHERE a.opening = o.act_id) c
 WHERE o.act = 'open';

-- Whether a case may be taken in, and as what. Whoever calls it holds the stop's lock, which every act below takes alone.
CREATE FUNCTION admit_case(p_kind text, p_release text, p_audience text) RETURNS admitted
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    v_begins text := begins_under(p_kind);
    v_last   rollout_log%ROWTYPE;
BEGIN
    IF v_begins <> p_release THEN
        RAISE EXCEPTION 'new cases of % begin under %, not under %', p_kind, v_begins, p_release USING ERRCODE = 'KS027';
    END IF;
    SELECT * INTO v_last FROM rollout_log ORDER BY act_id DESC LIMIT 1;
    IF v_last.act = 'waive' THEN
        RETURN (false, NULL, NULL)::admitted;
    END IF;
    IF v_begins IS NOT NULL AND EXISTS (SELECT FROM rollout_log
                                         WHERE act = 'pass' AND stage = 3 AND releases ->> p_kind = p_release) THEN
        RETURN (true, NULL, checked_one_in())::admitted;
    END IF;
    IF v_last.act IS NULL THEN
        RAISE EXCEPTION 'nobody has opened a rollout here, or said that none runs' USING ERRCODE = 'KS030';
    ELSIF v_last.act <> 'open' THEN
        RAISE EXCEPTION 'no stage of the rollout is open for %', p_release USING ERRCODE = 'KS030';
    ELSIF v_last.releases ->> p_kind IS DISTINCT FROM p_release OR v_begins IS NULL THEN
        RAISE EXCEPTION 'stage % was not opened for %', v_last.stage, p_release USING ERRCODE = 'KS030';
    ELSIF first_stage(p_audience) IS NULL OR first_stage(p_audience) > v_last.stage THEN
        RAISE EXCEPTION 'stage % is open, and % requesters come in with stage %', v_last.stage, p_audience,
            coalesce(first_stage(p_audience)::text, '-') USING ERRCODE = 'KS030';
    END IF;
    PERFORM FROM rollout_log WHERE act_id = v_last.act_id FOR UPDATE;  -- of two that come at once, one is counted first
    IF (SELECT count(*) FROM admission WHERE opening = v_last.act_id) >= stage_cases(v_last.stage) THEN
        RAISE EXCEPTION 'stage % has its % cases', v_last.stage, stage_cases(v_last.stage) USING ERRCODE = 'KS030';
    END IF;
    RETURN (true, v_last.act_id, CASE v_last.stage WHEN 3 THEN 1 END)::admitted;
END $$;

-- One stage after the other, none beside another, and each under the releases that the one before it was passed with.
CREATE FUNCTION check_rollout() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    v_last rollout_log%ROWTYPE;
BEGIN
    PERFORM refuse_old_snapshot();
    PERFORM pg_advisory_xact_lock(stop_lock_key());
    SELECT * INTO v_last FROM rollout_log ORDER BY act_id DESC LIMIT 1;
    IF NEW.act IN ('pass', 'abandon') THEN
        IF v_last.act IS DISTINCT FROM 'open' OR v_last.act_id <> NEW.opening OR v_last.stage <> NEW.stage THEN
            RAISE EXCEPTION 'stage % is not open', NEW.stage USING ERRCODE = 'KS031';
        ELSIF NEW.act = 'pass' AND (NEW.releases <> v_last.releases OR NEW.releases <> begun_releases()) THEN
            RAISE EXCEPTION 'new cases begin under another release since stage % was opened', NEW.stage
                USING ERRCODE = 'KS031';
        END IF;
    ELSIF v_last.act = 'open' THEN
        RAISE EXCEPTION 'stage % is open; close it first', v_last.stage USING ERRCODE = 'KS031';
    ELSIF NEW.act = 'open' THEN
        IF NEW.releases <> begun_releases() THEN
            RAISE EXCEPTION 'new cases begin under other releases' USING ERRCODE = 'KS031';
        ELSIF NEW.stage > 1 AND (v_last.act IS DISTINCT FROM 'pass' OR v_last.stage <> NEW.stage - 1
                                 OR v_last.releases <> NEW.releases) THEN
            RAISE EXCEPTION 'stage % comes after stage % was passed under the same releases', NEW.stage, NEW.stage - 1
                USING ERRCODE = 'KS031';
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER in_order BEFORE INSERT ON rollout_log FOR EACH ROW EXECUTE FUNCTION check_rollout();

-- A rollback goes back to what passed; nothing is recorded of a release that this database does not know.
CREATE FUNCTION check_release() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM refuse_old_snapshot();
    PERFORM pg_advisory_xact_lock(stop_lock_key());
    IF NOT EXISTS (SELECT FROM legal_transition m WHERE m.kind = NEW.kind AND m.release = NEW.release) THEN
        RAISE EXCEPTION 'this database knows no release % of %', NEW.release, NEW.kind USING ERRCODE = 'KS031';
    ELSIF NEW.act = 'rollback' AND NEW.left_release IS DISTINCT FROM begins_under(NEW.kind) THEN
        RAISE EXCEPTION 'new cases of % begin under %', NEW.kind, coalesce(begins_under(NEW.kind), 'no recorded release')
            USING ERRCODE = 'KS031';
    ELSIF NEW.act = 'rollback' AND NOT EXISTS (SELECT FROM release_log r WHERE r.act_id = NEW.rests_on AND r.act = 'record'
                                                AND r.kind = NEW.kind AND r.release = NEW.release) THEN
        RAISE EXCEPTION '% has not passed', NEW.release USING ERRCODE = 'KS031';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER passed BEFORE INSERT ON release_log FOR EACH ROW EXECUTE FUNCTION check_release();

-- What is checked has ended, and nobody checks what was asked for in their own name.
CREATE FUNCTION check_checked() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM workflow w WHERE w.workflow_id = NEW.workflow_id
                      AND ended(w.control_state, w.review_since, w.review_closed_at)) THEN
        RAISE EXCEPTION 'the case has not ended' USING ERRCODE = 'KS031';
    ELSIF EXISTS (SELECT FROM workflow w WHERE w.workflow_id = NEW.workflow_id AND lower(w.principal) = lower(NEW.actor)) THEN
        RAISE EXCEPTION '% asked for the case', NEW.actor USING ERRCODE = 'KS031';
    ELSIF EXISTS (SELECT FROM case_check k WHERE k.workflow_id = NEW.workflow_id AND k.actor = NEW.actor) THEN
        RAISE EXCEPTION '% has checked the case already, and what was found stays', NEW.actor USING ERRCODE = 'KS031';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER of_an_ended_case BEFORE INSERT ON case_check FOR EACH ROW EXECUTE FUNCTION check_checked();

REVOKE ALL ON release_log, rollout_log, admission, case_check, stage_standing FROM PUBLIC;
REVOKE ALL ON FUNCTION stage_cases(integer), first_stage(text), ended(text, timestamptz, timestamptz), begins_under(text),
    begun_releases(), uncompensated(), incidents(), checked_one_in(), drawn(uuid, integer),
    admit_case(text, text, text), check_rollout(), check_release(), check_checked() FROM PUBLIC;
GRANT SELECT ON release_log, rollout_log, admission, case_check TO host_rt, host_auditor;
GRANT SELECT ON stage_standing TO host_rt;
GRANT EXECUTE ON FUNCTION stage_cases(integer), first_stage(text), ended(text, timestamptz, timestamptz), begins_under(text),
    begun_releases(), uncompensated(), incidents(), checked_one_in() TO host_rt;

-- Under which condition approvals are asked for, by what has a version of its own. One version asks for one thing for good,
-- so that fewer approvals are a new version, which every workflow and every report names.
CREATE TABLE asked_approval (
    what    text NOT NULL,  -- a tool, or a kind
    version text NOT NULL,  -- of its contract, or its release
    asked   text NOT NULL,
    at      timestamptz NOT NULL,
    PRIMARY KEY (what, version)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON asked_approval FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON asked_approval FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE ALL ON asked_approval FROM PUBLIC;
GRANT SELECT ON asked_approval TO host_rt, host_auditor;
