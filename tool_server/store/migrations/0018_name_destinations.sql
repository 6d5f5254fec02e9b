-- An approval is of an amount and of where it goes, so the facts of a return name the order's destination. What they
-- name is a reference and no personal column: it tells two destinations apart, and neither's account nor address.
CREATE OR REPLACE VIEW policies.order_lines AS
SELECT o.tenant_id, o.customer_id, o.order_id, o.version, o.currency, o.snapshot,
       -- An order whose whole payment went back on other ways is a refunded order, whatever its status says.
       CASE WHEN o.captured > 0 AND n.refunded_outside >= n.captured AND o.status <> 'cancelled' THEN 'refunded'
            ELSE o.status END AS status,
       n.captured - n.refunded_outside - n.refunded AS refundable, n.refunded AS other_returns,
       n.shipping_fee - n.shipping_refunded AS shipping_left,
       l.line_id, l.line_no, l.category, l.delivered_at, l.dangerous, l.final_sale,
       c.bought, c.delivered, c.returned, c.paid, c.refunded,
       (SELECT coalesce(jsonb_agg(r.return_id ORDER BY r.created_at, r.return_id), '[]')
        FROM returns.return_lines AS b JOIN returns.returns AS r USING (tenant_id, return_id)
        WHERE b.tenant_id = l.tenant_id AND b.order_id = l.order_id AND b.line_id = l.line_id AND r.status = 'created'
          AND NOT EXISTS (SELECT FROM returns.cancellations AS x
                          WHERE x.tenant_id = r.tenant_id AND x.return_id = r.return_id)) AS held_by,
       o.destination_ref
FROM orders.orders AS o
JOIN returns.order_counters AS n USING (tenant_id, order_id)
JOIN orders.lines AS l USING (tenant_id, order_id)
JOIN returns.line_counters AS c USING (tenant_id, order_id, line_id);

-- As before, and in addition: the destination.
CREATE OR REPLACE FUNCTION policies.facts(tenant text, customer text, the_order text, asked_at timestamptz) RETURNS jsonb
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    moment timestamptz := coalesce(asked_at, public.clock_now());
    rules policies.versions;
    facts jsonb;
BEGIN
    SELECT * INTO rules FROM policies.versions AS v
    WHERE v.effective_from <= moment AND (v.effective_until IS NULL OR v.effective_until > moment)
    ORDER BY v.effective_from DESC LIMIT 1;
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
