-- Whose approval a call rested on, or came with and was refused: the event's id and who signed it, never the signature.
-- Both are null where no signature held, since nothing of such an event is believed.
ALTER TABLE calls.log ADD COLUMN approval_event text, ADD COLUMN approver text;

-- As before, and in addition: the approval.
CREATE OR REPLACE FUNCTION calls.write_log(call jsonb, outcome text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calls.log (iss, sub, client_id, kid, jti, use, purpose, tenant_id, task_id, tool, version, resource,
                           arguments_sha256, idempotency_key, attempt, outcome, duration_us, approval_event, approver)
    SELECT c.iss, c.sub, c.client_id, c.kid, c.jti, c.use, c.purpose, c.tenant, c.task_id, c.tool, c.version,
           c.resource, c.arguments_sha256, c.key, c.attempt, write_log.outcome,
           c.spent_us + (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::bigint,
           c.approval_event, c.approver
    FROM jsonb_to_record(call) AS c (
        iss text, sub text, client_id text, kid text, jti text, use text, purpose text, tenant text, task_id text,
        tool text, version text, resource text, arguments_sha256 text, key text, attempt integer, spent_us bigint,
        approval_event text, approver text);
END $$;
