-- Which returns came with the loaded data, by the word of its loader, who is the owner. A return without a key that is
-- none of these was made by no call.
CREATE TABLE returns.loaded (
    tenant_id text NOT NULL,
    return_id text NOT NULL,
    PRIMARY KEY (tenant_id, return_id),
    FOREIGN KEY (tenant_id, return_id) REFERENCES returns.returns
);
-- of what was loaded before, only the times say so
INSERT INTO returns.loaded (tenant_id, return_id)
SELECT r.tenant_id, r.return_id FROM returns.returns AS r
WHERE r.idempotency_key IS NULL AND r.created_at = r.requested_at;

ALTER TABLE returns.loaded ENABLE ROW LEVEL SECURITY;
CREATE POLICY audited ON returns.loaded FOR SELECT TO tools_auditor USING (true);
GRANT SELECT ON returns.loaded TO tools_auditor;
