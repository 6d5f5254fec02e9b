-- Who is connected, and what it may do besides its family's work.

-- name: judge
SELECT me.rolname::text,
       EXISTS (SELECT FROM pg_roles AS f WHERE f.rolname = %(role)s AND pg_has_role(me.oid, f.oid, 'USAGE')),
       EXISTS (SELECT FROM pg_database AS d WHERE d.datname = current_database() AND d.datdba = me.oid)
       OR EXISTS (SELECT FROM pg_namespace AS n
                  WHERE left(n.nspname, 3) <> 'pg_' AND n.nspname <> 'information_schema' AND n.nspowner = me.oid),
       me.rolsuper OR me.rolcreaterole OR me.rolcreatedb OR me.rolreplication OR me.rolbypassrls,
       (SELECT coalesce(array_agg(o.rolname::text ORDER BY o.rolname), '{}') FROM pg_roles AS o
        WHERE o.rolname NOT IN (me.rolname, %(role)s) AND pg_has_role(me.oid, o.oid, 'MEMBER'))
FROM pg_roles AS me WHERE me.rolname = session_user
