-- What the host's sealer may do: chain what is new, sign the end, keep the tool server's heads. It reads no line itself.

-- name: batch
SELECT chain_id::text, n, chained, horizon, whole, at FROM seal_batch(%(most)s)

-- name: sign
SELECT sign_head(%(n)s, %(signed)s)

-- name: newest
SELECT newest_head()

-- name: witness
SELECT witness_head(%(n)s, %(signed)s)
