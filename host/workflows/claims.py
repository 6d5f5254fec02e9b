"""Claims: find out whether a claim has the documents that its rules require, by reading alone.

    RECEIVED → CASE_READ → RULES_READ ─────────────────→ COMPLETED
        └→ REJECTED             └→ DOCUMENTS_LISTED ───┘
    from any state: RETRY_WAIT (and back), NEEDS_REVIEW

`verdict` is the criterion: it alone says what the documents come to. A planner's answer is taken where it agrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from host.domain import read_only
from host.domain.baseline import Baseline, Judged, Read
from host.domain.control import NEXT_ATTEMPT, WAITED, Actor, Control
from host.domain.limits import Limits
from host.domain.proposals import Final, NeedsHuman, PlannerDecision, PlannerView, ToolCall
from host.domain.workflow import RESUME, Ended, Finding, Seen, T, Transition, Version, Workflow
from host.workflows.claims_messages import message, notification
from shared_contracts.base import Contract, Identifier, Moment, parse
from shared_contracts.claims import CaseSnapshot, DocumentAlias, PolicyRequirements, UnclassifiedDocuments
from shared_contracts.digest import digest
from shared_contracts.record import Result

SNAPSHOT, REQUIREMENTS = "caseops_get_case_snapshot", "caseops_get_policy_requirements"
UNCLASSIFIED, ALIAS = "caseops_list_unclassified_documents", "caseops_resolve_document_alias"


class ClaimsCase(Contract):
    """Which claim's documents to look into, and for whom."""

    kind: Literal["claims"]
    request_id: Identifier | None = None
    claimant_id: Identifier
    case_id: Identifier
    requested_at: Moment | None = None


class ClaimsResult(Result):
    """What the documents come to; null where nobody has read that far."""

    received_document_codes: tuple[str, ...] | None
    resolved_document_codes: tuple[str, ...] | None
    missing_document_codes: tuple[str, ...] | None


class S(StrEnum):
    """The eight states of an investigation."""

    RECEIVED = "RECEIVED"
    CASE_READ = "CASE_READ"
    RULES_READ = "RULES_READ"
    DOCUMENTS_LISTED = "DOCUMENTS_LISTED"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"
    RETRY_WAIT = "RETRY_WAIT"
    NEEDS_REVIEW = "NEEDS_REVIEW"


class Verdict(StrEnum):
    """What the documents come to; the last three go to a person."""

    COMPLETE = "DOCUMENTS_COMPLETE"
    COMPLETE_AFTER_NORMALIZATION = "DOCUMENTS_COMPLETE_AFTER_NORMALIZATION"
    MISSING = "MISSING_REQUIRED_DOCUMENTS"
    INSUFFICIENT = "EVIDENCE_INSUFFICIENT"
    RULES_CONFLICT = "UNDECIDABLE"
    CASE_CHANGED = "VERSION_CHANGED"


ENGINE, TIMER = (Actor.ENGINE,), (Actor.TIMER,)
ACTIVE = 90.0
RETRY = 30.5
ROW, CONTRACT = (Version.ROW,), (Version.CONTRACT,)
_READING = (S.RECEIVED, S.CASE_READ, S.RULES_READ, S.DOCUMENTS_LISTED)
_JUDGED = (S.RULES_READ, S.DOCUMENTS_LISTED)
_ANSWERS = (Verdict.COMPLETE, Verdict.COMPLETE_AFTER_NORMALIZATION, Verdict.MISSING)
_PLANNERS_WORDS = (Verdict.INSUFFICIENT, Verdict.RULES_CONFLICT)  # it may hand over with these and prove nothing
_REVIEW_EVENTS = ("limit", "attempts_exhausted", "undecidable", "denied", "planner_exhausted", "planner_needs_human")


# fmt: off
TRANSITIONS: tuple[Transition, ...] = (
    # from           on                  to                  by      reads     within, rides
    T(S.RECEIVED,      "case_read",        S.CASE_READ,        ENGINE, CONTRACT, ACTIVE),
    T(S.RECEIVED,      "case_not_found",   S.REJECTED,         ENGINE, CONTRACT, ACTIVE),
    T(S.CASE_READ,     "rules_read",       S.RULES_READ,       ENGINE, CONTRACT, ACTIVE),
    T(S.RULES_READ,    "documents_listed", S.DOCUMENTS_LISTED, ENGINE, CONTRACT, ACTIVE),
    *(T(_JUDGED, verdict.value.lower(), S.COMPLETED, ENGINE, ROW, ACTIVE) for verdict in _ANSWERS),
    T(_READING,        "transient",        S.RETRY_WAIT,       ENGINE, ROW,      RETRY, NEXT_ATTEMPT),
    T(S.RETRY_WAIT,    "due",              RESUME,             TIMER,  ROW,      RETRY, WAITED),
    *(T((*_READING, S.RETRY_WAIT), event, S.NEEDS_REVIEW, ENGINE, ROW, ACTIVE) for event in _REVIEW_EVENTS),
)
TOOLS: dict[str, tuple[str, ...]] = {
    S.RECEIVED: (SNAPSHOT,),
    S.CASE_READ: (REQUIREMENTS,),
    S.RULES_READ: (UNCLASSIFIED,),
    S.DOCUMENTS_LISTED: (ALIAS,),
}
ENDS: dict[str, tuple[Control, ...]] = {
    S.COMPLETED: (Control.COMPLETED,),
    S.REJECTED: (Control.COMPLETED,),
    S.NEEDS_REVIEW: (Control.NEEDS_HUMAN, Control.FAILED),
}
# fmt: on
OWNERS: dict[str, str] = {**dict.fromkeys(S, "claims-desk"), S.RETRY_WAIT: "operations"}


@dataclass(frozen=True, slots=True)
class Known:
    """All that was observed of a claim so far."""

    case: CaseSnapshot | None
    rules: PolicyRequirements | None
    listed: UnclassifiedDocuments | None
    aliases: tuple[DocumentAlias, ...]

    def received(self) -> set[str]:
        """Give the codes of what is classified."""
        return set() if self.case is None else set(self.case.received_document_codes)

    def bound(self) -> str:
        """Give the version of the rules that the case goes by."""
        return "" if self.case is None else self.case.rule_set.partition("@")[2]

    def governed(self) -> list[DocumentAlias]:
        """List what a rule of the case's own version names; a guess is none, however sure."""
        named = (one for one in self.aliases if one.resolved and one.canonical_code is not None)
        return [one for one in named if one.rule_version == self.bound() and one.confidence == 1]

    def resolved(self) -> set[str]:
        """Give the codes that governed rules have named."""
        return {str(one.canonical_code) for one in self.governed()}

    def missing(self) -> set[str]:
        """Give the codes that are required and neither received nor resolved."""
        required = () if self.rules is None else self.rules.required_document_codes
        return set(required) - self.received() - self.resolved()


def known(observed: Iterable[tuple[str, Mapping[str, Any] | None]]) -> Known:
    """Fold tools' results into what is known; the newest of each counts, refusals tell nothing."""
    results = [(tool, result) for tool, result in observed if result is not None]
    newest = dict(results)
    case, rules, listed = newest.get(SNAPSHOT), newest.get(REQUIREMENTS), newest.get(UNCLASSIFIED)
    return Known(
        case=None if case is None else parse(CaseSnapshot, case),
        rules=None if rules is None else parse(PolicyRequirements, rules),
        listed=None if listed is None else parse(UnclassifiedDocuments, listed),
        aliases=tuple(parse(DocumentAlias, result) for tool, result in results if tool == ALIAS),
    )


def verdict(of: Known) -> Verdict | None:
    """Judge by what is known; None where that is not enough yet. In which order documents are looked up is no matter."""
    if of.case is None or of.rules is None:
        return None
    if of.rules.rule_set != of.case.rule_set or not of.rules.in_effect:
        return Verdict.RULES_CONFLICT
    if of.listed is not None and of.listed.version != of.case.version:
        return Verdict.CASE_CHANGED
    if not of.missing():
        return Verdict.COMPLETE_AFTER_NORMALIZATION if of.resolved() - of.received() else Verdict.COMPLETE
    if of.listed is None or _unresolved(of.listed, of.aliases):
        return None
    if len(of.governed()) == len(of.aliases):
        return Verdict.MISSING
    elsewhere = any(one.resolved and one.rule_version != of.bound() for one in of.aliases)
    return Verdict.RULES_CONFLICT if elsewhere else Verdict.INSUFFICIENT


def _unresolved(listed: UnclassifiedDocuments, aliases: Iterable[DocumentAlias]) -> list[str]:
    asked = {one.document_id for one in aliases}
    return [document.document_id for document in listed.documents if document.document_id not in asked]


def answer(of: Known, found: Verdict) -> dict[str, Any]:
    """Write what the documents come to, as a planner has to."""
    return {
        "outcome": found.value,
        "received_document_codes": sorted(of.received()),
        "resolved_document_codes": sorted(of.resolved()),
        "missing_document_codes": sorted(of.missing()),
    }


def _evidence(of: Known) -> set[str]:
    """Name what the verdict rests on."""
    rested = (of.case, of.rules, *of.governed())
    return {one.evidence_ref for one in rested if one is not None}


def finish(case: Mapping[str, Any], seen: tuple[Seen, ...], final: Final) -> Finding | None:
    """Take a planner's answer where it is what the observations say, with all that it rests on."""
    del case
    of = known((one.tool, one.result) for one in seen)
    found = verdict(of)
    if found is None or of.case is None:
        return None
    if found not in _ANSWERS:
        return Finding("undecidable", found.value.lower())
    if final.answer != answer(of, found) or set(final.evidence_refs) != _evidence(of):
        return None
    word = found.value.lower()
    return Finding(word, word, rule_version=of.case.rule_set, facts=answer(of, found))


def result(ended: Ended) -> ClaimsResult:
    """Say what came of it; what nobody has read is not said to be missing."""
    of = known((one.tool, one.result) for one in ended.seen)
    judged = verdict(of) is not None
    return ClaimsResult(
        outcome=_outcome(ended, of),
        received_document_codes=None if of.case is None else tuple(sorted(of.received())),
        resolved_document_codes=tuple(sorted(of.resolved())) if judged else None,
        missing_document_codes=tuple(sorted(of.missing())) if judged else None,
        evidence_refs=tuple(sorted(ended.evidence_refs)),
    )


def _outcome(ended: Ended, of: Known) -> str:
    """Say in one word what came of it; a planner's word for a verdict counts only where the observations bear it out."""
    word = ended.reason.upper()
    if word not in _PLANNERS_WORDS:
        return word
    found = verdict(of)
    if found is not None and found not in _ANSWERS:
        return found.value
    gone = any(one.error == "not_found" for one in ended.seen)
    return Verdict.INSUFFICIENT.value if gone else "PLANNER_NEEDS_HUMAN"


def baseline(case: Mapping[str, Any], seen: tuple[Seen, ...]) -> Baseline:
    """Compare codes and nothing else: a document that nobody has classified is not there."""
    of, about = known((one.tool, one.result) for one in seen), {"case_id": case["case_id"]}
    if of.case is None:
        return _unreadable(None) if seen else Read(SNAPSHOT, about)
    if of.rules is None:
        rules = {**about, "rule_set": of.case.rule_set}
        return Read(REQUIREMENTS, rules) if len(seen) == 1 else _unreadable(of.case.rule_set)
    missing = tuple(sorted(of.missing()))
    return Judged(
        decision=(Verdict.MISSING if missing else Verdict.COMPLETE).value,
        missing=missing,
        rule_version=of.case.rule_set,
        notification=notification(of.case.case_id, missing) if missing else None,
        evidence_refs=tuple(sorted(_evidence(of))),
    )


def _unreadable(rule_version: str | None) -> Judged:
    return Judged("CASE_NOT_FOUND", (), rule_version, None, ())


def interpret(case: Mapping[str, Any], seen: Seen) -> Finding | None:
    """Say what an answered call means; an alias, resolved or refused, is for the planner to go on from."""
    del case
    match seen.tool, seen.result, seen.error:
        case "caseops_get_case_snapshot", None, "not_found":
            return Finding("case_not_found", "case_not_found", versions=None)
        case "caseops_get_case_snapshot", result, None if result is not None:
            return Finding("case_read", "case_read")
        case "caseops_get_policy_requirements", result, None if result is not None:
            return Finding("rules_read", "rules_read")
        case "caseops_list_unclassified_documents", result, None if result is not None:
            return Finding("documents_listed", "documents_listed")
        case "caseops_resolve_document_alias", _, _:
            return None
        case _, None, code if code is not None:
            return Finding("undecidable", "evidence_insufficient" if code == "not_found" else code)
        case _:
            return None


def bindings(case: Mapping[str, Any], seen: tuple[Seen, ...]) -> dict[str, Any]:
    """Name the only value that each argument may have in this run: the rules are those that the case is bound to."""
    bound = {"case_id": case["case_id"]}
    of = known((one.tool, one.result) for one in seen)
    return bound if of.case is None else {**bound, "rule_set": of.case.rule_set}


def propose(view: PlannerView) -> PlannerDecision:
    """Propose the next read, or the answer once there is one: the deterministic driver of this business, no model."""
    of = known((one.tool, one.result) for one in view.observations)
    found = verdict(of)
    if found in _ANSWERS:
        return Final(answer(of, found), tuple(sorted(_evidence(of))))
    if found is not None:
        return NeedsHuman("evidence_insufficient" if found is Verdict.INSUFFICIENT else "undecidable")
    about = {"case_id": view.case["case_id"]}
    call_id = f"call_{digest(view.case)[:16]}_{view.turn}"
    match view.state:
        case S.RECEIVED:
            return ToolCall(call_id, SNAPSHOT, about)
        case S.CASE_READ if of.case is not None:
            return ToolCall(call_id, REQUIREMENTS, {**about, "rule_set": of.case.rule_set})
        case S.RULES_READ:
            return ToolCall(call_id, UNCLASSIFIED, about)
        case S.DOCUMENTS_LISTED if of.listed is not None:
            tried = {one.arguments["document_id"] for one in view.observations if one.tool == ALIAS}
            left = [document for document in _unresolved(of.listed, of.aliases) if document not in tried]
            if left:
                return ToolCall(call_id, ALIAS, {**about, "document_id": left[0]})
            return NeedsHuman("evidence_insufficient")  # a document is gone since it was listed
        case _:
            return NeedsHuman("planner_needs_human")


CLAIMS = Workflow(
    kind="claims",
    release="claims-1",
    initial=S.RECEIVED,
    case=ClaimsCase,
    transitions=TRANSITIONS,
    tools=TOOLS,
    ends=ENDS,
    limits=Limits(
        calls=8,
        calls_stop_others=False,  # a claimant who sends many papers is no reason to stop anybody
        calls_per_tool=8,  # one document is one call
        compensation_calls=0,
        active_seconds=ACTIVE,
        tokens=100_000,
        call_ceiling_seconds=8,
        refusals_in_a_row=3,
        refusals=6,
        empty_in_a_row=3,
        recoveries=20,
        engine_reads_per_send=0,
        repeats=1,
    ),
    effects=(),
    success=S.COMPLETED,
    retry_state=S.RETRY_WAIT,
    approval_state=None,
    compensation_state=None,
    resource=lambda case: str(case["case_id"]),
    customer=lambda case: str(case["claimant_id"]),
    units=lambda case: (str(case["case_id"]),),
    bindings=bindings,
    interpret=interpret,
    needs_approval=read_only.needs_approval,
    approvable=None,
    propose=propose,
    undo=read_only.undo,
    severe=read_only.severe,
    overstepped=read_only.overstepped,
    message=message,
    outcome=ClaimsResult,
    result=result,
    owners=OWNERS,
    finish=finish,
    baseline=baseline,
)
