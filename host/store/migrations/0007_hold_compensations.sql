-- What was done and has to be undone: by whose order, until when, and what came of it. One at a time in a workflow.
CREATE TABLE compensation (
    workflow_id uuid NOT NULL REFERENCES workflow,
    n           ordinal NOT NULL,
    step        integer NOT NULL,  -- whose effect is undone
    first_step  ordinal NOT NULL,  -- the calls from here on are this compensation's
    ordered_by  label NOT NULL,
    reason      text NOT NULL,
    ordered_at  timestamptz NOT NULL,
    due_at      timestamptz NOT NULL,
    state       text NOT NULL CHECK (state IN ('required', 'done', 'impossible', 'overdue')),
    ended_at    timestamptz,
    released_by label,  -- a person who has it undone although a stop is engaged
    released_at timestamptz,
    PRIMARY KEY (workflow_id, n),
    FOREIGN KEY (workflow_id, step) REFERENCES call,
    CHECK ((state = 'required') = (ended_at IS NULL)),
    CHECK ((released_by IS NULL) = (released_at IS NULL)),
    CHECK (due_at > ordered_at)
);
CREATE UNIQUE INDEX compensation_required ON compensation (workflow_id) WHERE state = 'required';

CREATE TRIGGER append_only BEFORE DELETE ON compensation FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON compensation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER fixed BEFORE UPDATE OF workflow_id, n, step, first_step, ordered_by, reason, ordered_at, due_at ON compensation
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ended_for_good BEFORE UPDATE ON compensation
    FOR EACH ROW WHEN (OLD.state <> 'required') EXECUTE FUNCTION refuse_change();

-- Nothing is called undone unless something that was made to undo it was seen to be there.
CREATE FUNCTION check_undone() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM call c JOIN effect e USING (workflow_id, step)
                    WHERE c.workflow_id = NEW.workflow_id AND c.undoes = NEW.step AND e.verified_at IS NOT NULL) THEN
        RAISE EXCEPTION 'nothing has undone step % of workflow %', NEW.step, NEW.workflow_id USING ERRCODE = 'KS012';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER undone BEFORE UPDATE OF state ON compensation
    FOR EACH ROW WHEN (NEW.state = 'done') EXECUTE FUNCTION check_undone();

-- Whether a named person has let it be undone under the stop that stands: one that was engaged since is another one, and a
-- missing row reads as stopped by somebody who has released nothing.
CREATE FUNCTION released(p_id uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM compensation c
                    WHERE c.workflow_id = p_id AND c.state = 'required' AND c.released_at IS NOT NULL
                      AND c.released_at >= coalesce((SELECT max(l.at) FROM stop_log l WHERE l.act = 'stop'), '-infinity')
                      AND 2 = (SELECT count(*) FROM stop s WHERE s.scope IN ('updates', 'reads')
                                  AND (NOT s.engaged OR s.at <= c.released_at)))
$$;

-- Let one be undone under a stop; gives whether there is one to be undone. A driver that has it in hand and has seen the
-- stop, but not this, is stale by now and looks again.
CREATE FUNCTION release_compensation(p_id uuid, p_by text, p_details jsonb) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM workflow WHERE workflow_id = p_id FOR UPDATE;  -- first the workflow, then its rows, as every step does
    UPDATE compensation SET released_by = p_by, released_at = clock_now() WHERE workflow_id = p_id AND state = 'required';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE workflow SET version = version + 1, wake_at = CASE WHEN wake_at IS NOT NULL THEN clock_now() END
     WHERE workflow_id = p_id;
    INSERT INTO audit (workflow_id, actor, action, resource, result, details, at)
    SELECT p_id, p_by, 'compensation_released', resource, state, p_details, clock_now()
      FROM workflow WHERE workflow_id = p_id;
    RETURN true;
END $$;

-- A closed review lets an effect pass as accepted when a stop is lifted, so somebody's name has to answer for it.
CREATE FUNCTION check_answered_for() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM audit a WHERE a.workflow_id = NEW.workflow_id AND a.action = 'review_closed'
                      AND a.at = NEW.review_closed_at) THEN
        RAISE EXCEPTION 'nobody answers for the closed review of workflow %', NEW.workflow_id USING ERRCODE = 'KS012';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER answered_for AFTER UPDATE OF review_closed_at ON workflow DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.review_closed_at IS NOT NULL AND NEW.review_closed_at IS DISTINCT FROM OLD.review_closed_at)
    EXECUTE FUNCTION check_answered_for();

REVOKE ALL ON compensation FROM PUBLIC;
REVOKE ALL ON FUNCTION release_compensation(uuid, text, jsonb), released(uuid), check_undone(), check_answered_for() FROM PUBLIC;
GRANT SELECT ON compensation TO host_rt, host_auditor;
GRANT EXECUTE ON FUNCTION release_compensation(uuid, text, jsonb), released(uuid) TO host_rt;
