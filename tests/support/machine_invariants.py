"""What holds in the host's database at every moment, as queries that find what breaks it; none looks at the clock.

Invariant: one row that a query finds is one too many.
"""

from __future__ import annotations

_BROKEN = {
    "7: a row is the fold of its history": """
        SELECT w.workflow_id FROM workflow w
          LEFT JOIN checkpoint c ON c.workflow_id = w.workflow_id AND c.seq = w.seq
          LEFT JOIN legal_transition m USING (move_id)
         WHERE m.control_to IS DISTINCT FROM w.control_state OR m.business_to IS DISTINCT FROM w.state
            OR w.seq <> (SELECT count(*) FROM checkpoint x WHERE x.workflow_id = w.workflow_id)""",
    "2: one effect in flight": """
        SELECT workflow_id FROM effect WHERE outcome IS NULL GROUP BY workflow_id HAVING count(*) > 1""",
    "3: one key, one effect": """
        SELECT min(workflow_id::text)::uuid AS workflow_id FROM effect WHERE outcome IS NULL OR outcome = 'succeeded'
         GROUP BY tenant_id, idempotency_key HAVING count(*) > 1""",
    "9: done means verified": """
        SELECT w.workflow_id FROM workflow w WHERE w.state = 'COMPLETED' AND 2 <> (
            SELECT count(*) FROM effect e WHERE e.workflow_id = w.workflow_id AND e.verified_at IS NOT NULL)""",
    "1: an intent has its permission": """
        SELECT e.workflow_id FROM effect e LEFT JOIN decision d
            ON d.workflow_id = e.workflow_id AND d.n = e.decision_n AND d.committed_in = e.committed_in
         WHERE d.outcome IS DISTINCT FROM 'allow'""",
    "what is over is not under way": """
        SELECT workflow_id FROM workflow WHERE control_state IN ('completed', 'needs_human', 'stopped', 'failed')
           AND (lease_owner IS NOT NULL OR wake_at IS NOT NULL)""",
    "whoever waits has a timer or a person": """
        SELECT workflow_id FROM workflow WHERE lease_owner IS NULL AND wake_at IS NULL
           AND control_state NOT IN ('completed', 'needs_human', 'stopped', 'failed')""",
    "a limit is a limit, and each undoing has its own": """
        SELECT workflow_id FROM attempt JOIN call USING (workflow_id, step) CROSS JOIN LATERAL (
               SELECT max(c.n) AS undoing FROM compensation c
                WHERE undoes IS NOT NULL AND c.workflow_id = call.workflow_id AND c.first_step <= step) c
         WHERE purpose = 'call' AND outcome NOT IN ('cut_off', 'unreachable')
         GROUP BY workflow_id, undoes IS NULL, undoing HAVING count(*) > 6""",
    "each end has its audit row and its outbox row": """
        SELECT w.workflow_id FROM workflow w CROSS JOIN LATERAL (
               SELECT count(*) AS ends FROM checkpoint c JOIN legal_transition m USING (move_id)
                WHERE c.workflow_id = w.workflow_id
                  AND m.control_to IN ('completed', 'needs_human', 'stopped', 'failed')) e
         WHERE ends <> (SELECT count(*) FROM audit a WHERE a.workflow_id = w.workflow_id AND action = 'workflow_ended')
            OR ends <> (SELECT count(*) FROM outbox o WHERE o.workflow_id = w.workflow_id)""",
    "a decision counts in its time, by a key that counts, and never by who asked": """
        SELECT a.workflow_id FROM approval a JOIN approval_request r USING (workflow_id, version)
          JOIN approver_key k USING (kid) JOIN workflow w USING (workflow_id)
         WHERE a.recorded_at < r.requested_at OR a.recorded_at >= r.expires_at OR a.approver <> k.name
            OR a.recorded_at < k.added_at OR a.recorded_at >= k.revoked_at OR a.approver = w.principal""",
    "above the threshold nothing is begun without a yes to the newest request, in its time, by a key that counts": """
        SELECT e.workflow_id FROM effect e JOIN workflow w USING (workflow_id)
         WHERE e.name = 'create_return' AND w.resource = 'A-3' AND NOT EXISTS (
               SELECT FROM approval a JOIN approval_request r USING (workflow_id, version)
                 JOIN approver_key k USING (kid)
                WHERE a.workflow_id = e.workflow_id AND a.decision = 'approve' AND e.opened_at >= a.recorded_at
                  AND e.opened_at < r.expires_at AND e.opened_at < coalesce(k.revoked_at, 'infinity')
                  AND r.version = (SELECT max(n.version) FROM approval_request n
                                    WHERE n.workflow_id = e.workflow_id AND n.requested_at <= e.opened_at))""",
    "nothing is dispatched once nobody has agreed": """
        SELECT t.workflow_id FROM attempt t JOIN checkpoint c USING (workflow_id)
          JOIN legal_transition m USING (move_id)
         WHERE m.business_to IN ('EXPIRED', 'REJECTED') AND t.started_at > c.at""",
    "of what nobody has agreed to there is nothing": """
        SELECT workflow_id FROM effect JOIN workflow USING (workflow_id)
         WHERE state IN ('EXPIRED', 'REJECTED') AND (outcome IS NULL OR outcome NOT IN ('rejected', 'absent'))""",
    "who agrees moves a case once for each request": """
        SELECT c.workflow_id FROM checkpoint c JOIN legal_transition m USING (move_id) WHERE m.actor = 'approver'
         GROUP BY c.workflow_id
        HAVING count(*) <> (SELECT count(*) FROM approval a WHERE a.workflow_id = c.workflow_id)""",
}  # fmt: skip
BROKEN = " UNION ALL ".join(
    f"SELECT '{what}', q.workflow_id FROM ({query}) q"  # noqa: S608 - our own words
    for what, query in _BROKEN.items()
)
EVENTS = """
SELECT event FROM checkpoint JOIN legal_transition USING (move_id)
UNION SELECT action FROM audit WHERE action IN ('review_closed', 'effect_adopted', 'compensation_released')
UNION SELECT 'asked_for_anew' FROM workflow WHERE supersedes IS NOT NULL
"""
ENDED_BY_NO = "SELECT workflow_id FROM workflow WHERE state IN ('EXPIRED', 'REJECTED')"
WAITING = "SELECT workflow_id FROM workflow WHERE state = 'WAITING_APPROVAL' ORDER BY workflow_id"
HANDED_OVER = """
SELECT workflow_id FROM workflow w WHERE control_state IN ('needs_human', 'failed')
 ORDER BY NOT EXISTS (SELECT FROM effect e WHERE e.workflow_id = w.workflow_id), workflow_id
"""
TO_ASK_ANEW = """
SELECT workflow_id FROM workflow
 WHERE state IN ('EXPIRED', 'REJECTED') OR review_closed_at IS NOT NULL ORDER BY workflow_id
"""
