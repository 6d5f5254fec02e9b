-- A time before the first year reads as one, and one without an end is a text too: nobody hides a change, or a row that was
-- put in, behind them. Of every other time the text is as before.
CREATE OR REPLACE FUNCTION calls.utc_text(p timestamptz) RETURNS text LANGUAGE sql STABLE
    RETURN CASE WHEN isfinite(p) THEN to_char(p AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') ||
                CASE WHEN p < '0001-01-01T00:00:00Z' THEN ' BC' ELSE '' END ELSE p::text END;
