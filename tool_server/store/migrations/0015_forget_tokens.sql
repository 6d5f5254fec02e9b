-- A used token need not be known any longer than it could be sent again. Nobody may delete rows of this table but
-- through this function, which decides for itself what is old enough.
CREATE INDEX token_used_at ON calls.token_used (at);

-- No token lives longer than 15 minutes; the rest of the hour is for clocks that differ.
CREATE FUNCTION calls.forget_tokens() RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    -- materialised: inlined, the limit would hold anew each time that the plan looks into it
    WITH old AS MATERIALIZED (
        SELECT iss, jti FROM calls.token_used WHERE at < public.clock_now() - interval '1 hour'
        ORDER BY at LIMIT 500 FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM calls.token_used t USING old WHERE (t.iss, t.jti) = (old.iss, old.jti) RETURNING 1)
    SELECT count(*) FROM gone
$$;

REVOKE EXECUTE ON FUNCTION calls.forget_tokens() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION calls.forget_tokens() TO tools_notices;
