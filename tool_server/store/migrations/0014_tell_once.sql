-- A return is told of once, and only while it stands.

-- A notice that was refused for good made nothing, so it leaves room for another one.
CREATE UNIQUE INDEX one_notice_per_return ON notices.outbox (tenant_id, return_id)
    WHERE kind = 'return' AND status <> 'rejected';

-- A correction may be of a cancelled return: to tell of the cancelling is what it is for.
CREATE FUNCTION notices.may_be_told(n notices.outbox) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN n.kind = 'correction' OR EXISTS (
        SELECT FROM notices.returns_to_tell AS t
        WHERE t.tenant_id = n.tenant_id AND t.return_id = n.return_id AND t.status = 'created');
END $$;

-- Gives up what must not leave any more; the caller holds the key's live lock. Where a dead handler had begun,
-- the mail may be out.
CREATE FUNCTION notices.drop_cancelled(tenant text, key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE notices.outbox AS n
    SET status = CASE n.status WHEN 'pending' THEN 'rejected' ELSE 'unknown' END,
        reason = 'return_cancelled', content = NULL
    WHERE n.tenant_id = tenant AND n.idempotency_key = key AND n.status IN ('pending', 'sending')
      AND NOT notices.may_be_told(n);
END $$;

-- As before, and in addition: a notice whose return was cancelled since is given up, and the second notice of a
-- return is refused with nothing left of its claim.
CREATE OR REPLACE FUNCTION notices.begin_sending(call jsonb, message jsonb, body bytea, OUT code text,
                                                 OUT before text, OUT via text, OUT sent_as text, OUT content bytea)
    LANGUAGE plpgsql AS $$
DECLARE
    replayed boolean;
    broken text;
BEGIN
    SELECT c.code, c.replayed INTO code, replayed FROM calls.claim(call) AS c;
    IF code IS NOT NULL THEN
        PERFORM calls.write_log(call, code);
        RETURN;
    END IF;
    IF replayed THEN
        PERFORM notices.drop_cancelled(call ->> 'tenant', call ->> 'key');
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
EXCEPTION WHEN unique_violation THEN  -- what the block did is undone: neither key nor token is spent
    GET STACKED DIAGNOSTICS broken = CONSTRAINT_NAME;
    IF broken <> 'one_notice_per_return' THEN
        RAISE;
    END IF;
    SELECT 'key_reused', NULL, NULL, NULL, NULL INTO code, before, via, sent_as, content;
    PERFORM calls.write_log(call, code);
END $$;

GRANT EXECUTE ON FUNCTION notices.may_be_told(notices.outbox), notices.drop_cancelled(text, text) TO tools_notices;
