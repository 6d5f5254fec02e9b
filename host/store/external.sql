-- name: register
-- The task and its audit row, in one statement: no token exists that the record does not know.
SELECT register_external_task(%(task)s)
