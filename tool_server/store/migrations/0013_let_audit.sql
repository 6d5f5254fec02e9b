-- The auditor compares; it reads no address, no name, no text of a mail, and writes nothing.
CREATE VIEW notices.audited AS
SELECT tenant_id, idempotency_key, customer_id, order_id, return_id, kind, corrects, message_id, channel, status,
       reason, tries, created_at, sent_at
FROM notices.outbox;
GRANT SELECT ON notices.audited TO tools_auditor;
GRANT SELECT ON calls.key, calls.key_closed, calls.token_used, calls.tool_switch, calls.revocation TO tools_auditor;
