-- The counters move with the rows that they count, in the same transaction, by the owner's triggers: no role of
-- a family can move one, and a row that would break a bound is refused whoever inserts it.
CREATE FUNCTION returns.count_return() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.status = 'created' THEN
        UPDATE returns.order_counters
        SET refunded = refunded + NEW.refund, shipping_refunded = shipping_refunded + NEW.shipping_refund
        WHERE tenant_id = NEW.tenant_id AND order_id = NEW.order_id;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION returns.count_return_line() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE returns.line_counters AS c
    SET returned = c.returned + NEW.quantity, refunded = c.refunded + NEW.refund
    FROM returns.returns AS r
    WHERE r.tenant_id = NEW.tenant_id AND r.return_id = NEW.return_id AND r.status = 'created'
      AND c.tenant_id = NEW.tenant_id AND c.order_id = NEW.order_id AND c.line_id = NEW.line_id;
    RETURN NULL;
END $$;

CREATE FUNCTION returns.count_cancellation() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE returns.line_counters AS c
    SET returned = c.returned - l.quantity, refunded = c.refunded - l.refund
    FROM returns.return_lines AS l JOIN returns.returns AS r USING (tenant_id, return_id)
    WHERE l.tenant_id = NEW.tenant_id AND l.return_id = NEW.return_id AND r.status = 'created'
      AND c.tenant_id = l.tenant_id AND c.order_id = l.order_id AND c.line_id = l.line_id;
    UPDATE returns.order_counters AS c
    SET refunded = c.refunded - r.refund, shipping_refunded = c.shipping_refunded - r.shipping_refund
    FROM returns.returns AS r
    WHERE r.tenant_id = NEW.tenant_id AND r.return_id = NEW.return_id AND r.status = 'created'
      AND c.tenant_id = r.tenant_id AND c.order_id = r.order_id;
    RETURN NULL;
END $$;

CREATE TRIGGER counted AFTER INSERT ON returns.returns
    FOR EACH ROW EXECUTE FUNCTION returns.count_return();
CREATE TRIGGER counted AFTER INSERT ON returns.return_lines
    FOR EACH ROW EXECUTE FUNCTION returns.count_return_line();
CREATE TRIGGER counted AFTER INSERT ON returns.cancellations
    FOR EACH ROW EXECUTE FUNCTION returns.count_cancellation();

-- Always all lines of the order, always in line order: two returns of one order can wait, never deadlock.
CREATE FUNCTION returns.lock_order(tenant text, the_order text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM returns.line_counters AS c WHERE c.tenant_id = tenant AND c.order_id = the_order
    ORDER BY c.line_no FOR UPDATE;
END $$;
GRANT EXECUTE ON FUNCTION returns.lock_order(text, text) TO tools_returns;

-- What `get_order` tells of returns; nothing else of this family is the order family's.
CREATE VIEW returns.returned_units AS SELECT tenant_id, order_id, line_id, returned FROM returns.line_counters;
CREATE VIEW returns.refunded_amount AS
    SELECT tenant_id, order_id, refunded + refunded_outside AS refunded FROM returns.order_counters;
GRANT SELECT ON returns.returned_units, returns.refunded_amount TO tools_orders;
