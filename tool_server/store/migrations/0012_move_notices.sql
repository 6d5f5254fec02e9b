-- Whoever delivers a notice holds a session's advisory lock on its key from before the row says `sending` until
-- after it says what came of it. The lock dies with the process, which is how a dead handler is told from a live one.
CREATE FUNCTION notices.live_lock(tenant text, key text) RETURNS bigint LANGUAGE sql IMMUTABLE
    RETURN hashtextextended(tenant || '/' || key, 2);

-- Claims the key and writes the row, in one commit. `before` is the status that the row had, NULL for a new one;
-- `content` what is to be delivered, NULL where there is nothing more to deliver.
CREATE FUNCTION notices.begin_sending(call jsonb, message jsonb, body bytea, OUT code text, OUT before text,
                                      OUT via text, OUT sent_as text, OUT content bytea)
    LANGUAGE plpgsql AS $$
DECLARE
    replayed boolean;
BEGIN
    SELECT c.code, c.replayed INTO code, replayed FROM calls.claim(call) AS c;
    IF code IS NOT NULL THEN
        PERFORM calls.write_log(call, code);
        RETURN;
    END IF;
    IF replayed THEN
        SELECT n.status, n.channel, n.message_id, n.content INTO before, via, sent_as, content
        FROM notices.outbox AS n
        WHERE n.tenant_id = call ->> 'tenant' AND n.idempotency_key = call ->> 'key';
        IF before = 'pending' THEN
            via := message ->> 'channel';
            UPDATE notices.outbox SET status = 'sending', channel = via
            WHERE tenant_id = call ->> 'tenant' AND idempotency_key = call ->> 'key';
        END IF;
    ELSE
        via := message ->> 'channel';
        sent_as := message ->> 'message_id';
        content := body;
        INSERT INTO notices.outbox (tenant_id, idempotency_key, customer_id, order_id, return_id, kind, corrects,
                                    message_id, channel, destination_ref, status, content)
        SELECT call ->> 'tenant', call ->> 'key', call ->> 'customer', call ->> 'resource', m.return_id, m.kind,
               m.corrects, m.message_id, m.channel, m.destination_ref, 'sending', body
        FROM jsonb_to_record(message) AS m (return_id text, kind text, corrects text, message_id text, channel text,
                                            destination_ref text);
    END IF;
    IF content IS NOT NULL THEN
        PERFORM calls.write_log(call, 'begun');
    END IF;
END $$;

-- Records what came of a delivery, unless somebody else has. A notice that surely did not leave is tried again
-- after a time that doubles from 2 s to 5 minutes, and given up after a day.
CREATE FUNCTION notices.settle(tenant text, key text, outcome text, why text) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := public.clock_now();
BEGIN
    UPDATE notices.outbox AS n
    SET status = s.status, reason = why, tries = n.tries + 1,
        due_at = now + least(interval '5 minutes', interval '1 second' * 2 ^ least(n.tries + 1, 9)),
        sent_at = CASE WHEN s.status = 'sent' THEN now END,
        content = CASE WHEN s.status = 'pending' THEN n.content END
    FROM (SELECT CASE WHEN outcome = 'pending' AND o.created_at < now - interval '1 day' THEN 'rejected'
                      ELSE outcome END AS status
          FROM notices.outbox AS o WHERE o.tenant_id = tenant AND o.idempotency_key = key) AS s
    WHERE n.tenant_id = tenant AND n.idempotency_key = key
      AND (n.status = 'sending' OR (n.status = 'unknown' AND outcome = 'sent'));
END $$;

-- A send's last statement: what came of the delivery (NULL where there was none), the call's log row, the record.
CREATE FUNCTION notices.conclude(call jsonb, outcome text, why text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    found_record jsonb;
    found_status text;
BEGIN
    IF outcome IS NOT NULL THEN
        PERFORM notices.settle(call ->> 'tenant', call ->> 'key', outcome, why);
    END IF;
    SELECT n.record, n.status INTO found_record, found_status FROM notices.records AS n
    WHERE n.tenant_id = call ->> 'tenant' AND n.customer_id = call ->> 'customer'
      AND n.order_id = call ->> 'resource' AND n.idempotency_key = call ->> 'key';
    PERFORM calls.write_log(call, CASE found_status WHEN 'rejected' THEN 'notice_rejected'
                                                    WHEN 'unknown' THEN 'delivery_unknown' ELSE 'ok' END);
    RETURN found_record;
END $$;

-- `stale`: the row says `sending` and nobody alive holds it; the caller settles it and looks again.
CREATE FUNCTION notices.look_up(call jsonb, OUT code text, OUT result jsonb, OUT stale boolean)
    LANGUAGE plpgsql AS $$
DECLARE
    found_record jsonb;
    found_status text;
    through integer;
BEGIN
    stale := false;
    code := calls.gate(call);
    IF code IS NULL AND NOT calls.owned(call) THEN
        code := 'not_found';
    END IF;
    IF code IS NULL THEN
        PERFORM calls.lock_key(call);
        SELECT n.record, n.status INTO found_record, found_status FROM notices.records AS n
        WHERE n.tenant_id = call ->> 'tenant' AND n.customer_id = call ->> 'customer'
          AND n.order_id = call ->> 'resource' AND n.idempotency_key = call ->> 'key';
        IF found_status = 'sending'
           AND pg_try_advisory_xact_lock(notices.live_lock(call ->> 'tenant', call ->> 'key')) THEN
            stale := true;
            RETURN;
        END IF;
        through := calls.close_key(call);
        result := jsonb_build_object(
            'found', found_record IS NOT NULL, 'record', found_record, 'closed_through', through,
            'evidence_ref', coalesce(found_record ->> 'evidence_ref', 'order://' || (call ->> 'resource')));
    END IF;
    PERFORM calls.write_log(call, coalesce(code, 'ok'));
END $$;

GRANT EXECUTE ON FUNCTION notices.live_lock(text, text), notices.begin_sending(jsonb, jsonb, bytea),
    notices.settle(text, text, text, text), notices.conclude(jsonb, text, text), notices.look_up(jsonb)
    TO tools_notices;
