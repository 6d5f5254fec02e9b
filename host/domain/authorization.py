"""The rules by which a proposed call may run. Order is precedence, denials first; no match denies.

A well-formed call is not an allowed one: `decide` looks at who, what, where and when, never at words. It is
asked when a call is proposed and again, with fresh facts, before every dispatch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

VERSION = "authorization-2"


class Verdict(StrEnum):
    """`halt` waits for the end of a stop; `deny` ends or is told to the planner, by its reason's class."""

    HALT = "halt"
    DENY = "deny"
    REQUIRE_APPROVAL = "require_approval"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a decision is made from. No field has a default: an absent fact cannot become a permission."""

    tool_name: str
    tool_known: bool
    writes: bool
    draft_only: bool  # an update of the state, in a kind whose updates are a person's to make
    updates_stopped: bool
    reads_stopped: bool
    in_catalogue: bool
    in_state: bool
    available: bool
    same_tenant: bool
    on_resource: bool
    bound_arguments_hold: bool
    scope_held: bool
    budget_left: bool
    repeated: bool
    needs_approval: bool
    approved: bool

    def as_record(self) -> dict[str, Any]:
        """Give what is stored with the decision, from which it can be replayed."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the policy."""

    reason: str
    applies: Callable[[Facts], bool]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and the rule that gave it."""

    verdict: Verdict
    reason: str


# fmt: off
RULES: tuple[Rule, ...] = (
    Rule("draft_only",           lambda f: f.draft_only,                            Verdict.DENY),
    Rule("unknown_tool",         lambda f: not f.tool_known,                        Verdict.DENY),
    Rule("not_in_catalogue",     lambda f: not f.in_catalogue,                      Verdict.DENY),
    Rule("tool_not_in_state",    lambda f: not f.in_state,                          Verdict.DENY),
    Rule("foreign_tenant",       lambda f: not f.same_tenant,                       Verdict.DENY),
    Rule("foreign_resource",     lambda f: not f.on_resource,                       Verdict.DENY),
    Rule("foreign_arguments",    lambda f: not f.bound_arguments_hold,              Verdict.DENY),
    Rule("scope_missing",        lambda f: not f.scope_held,                        Verdict.DENY),
    Rule("repeated_action",      lambda f: f.repeated,                              Verdict.DENY),
    Rule("limit",                lambda f: not f.budget_left,                       Verdict.DENY),
    Rule("reads_stopped",        lambda f: f.reads_stopped,                         Verdict.HALT),
    Rule("updates_stopped",      lambda f: f.writes and f.updates_stopped,          Verdict.HALT),
    Rule("tool_unavailable",     lambda f: not f.available,                         Verdict.DENY),
    Rule("approval_required",    lambda f: f.needs_approval and not f.approved,     Verdict.REQUIRE_APPROVAL),
    Rule("write_allowed",        lambda f: f.writes,                                Verdict.ALLOW),
    Rule("read_allowed",         lambda f: not f.writes,                            Verdict.ALLOW),
)
# fmt: on
NO_RULE = Decision(Verdict.DENY, "no_rule")

# Denials that a planner may hear and mend; every other denial hands the case to a person at once.
TOLD_TO_PLANNER = frozenset({"unknown_tool", "tool_not_in_state", "repeated_action"})
# Denials that mean somebody reached for what is not theirs: an alert beside the hand-over.
ALERTED = frozenset({"foreign_tenant", "foreign_resource", "foreign_arguments", "scope_missing", "not_in_catalogue"})


def decide(facts: Facts) -> Decision:
    """Give the first rule that applies."""
    for rule in RULES:
        if rule.applies(facts):
            return Decision(rule.verdict, rule.reason)
    return NO_RULE


def effective_tools(*factors: frozenset[str]) -> frozenset[str]:
    """Intersect catalogue, scopes, state, risk and health; an empty factor, or none, leaves nothing."""
    return frozenset.intersection(*factors) if factors else frozenset()
