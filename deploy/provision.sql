-- Two databases, each with an owner that can make its own limited roles, and nothing for PUBLIC.
--
--   psql -v ON_ERROR_STOP=1 -v secrets=./secrets -d postgres -f deploy/provision.sql
--
-- as a superuser, or as a role with CREATEDB and CREATEROLE. May be run again at any time, on PostgreSQL 15 or newer.
-- `secrets` is a directory that `kessai secrets` made, /run/secrets where it is not given; of it, the files
-- host_owner and tools_owner are read here. The limited roles are made by the two `migrate` commands.

\set ON_ERROR_STOP on
\if :{?secrets}
\else
  \set secrets /run/secrets
\endif
\set password_missing `test -s :'secrets'/host_owner && test -s :'secrets'/tools_owner && echo no || echo yes`
\if :password_missing
  DO $$ BEGIN RAISE EXCEPTION 'the password files host_owner and tools_owner are not there, or empty'; END $$;
\endif

SELECT current_setting('is_superuser')::boolean AS superuser,
       current_setting('server_version_num')::integer >= 170000 AS bounds_transactions
\gset
\if :superuser
  -- The server's log may be told statements that fail or are slow, or all of them; two of these hold a password.
  -- Whoever is no superuser cannot turn that off, and looks at the server's log settings first.
  SET log_statement = 'none';
  SET log_min_error_statement = 'panic';
  SET log_min_duration_statement = -1;
  SET log_min_duration_sample = -1;
\endif
SET password_encryption = 'scram-sha-256';

-- An owner makes and alters the roles of its side; everything else that a superuser could do it cannot.
SELECT format('CREATE ROLE %I LOGIN CREATEROLE', role)
FROM unnest(ARRAY['host_owner', 'tools_owner']) AS role
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role)
\gexec
\if :superuser
  ALTER ROLE host_owner LOGIN CREATEROLE NOSUPERUSER NOCREATEDB NOREPLICATION NOBYPASSRLS;
  ALTER ROLE tools_owner LOGIN CREATEROLE NOSUPERUSER NOCREATEDB NOREPLICATION NOBYPASSRLS;
\else
  GRANT host_owner, tools_owner TO CURRENT_USER;  -- only so can it make a database for them
\endif
\set host_owner_password `cat :'secrets'/host_owner`
\set tools_owner_password `cat :'secrets'/tools_owner`
ALTER ROLE host_owner PASSWORD :'host_owner_password';
ALTER ROLE tools_owner PASSWORD :'tools_owner_password';

SELECT format('CREATE DATABASE %I TEMPLATE template0 OWNER %I', name, name || '_owner')
FROM unnest(ARRAY['host', 'tools']) AS name
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = name)
\gexec
REVOKE CONNECT, TEMPORARY ON DATABASE host, tools, postgres, template1 FROM PUBLIC;

-- For whoever connects; a migration may take longer than a step.
ALTER DATABASE host SET statement_timeout = '5s';
ALTER DATABASE host SET lock_timeout = '2s';
ALTER DATABASE host SET idle_in_transaction_session_timeout = '10s';
ALTER DATABASE tools SET statement_timeout = '5s';
ALTER DATABASE tools SET lock_timeout = '2s';
ALTER DATABASE tools SET idle_in_transaction_session_timeout = '10s';
ALTER ROLE host_owner IN DATABASE host SET statement_timeout = '5min';
ALTER ROLE host_owner IN DATABASE host SET lock_timeout = '30s';
ALTER ROLE tools_owner IN DATABASE tools SET statement_timeout = '5min';
ALTER ROLE tools_owner IN DATABASE tools SET lock_timeout = '30s';
\if :bounds_transactions
  ALTER DATABASE host SET transaction_timeout = '15s';
  ALTER DATABASE tools SET transaction_timeout = '15s';
  ALTER ROLE host_owner IN DATABASE host SET transaction_timeout = '15min';
  ALTER ROLE tools_owner IN DATABASE tools SET transaction_timeout = '15min';
\endif

\connect host
REVOKE ALL ON SCHEMA public FROM PUBLIC;
\connect tools
REVOKE ALL ON SCHEMA public FROM PUBLIC;
