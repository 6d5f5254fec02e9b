-- The owner's statements on a database that was restored and that nobody works on yet, over every tenant.

-- What waited when a backup was made may have left since. Its row goes the way of a message whose answer was lost.
-- name: doubt_pending
UPDATE notices.outbox SET status = 'sending' WHERE status = 'pending'

-- name: doubt_sending
UPDATE notices.outbox SET status = 'unknown', reason = 'restored', content = NULL WHERE status = 'sending'
