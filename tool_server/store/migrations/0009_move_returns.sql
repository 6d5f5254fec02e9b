-- What may happen to returns, each inside the transaction that claimed its key and locked its order.

-- Issues a return that the rules allow; the counters' triggers have the last word on every bound.
CREATE FUNCTION returns.issue(call jsonb, ruled jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    tenant text := call ->> 'tenant';
BEGIN
    INSERT INTO returns.returns (tenant_id, return_id, order_id, customer_id, idempotency_key, status, reason,
                                 currency, refund, shipping_refund, return_fee, rule_version, order_version,
                                 requested_at)
    SELECT tenant, r.return_id, call ->> 'resource', call ->> 'customer', call ->> 'key', 'created', r.reason,
           r.currency, r.refund, r.shipping_refund, r.return_fee, r.rule_version, r.order_version, r.requested_at
    FROM jsonb_to_record(ruled) AS r (
        return_id text, reason text, currency text, refund bigint, shipping_refund bigint, return_fee bigint,
        rule_version text, order_version integer, requested_at timestamptz);
    INSERT INTO returns.return_lines (tenant_id, order_id, return_id, line_id, quantity, refund)
    SELECT tenant, call ->> 'resource', ruled ->> 'return_id', l.line_id, l.quantity, l.refund
    FROM jsonb_to_recordset(ruled -> 'lines') AS l (line_id text, quantity integer, refund bigint);
    PERFORM calls.write_log(call, 'ok');
    RETURN (SELECT r.record FROM returns.records AS r
            WHERE r.tenant_id = tenant AND r.return_id = ruled ->> 'return_id');
END $$;

-- Frees the units of a return in the same transaction, unless its label was used or it is not open.
CREATE FUNCTION returns.cancel(call jsonb, the_return text, OUT code text, OUT result jsonb)
    LANGUAGE plpgsql AS $$
DECLARE
    tenant text := call ->> 'tenant';
    standing text;
BEGIN
    SELECT r.status INTO standing FROM returns.records AS r
    WHERE r.tenant_id = tenant AND r.customer_id = call ->> 'customer' AND r.order_id = call ->> 'resource'
      AND r.return_id = the_return;
    IF standing IS NULL THEN
        code := 'not_found';
    ELSIF standing <> 'created' THEN
        code := 'not_eligible';
        result := jsonb_build_object('reason', 'return_is_' || standing);
    ELSIF EXISTS (SELECT FROM returns.links AS k
                  WHERE k.tenant_id = tenant AND k.return_id = the_return AND k.kind = 'label_used') THEN
        code := 'label_used';
    ELSE
        INSERT INTO returns.cancellations (tenant_id, return_id, idempotency_key)
        VALUES (tenant, the_return, call ->> 'key');
        PERFORM calls.write_log(call, 'ok');
        result := (SELECT r.cancellation FROM returns.records AS r
                   WHERE r.tenant_id = tenant AND r.return_id = the_return);
    END IF;
END $$;

-- The effect of a key that was claimed before, as it stands now: what a replay answers with.
CREATE FUNCTION returns.replay(call jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM calls.write_log(call, 'ok');
    RETURN (SELECT CASE WHEN r.idempotency_key = call ->> 'key' THEN r.record ELSE r.cancellation END
            FROM returns.records AS r
            WHERE r.tenant_id = call ->> 'tenant' AND r.customer_id = call ->> 'customer'
              AND r.order_id = call ->> 'resource' AND call ->> 'key' IN (r.idempotency_key, r.cancel_key));
END $$;

-- Finds what a key did, or closes it for the attempt: under the key's lock, so that neither can be overtaken.
CREATE FUNCTION returns.look_up(call jsonb, OUT code text, OUT result jsonb) LANGUAGE plpgsql AS $$
DECLARE
    found_record jsonb;
    through integer;
BEGIN
    code := calls.gate(call);
    IF code IS NULL AND NOT calls.owned(call) THEN
        code := 'not_found';
    END IF;
    IF code IS NULL THEN
        PERFORM calls.lock_key(call);
        SELECT r.record INTO found_record FROM returns.records AS r
        WHERE r.tenant_id = call ->> 'tenant' AND r.customer_id = call ->> 'customer'
          AND r.order_id = call ->> 'resource' AND call ->> 'key' IN (r.idempotency_key, r.cancel_key);
        through := calls.close_key(call);
        result := jsonb_build_object(
            'found', found_record IS NOT NULL, 'record', found_record, 'closed_through', through,
            'evidence_ref', coalesce(found_record ->> 'evidence_ref', 'order://' || (call ->> 'resource')));
    END IF;
    PERFORM calls.write_log(call, coalesce(code, 'ok'));
END $$;

GRANT EXECUTE ON FUNCTION returns.issue(jsonb, jsonb), returns.cancel(jsonb, text), returns.replay(jsonb),
    returns.look_up(jsonb) TO tools_returns;
