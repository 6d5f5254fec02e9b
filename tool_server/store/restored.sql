-- The owner's statements on a database that was restored and that nobody works on yet, over every tenant.

-- What waited when a backup was made may have left since. Its row goes the way of a message whose answer was lost.
-- name: doubt_pending
UPDATE notices.outbox SET status = 'sending' WHERE status = 'pending'

-- name: doubt_sending
UPDATE notices.outbox SET status = 'unknown', reason = 'restored', content = NULL WHERE status = 'sending'

-- Where the backup's record ends, and the hosts' heads in it.
-- name: note_record
INSERT INTO calls.seal_restored (n, seen, at)
SELECT greatest((SELECT max(n) FROM calls.seal_link), (SELECT max(n) FROM calls.seal_cut), 0),
       coalesce((SELECT max(seen) FROM calls.seal_witness), 0), public.clock_now()
