-- What the auditor reads of the sealed record: digests and identifiers, and beside each line what stands there now.

-- name: chain
SELECT (SELECT chain_id::text FROM seal_chain), (SELECT signed FROM seal_cut ORDER BY n DESC LIMIT 1)

-- name: heads
SELECT n, signed, extract(epoch FROM clock_timestamp() - at)::float8 FROM seal_head ORDER BY n

-- name: witnesses
SELECT seen, signed FROM seal_witness ORDER BY seen

-- name: restored
SELECT n, seen FROM seal_restored ORDER BY k

-- name: unsealed
SELECT source, row_id, behind, seconds FROM unsealed_lines()

-- name: lines
SELECT n, source, row_id, sealed, chained, erased, stands FROM sealed_lines(%(after)s, %(most)s)
