-- Beneath every statement of a handler the database itself shows and takes no row but those of the call's own token:
-- its tenant, its customer, the order or case that it names. A statement that forgets to ask for them finds no others.

-- The bounds hold until the end of the transaction, so a connection that is lent on has none. Unset is nobody's.
CREATE FUNCTION calls.enter(call jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('kessai.tenant', coalesce(call ->> 'tenant', ''), true),
            set_config('kessai.customer', coalesce(call ->> 'customer', ''), true),
            set_config('kessai.reach', coalesce(call ->> 'reach', ''), true),
            set_config('kessai.task', coalesce(call ->> 'task_id', ''), true),
            set_config('kessai.key', coalesce(call ->> 'key', ''), true);
    RETURN call;
END $$;

CREATE FUNCTION calls.tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('kessai.tenant', true), '');
CREATE FUNCTION calls.customer() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('kessai.customer', true), '');
CREATE FUNCTION calls.task() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('kessai.task', true), '');
CREATE FUNCTION calls.key() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('kessai.key', true), '');
-- '*' is of a token that names no order and no case: it reads whatever is its customer's. No identifier is '*'.
CREATE FUNCTION calls.reaches(id text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN current_setting('kessai.reach', true) = id OR current_setting('kessai.reach', true) = '*';

GRANT EXECUTE ON FUNCTION calls.enter(jsonb), calls.tenant(), calls.customer(), calls.task(), calls.key(),
    calls.reaches(text) TO tools_orders, tools_policies, tools_returns, tools_notices, tools_document;
-- an auditor has no bounds, and a row that it may see is found by asking for them first
GRANT EXECUTE ON FUNCTION calls.tenant(), calls.customer(), calls.task(), calls.key(), calls.reaches(text)
    TO tools_auditor;

-- A view that works with its owner's rights would show everybody's rows. These work with their reader's, who therefore
-- needs the columns that they show. `notices.audited` stays as it was: it is the auditor's alone, who sees all tenants.
ALTER VIEW orders.owned SET (security_invoker = true);
ALTER VIEW returns.records SET (security_invoker = true);
ALTER VIEW returns.returned_units SET (security_invoker = true);
ALTER VIEW returns.refunded_amount SET (security_invoker = true);
ALTER VIEW returns.trusted_approvers SET (security_invoker = true);
ALTER VIEW policies.order_lines SET (security_invoker = true);
ALTER VIEW policies.category_rules SET (security_invoker = true);
ALTER VIEW notices.returns_to_tell SET (security_invoker = true);
ALTER VIEW document.current_cases SET (security_invoker = true);
ALTER VIEW document.current_documents SET (security_invoker = true);

GRANT SELECT (tenant_id, order_id, customer_id) ON orders.orders TO tools_policies, tools_returns, tools_notices;
GRANT SELECT (version, status, currency, captured, destination_ref, snapshot) ON orders.orders
    TO tools_policies, tools_returns;
GRANT SELECT (tenant_id, order_id, line_id, line_no, category, delivered_at, final_sale, dangerous) ON orders.lines
    TO tools_policies, tools_returns;
GRANT SELECT (tenant_id, order_id, line_id, line_no, name) ON orders.lines TO tools_notices;
GRANT SELECT (version, category, window_days, dangerous, final_sale) ON policies.rules TO tools_policies, tools_returns;
GRANT SELECT (tenant_id, order_id, refunded, refunded_outside) ON returns.order_counters TO tools_orders;
GRANT SELECT (tenant_id, order_id, line_id, returned) ON returns.line_counters TO tools_orders;
GRANT SELECT ON returns.order_counters, returns.line_counters TO tools_policies;
GRANT SELECT (tenant_id, return_id, order_id, customer_id, status, created_at) ON returns.returns
    TO tools_policies, tools_notices;
GRANT SELECT (tenant_id, order_id, return_id, line_id) ON returns.return_lines TO tools_policies;
GRANT SELECT (tenant_id, order_id, return_id, line_id, quantity) ON returns.return_lines TO tools_notices;
GRANT SELECT (tenant_id, return_id) ON returns.cancellations TO tools_policies, tools_notices;
GRANT SELECT (tenant_id, kid, public_key, approver, limit_amount, limit_currency, substitutes,
              substitutes_after_seconds, ended_at) ON returns.approvers TO tools_returns;
GRANT SELECT ON document.cases, document.documents TO tools_document;

-- Whose a case is, is told by its newest version; an earlier claimant sees none of it, the earlier versions neither.
-- This view asks past the policies of the table that it is part of, so it has the bounds within itself.
CREATE VIEW document.held WITH (security_barrier = true) AS
SELECT n.tenant_id, n.case_id
FROM (SELECT DISTINCT ON (c.tenant_id, c.case_id) c.tenant_id, c.case_id, c.claimant_id
      FROM document.cases AS c ORDER BY c.tenant_id, c.case_id, c.version DESC) AS n
WHERE n.tenant_id = calls.tenant() AND n.claimant_id = calls.customer() AND calls.reaches(n.case_id);
GRANT SELECT ON document.held TO tools_document;

-- What is asked of another table is asked row by row, by its key (OFFSET 0): never by reading that table whole.
CREATE POLICY bounds ON orders.orders
    USING (tenant_id = calls.tenant() AND customer_id = calls.customer() AND calls.reaches(order_id));
CREATE POLICY bounds ON orders.lines
    USING (tenant_id = calls.tenant() AND calls.reaches(order_id) AND EXISTS (
        SELECT FROM orders.orders AS o WHERE o.tenant_id = lines.tenant_id AND o.order_id = lines.order_id OFFSET 0));
CREATE POLICY bounds ON returns.order_counters
    USING (tenant_id = calls.tenant() AND calls.reaches(order_id) AND EXISTS (
        SELECT FROM orders.orders AS o
        WHERE o.tenant_id = order_counters.tenant_id AND o.order_id = order_counters.order_id OFFSET 0));
CREATE POLICY bounds ON returns.line_counters
    USING (tenant_id = calls.tenant() AND calls.reaches(order_id) AND EXISTS (
        SELECT FROM orders.orders AS o
        WHERE o.tenant_id = line_counters.tenant_id AND o.order_id = line_counters.order_id OFFSET 0));

-- Nothing is made for an order that is not the customer's.
CREATE POLICY bounds ON returns.returns
    USING (tenant_id = calls.tenant() AND customer_id = calls.customer() AND calls.reaches(order_id))
    WITH CHECK (tenant_id = calls.tenant() AND customer_id = calls.customer() AND calls.reaches(order_id) AND EXISTS (
        SELECT FROM orders.orders AS o
        WHERE o.tenant_id = returns.tenant_id AND o.order_id = returns.order_id OFFSET 0));
CREATE POLICY bounds ON returns.return_lines
    USING (tenant_id = calls.tenant() AND calls.reaches(order_id) AND EXISTS (
        SELECT FROM returns.returns AS r
        WHERE r.tenant_id = return_lines.tenant_id AND r.return_id = return_lines.return_id OFFSET 0));
CREATE POLICY bounds ON returns.cancellations
    USING (tenant_id = calls.tenant() AND EXISTS (
        SELECT FROM returns.returns AS r
        WHERE r.tenant_id = cancellations.tenant_id AND r.return_id = cancellations.return_id OFFSET 0));
CREATE POLICY bounds ON returns.links
    USING (tenant_id = calls.tenant() AND EXISTS (
        SELECT FROM returns.returns AS r
        WHERE r.tenant_id = links.tenant_id AND r.return_id = links.return_id OFFSET 0));
CREATE POLICY bounds ON returns.approvers USING (tenant_id = calls.tenant());
CREATE POLICY bounds ON returns.approvals_used USING (tenant_id = calls.tenant() AND idempotency_key = calls.key());

CREATE POLICY bounds ON notices.recipients USING (tenant_id = calls.tenant() AND customer_id = calls.customer());
CREATE POLICY bounds ON notices.outbox
    USING (tenant_id = calls.tenant() AND customer_id = calls.customer() AND calls.reaches(order_id))
    WITH CHECK (tenant_id = calls.tenant() AND customer_id = calls.customer() AND calls.reaches(order_id) AND EXISTS (
        SELECT FROM orders.orders AS o
        WHERE o.tenant_id = outbox.tenant_id AND o.order_id = outbox.order_id OFFSET 0));

-- Rules without a tenant are everybody's, and nobody's who has not said whose call it is.
CREATE POLICY bounds ON policies.versions
    USING (tenant_id = calls.tenant() OR (tenant_id IS NULL AND calls.tenant() IS NOT NULL));
CREATE POLICY bounds ON policies.rules
    USING (EXISTS (SELECT FROM policies.versions AS v WHERE v.version = rules.version OFFSET 0));
CREATE POLICY bounds ON policies.amounts
    USING (EXISTS (SELECT FROM policies.versions AS v WHERE v.version = amounts.version OFFSET 0));

CREATE POLICY bounds ON document.rule_sets USING (tenant_id = calls.tenant());
CREATE POLICY bounds ON document.aliases USING (tenant_id = calls.tenant());
CREATE POLICY bounds ON document.cases
    USING (tenant_id = calls.tenant() AND calls.reaches(case_id) AND EXISTS (
        SELECT FROM document.held AS h WHERE h.tenant_id = cases.tenant_id AND h.case_id = cases.case_id OFFSET 0));
CREATE POLICY bounds ON document.documents
    USING (tenant_id = calls.tenant() AND calls.reaches(case_id) AND EXISTS (
        SELECT FROM document.held AS h
        WHERE h.tenant_id = documents.tenant_id AND h.case_id = documents.case_id OFFSET 0));

-- A key that another customer has used must be seen, so as to be refused.
CREATE POLICY bounds ON calls.key
    USING (tenant_id = calls.tenant() AND idempotency_key = calls.key())
    WITH CHECK (tenant_id = calls.tenant() AND idempotency_key = calls.key() AND customer_id = calls.customer());
CREATE POLICY bounds ON calls.key_closed USING (tenant_id = calls.tenant() AND idempotency_key = calls.key());
CREATE POLICY bounds ON calls.log USING (tenant_id = calls.tenant() AND task_id = calls.task());

DO $$
DECLARE
    bound text;
BEGIN
    FOREACH bound IN ARRAY ARRAY[
        'orders.orders', 'orders.lines', 'returns.order_counters', 'returns.line_counters', 'returns.returns',
        'returns.return_lines', 'returns.cancellations', 'returns.links', 'returns.approvers',
        'returns.approvals_used', 'notices.recipients', 'notices.outbox', 'policies.versions', 'policies.rules',
        'policies.amounts', 'document.rule_sets', 'document.aliases', 'document.cases', 'document.documents',
        'calls.key', 'calls.key_closed', 'calls.log'] LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', bound);
    END LOOP;
    -- The auditor compares both sides as a whole, and writes nothing.
    FOREACH bound IN ARRAY ARRAY[
        'returns.returns', 'returns.return_lines', 'returns.cancellations', 'returns.links', 'returns.approvers',
        'returns.approvals_used', 'calls.key', 'calls.key_closed', 'calls.log'] LOOP
        EXECUTE format('CREATE POLICY audited ON %s FOR SELECT TO tools_auditor USING (true)', bound);
    END LOOP;
END $$;

-- As before, and of an order within the call's bounds alone: it works with its owner's rights.
CREATE OR REPLACE FUNCTION returns.lock_order(tenant text, the_order text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM returns.line_counters AS c
    WHERE c.tenant_id = tenant AND c.order_id = the_order AND c.tenant_id = calls.tenant() AND calls.reaches(c.order_id)
    ORDER BY c.line_no FOR UPDATE;
END $$;

-- Whoever sends what waits has no token. It learns whose the waiting rows are, and reads each within the bounds of the
-- call that made it.
CREATE FUNCTION notices.due(at_most integer)
    RETURNS TABLE (tenant_id text, idempotency_key text, customer_id text, order_id text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT n.tenant_id, n.idempotency_key, n.customer_id, n.order_id FROM notices.outbox AS n
    WHERE n.status = 'pending' AND n.due_at <= public.clock_now() ORDER BY n.due_at LIMIT at_most
$$;
GRANT EXECUTE ON FUNCTION notices.due(integer) TO tools_notices;
