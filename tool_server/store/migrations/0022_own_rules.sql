-- A version of the rules may be one tenant's alone: it says nothing of the others' returns, whenever it begins.
ALTER TABLE policies.versions ADD COLUMN tenant_id text;
ALTER TABLE policies.versions DROP CONSTRAINT versions_effective_from_key;
CREATE UNIQUE INDEX versions_effective_from_key ON policies.versions (effective_from) WHERE tenant_id IS NULL;
CREATE UNIQUE INDEX versions_of_tenant_key ON policies.versions (tenant_id, effective_from) WHERE tenant_id IS NOT NULL;

-- As before, but of the rules in effect a tenant's own come before everybody's.
CREATE OR REPLACE FUNCTION policies.facts(tenant text, customer text, the_order text, asked_at timestamptz) RETURNS jsonb
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    moment timestamptz := coalesce(asked_at, public.clock_now());
    rules policies.versions;
    facts jsonb;
BEGIN
    SELECT * INTO rules FROM policies.versions AS v
    WHERE v.effective_from <= moment AND (v.effective_until IS NULL OR v.effective_until > moment)
      AND (v.tenant_id IS NULL OR v.tenant_id = tenant)
    ORDER BY v.tenant_id IS NOT NULL DESC, v.effective_from DESC LIMIT 1;
    SELECT jsonb_build_object(
        'requested_at', moment, 'status', min(o.status), 'version', min(o.version), 'currency', min(o.currency),
        'snapshot', min(o.snapshot), 'destination_ref', min(o.destination_ref), 'refundable', min(o.refundable),
        'other_returns', min(o.other_returns),
        'shipping_left', min(o.shipping_left), 'rule_version', rules.version, 'rule_owner', rules.owner,
        'zone', rules.zone,
        'approval_threshold', (SELECT a.amount FROM policies.amounts AS a WHERE a.version = rules.version
                               AND a.kind = 'approval_threshold' AND a.currency = min(o.currency)),
        'return_fee', coalesce((SELECT a.amount FROM policies.amounts AS a WHERE a.version = rules.version
                                AND a.kind = 'return_fee' AND a.currency = min(o.currency)), 0),
        'lines', jsonb_object_agg(o.line_id, jsonb_build_object(
            'bought', o.bought, 'delivered', o.delivered, 'returned', o.returned, 'paid', o.paid,
            'refunded', o.refunded, 'held_by', o.held_by, 'delivered_at', o.delivered_at, 'category_known', r.category IS NOT NULL,
            'conflict', coalesce(r.conflict, false), 'window_days', r.window_days,
            'dangerous', o.dangerous OR coalesce(r.dangerous, false),
            'final_sale', o.final_sale OR coalesce(r.final_sale, false))))
    INTO facts
    FROM policies.order_lines AS o
    LEFT JOIN policies.category_rules AS r ON r.version = rules.version AND r.category = o.category
    WHERE o.tenant_id = tenant AND o.customer_id = customer AND o.order_id = the_order
    HAVING count(*) > 0;
    IF facts IS NOT NULL AND rules.version IS NULL THEN
        RETURN jsonb_build_object('refused', 'not_eligible', 'reason', 'no_rules');
    END IF;
    RETURN facts;
END $$;
