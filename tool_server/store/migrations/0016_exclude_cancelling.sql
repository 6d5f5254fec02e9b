-- Telling of a return and cancelling it exclude each other. Whoever sends a notice holds this lock, shared and in its
-- session, from before it looks whether the return stands until the mail has left; a cancellation takes it alone.
-- So a mail never asks for goods of a return that was cancelled before the mail left.
CREATE FUNCTION returns.standing_lock(tenant text, the_return text) RETURNS bigint LANGUAGE sql IMMUTABLE
    RETURN hashtextextended(tenant || '/' || the_return, 3);

-- As before, and in addition: it waits for a notice of the return that is on its way.
CREATE OR REPLACE FUNCTION returns.cancel(call jsonb, the_return text, OUT code text, OUT result jsonb)
    LANGUAGE plpgsql AS $$
DECLARE
    tenant text := call ->> 'tenant';
    standing text;
BEGIN
    PERFORM pg_advisory_xact_lock(returns.standing_lock(tenant, the_return));
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

GRANT EXECUTE ON FUNCTION returns.standing_lock(text, text) TO tools_returns, tools_notices;
