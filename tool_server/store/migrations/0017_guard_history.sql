-- What happened stays as it happened, for whoever owns the tables too: a slip of an operator's hand must not free a
-- key, make a cancelled return stand again, or take a call out of the log.
CREATE FUNCTION calls.refuse_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '%.% is append-only', TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = 'append_only', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
END $$;

DO $$
DECLARE
    history text;
BEGIN
    FOREACH history IN ARRAY ARRAY['calls.log', 'calls.tool_switch', 'calls.revocation', 'calls.key', 'calls.key_closed',
                                   'returns.returns', 'returns.return_lines', 'returns.cancellations'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %s
                        FOR EACH STATEMENT EXECUTE FUNCTION calls.refuse_change()', history);
    END LOOP;
END $$;

-- A used token may be forgotten once no clock takes it for good any more; `calls.forget_tokens` asks for no other.
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON calls.token_used
    FOR EACH STATEMENT EXECUTE FUNCTION calls.refuse_change();
CREATE TRIGGER kept_while_good BEFORE DELETE ON calls.token_used
    FOR EACH ROW WHEN (OLD.at >= public.clock_now() - interval '1 hour') EXECUTE FUNCTION calls.refuse_change();
