-- What the host's sealer may do: chain what is new, sign the end, keep the tool server's heads. It reads no line itself.

-- name: batch
SELECT chain_id::text, n, chained, horizon, whole, at FROM seal_batch(%(most)s)

-- name: sign
SELECT sign_head(%(n)s, %(signed)s)

-- name: newest
SELECT newest_head()

-- name: witness
SELECT witness_head(%(n)s, %(signed)s)

-- For those who look after the program, as the worker's role.

-- name: lag
SELECT waits, signed, kept FROM seal_standing()

-- The owner's acts.

-- name: cut
SELECT cut_record(%(before)s, %(actor)s)

-- name: erase
SELECT erase_words(%(audit)s, %(actor)s)

-- name: note_restored
INSERT INTO seal_restored (n, seen, at)
SELECT greatest((SELECT max(n) FROM seal_link), (SELECT max(n) FROM seal_cut), 0),
       coalesce((SELECT max(seen) FROM seal_witness), 0), clock_now()
