"""The hard limits of a workflow kind, and the formula that spaces retries. Numbers carry their reason.

Invariant: a limit is checked by code before a call is dispatched; asking a planner to go on changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

BACKOFF_CAP_SECONDS = 30.0  # long enough for a restart, short enough that a person still waits
BACKOFF_JITTER_SECONDS = 0.5  # spreads retries of many workflows that failed at one instant


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one workflow; attempts count as calls, the engine's own reads do not."""

    calls: int  # tool calls of one workflow, each attempt one
    calls_stop_others: bool  # needing more of them is a fault that others may share, not a case with much in it
    calls_per_tool: int
    compensation_calls: int  # of one compensation, beside the others
    active_seconds: float  # time at work; waiting is outside
    tokens: int  # what the planner may read and write for one workflow
    call_ceiling_seconds: float  # behind each tool's own timeout
    refusals_in_a_row: int  # proposals of the contract class that were refused
    refusals: int
    empty_in_a_row: int  # answered calls that gave no evidence
    recoveries: int  # restarts after a crash, so that a poison case cannot kill workers for ever
    engine_reads_per_send: int  # and per purpose: verification, reconciliation
    repeats: int  # the same action again after it succeeded


def backoff_seconds(attempt: int, jitter: float, first: float = 1.0) -> float:
    """Give the wait before the next attempt: min(30 s, first * 2^attempt) plus 0 to 0.5 s; `jitter` is in [0, 1)."""
    return float(min(BACKOFF_CAP_SECONDS, first * 2.0 ** min(attempt, 10)) + BACKOFF_JITTER_SECONDS * jitter)
