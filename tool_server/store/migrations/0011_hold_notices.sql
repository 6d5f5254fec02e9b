-- The notice family: whom to tell, and an outbox whose rows move only along the listed edges.
CREATE SCHEMA notices;
GRANT USAGE ON SCHEMA notices TO tools_notices, tools_auditor;

-- Personal data; no other family and no auditor reads it.
CREATE TABLE notices.recipients (
    tenant_id text NOT NULL,
    customer_id text NOT NULL,
    email text NOT NULL CHECK (email !~ '[[:space:][:cntrl:]]'),
    name text NOT NULL CHECK (name !~ '[[:cntrl:]]'),
    language text NOT NULL CHECK (language IN ('ja', 'en')),
    PRIMARY KEY (tenant_id, customer_id)
);

-- `content` is the whole message as it leaves, and is forgotten once nothing can need it again.
CREATE TABLE notices.outbox (
    tenant_id text NOT NULL,
    idempotency_key text NOT NULL,
    customer_id text NOT NULL,
    order_id text NOT NULL,
    return_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('return', 'correction')),
    corrects text,
    message_id text NOT NULL,
    channel text NOT NULL,
    destination_ref text NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'sending', 'sent', 'rejected', 'unknown')),
    reason text,
    content bytea,
    tries integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    due_at timestamptz NOT NULL DEFAULT public.clock_now(),
    created_at timestamptz NOT NULL DEFAULT public.clock_now(),
    sent_at timestamptz,
    CONSTRAINT one_notice_per_key PRIMARY KEY (tenant_id, idempotency_key),
    CONSTRAINT one_row_per_message UNIQUE (tenant_id, message_id),
    CONSTRAINT correction_names_its_notice CHECK ((kind = 'correction') = (corrects IS NOT NULL)),
    CONSTRAINT sent_has_its_time CHECK ((status = 'sent') = (sent_at IS NOT NULL)),
    CONSTRAINT unsent_keeps_its_content CHECK (content IS NOT NULL OR status NOT IN ('pending', 'sending'))
);
CREATE INDEX outbox_due ON notices.outbox (due_at) WHERE status = 'pending';

CREATE FUNCTION notices.refuse_illegal_move() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (OLD.status, NEW.status) NOT IN (
        ('pending', 'sending'),                            -- somebody takes it
        ('sending', 'pending'),                            -- it surely did not leave
        ('sending', 'sent'), ('sending', 'rejected'),      -- the answer came
        ('sending', 'unknown'), ('unknown', 'sent'),       -- the answer was lost; it came after all
        ('pending', 'rejected')                            -- given up before it ever left
    ) THEN
        RAISE EXCEPTION 'a notice does not go from % to %', OLD.status, NEW.status
            USING ERRCODE = 'check_violation', CONSTRAINT = 'legal_move', SCHEMA = 'notices', TABLE = 'outbox';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER legal_move BEFORE UPDATE OF status ON notices.outbox
    FOR EACH ROW EXECUTE FUNCTION notices.refuse_illegal_move();

-- What a notice tells of a return.
CREATE VIEW notices.returns_to_tell AS
SELECT r.tenant_id, r.customer_id, r.order_id, r.return_id,
       CASE WHEN c.return_id IS NULL THEN r.status ELSE 'cancelled' END AS status,
       (SELECT jsonb_agg(jsonb_build_object('name', o.name, 'quantity', l.quantity) ORDER BY o.line_no)
        FROM returns.return_lines AS l JOIN orders.lines AS o USING (tenant_id, order_id, line_id)
        WHERE l.tenant_id = r.tenant_id AND l.return_id = r.return_id) AS lines
FROM returns.returns AS r LEFT JOIN returns.cancellations AS c USING (tenant_id, return_id);

-- A notice as it stands on the wire.
CREATE VIEW notices.records WITH (security_invoker = true) AS
SELECT n.tenant_id, n.customer_id, n.order_id, n.return_id, n.idempotency_key, n.message_id, n.status,
       jsonb_build_object(
           'message_id', n.message_id, 'order_id', n.order_id, 'return_id', n.return_id, 'kind', n.kind,
           'corrects', n.corrects, 'status', CASE n.status WHEN 'pending' THEN 'queued' ELSE n.status END,
           'channel', n.channel, 'destination_ref', n.destination_ref, 'sent_at', n.sent_at,
           'evidence_ref', 'notice://' || trim(BOTH '<>' FROM n.message_id)) AS record
FROM notices.outbox AS n;

GRANT SELECT ON notices.recipients, notices.returns_to_tell, notices.records TO tools_notices;
GRANT SELECT, INSERT,
    UPDATE (status, channel, reason, content, tries, due_at, sent_at) ON notices.outbox TO tools_notices;
