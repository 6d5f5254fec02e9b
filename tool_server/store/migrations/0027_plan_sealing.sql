-- What a line is sealed as was planned anew for each line, since each plan of its own looked cheaper than the one for all:
-- half of what sealing cost. Now it is planned once in a session, and by keys alone, as the tables may be empty then.
ALTER FUNCTION calls.seal_batch(integer) SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off;
