-- The same of the tool server's log, as its auditor; these are statements of the host, which alone compares.

-- name: chain
SELECT (SELECT chain_id::text FROM calls.seal_chain), (SELECT signed FROM calls.seal_cut ORDER BY n DESC LIMIT 1)

-- name: heads
SELECT n, signed, extract(epoch FROM clock_timestamp() - at)::float8 FROM calls.seal_head ORDER BY n

-- name: witnesses
SELECT seen, signed FROM calls.seal_witness ORDER BY seen

-- name: restored
SELECT n, seen FROM calls.seal_restored ORDER BY k

-- name: unsealed
SELECT source, row_id, behind, seconds FROM calls.unsealed_lines()

-- name: lines
SELECT n, source, row_id, sealed, chained, erased, stands FROM calls.sealed_lines(%(after)s, %(most)s)
