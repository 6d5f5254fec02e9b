-- One clock for leases, windows and the log; only a test's or an evaluation's own database replaces it.
CREATE FUNCTION public.clock_now() RETURNS timestamptz
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN clock_timestamp();

-- What is made from here on is executable by nobody until a grant says so.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION public.clock_now() FROM PUBLIC;

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO tools_orders, tools_policies, tools_returns, tools_notices, tools_auditor;
GRANT EXECUTE ON FUNCTION public.clock_now() TO tools_orders, tools_policies, tools_returns, tools_notices;
