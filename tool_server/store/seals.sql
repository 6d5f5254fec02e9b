-- What the tool server's sealer may do: chain what is new, sign the end, keep a host's heads. It reads no call itself.

-- name: batch
SELECT chain_id::text, n, chained, horizon, whole, at FROM calls.seal_batch(%(most)s)

-- name: sign
SELECT calls.sign_head(%(n)s, %(signed)s)

-- name: newest
SELECT calls.newest_head()

-- name: witness
SELECT calls.witness_head(%(n)s, %(signed)s)

-- name: lag
SELECT waits, signed, kept FROM calls.seal_standing()

-- name: cut
SELECT calls.cut_record(%(before)s, %(actor)s, %(unverified)s)
