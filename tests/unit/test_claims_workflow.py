"""What documents come to, over every shape of what was observed; and what the deterministic driver says of each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.domain.baseline import Judged, Read
from host.domain.proposals import Final, NeedsHuman, Observation, PlannerView, ToolCall
from host.domain.workflow import Ended, Language, Seen
from host.workflows.claims import (
    ALIAS,
    CLAIMS,
    REQUIREMENTS,
    SNAPSHOT,
    TRANSITIONS,
    UNCLASSIFIED,
    S,
    Verdict,
    answer,
    baseline,
    finish,
    known,
    result,
    verdict,
)

CASE = {"kind": "claims", "claimant_id": "P-1", "case_id": "C-1"}
RULES = "motor@2026.1"
Observed = list[tuple[str, dict[str, Any]]]


def snapshot(*codes: str, rules: str = RULES, version: int = 1) -> tuple[str, dict[str, Any]]:
    told = {"received_document_codes": list(codes), "evidence_ref": f"case://C-1@{version}"}
    return SNAPSHOT, {"case_id": "C-1", "version": version, "rule_set": rules, **told}


def required(*codes: str, rules: str = RULES, in_effect: bool = True) -> tuple[str, dict[str, Any]]:
    told = {"required_document_codes": list(codes), "evidence_ref": f"policy://{rules}"}
    return REQUIREMENTS, {"case_id": "C-1", "rule_set": rules, "owner": "rules", "in_effect": in_effect, **told}


def unclassified(*ids: str, version: int = 1) -> tuple[str, dict[str, Any]]:
    documents = [{"document_id": one, "version": 1, "title": "a paper"} for one in ids]
    told = {"documents": documents, "evidence_ref": f"case://C-1@{version}"}
    return UNCLASSIFIED, {"case_id": "C-1", "version": version, **told}


def alias(
    document: str, code: str | None, version: str | None = "2026.1", sure: float = 1.0
) -> tuple[str, dict[str, Any]]:
    resolved = {"resolved": code is not None, "canonical_code": code, "rule_version": version if code else None}
    told = {"confidence": sure, "evidence_ref": f"evidence://C-1/{document}@1"}
    return ALIAS, {"case_id": "C-1", "document_id": document, **resolved, **told}


ONE_MISSING: Observed = [snapshot("A"), required("A", "B")]
TABLE: dict[str, tuple[Observed, Verdict | None]] = {
    "nothing is known": ([], None),
    "the rules are not known": ([snapshot("A")], None),
    "all is there": ([snapshot("A", "B"), required("A", "B")], Verdict.COMPLETE),
    "more than all is there": ([snapshot("A", "B", "C"), required("A", "B")], Verdict.COMPLETE),
    "one is missing, and nobody has looked for more": (ONE_MISSING, None),
    "one is missing, and nothing else is there": ([*ONE_MISSING, unclassified()], Verdict.MISSING),
    "a document is not looked up yet": ([*ONE_MISSING, unclassified("D")], None),
    "a rule names it": (
        [*ONE_MISSING, unclassified("D"), alias("D", "B")],
        Verdict.COMPLETE_AFTER_NORMALIZATION,
    ),
    "no rule names it": ([*ONE_MISSING, unclassified("D"), alias("D", None)], Verdict.INSUFFICIENT),
    "a guess names it": ([*ONE_MISSING, unclassified("D"), alias("D", "B", sure=0.9)], Verdict.INSUFFICIENT),
    "a rule names it nothing": (
        [*ONE_MISSING, unclassified("D"), (ALIAS, {**alias("D", "B")[1], "canonical_code": None})],
        Verdict.INSUFFICIENT,
    ),
    "a rule names another document": ([*ONE_MISSING, unclassified("D"), alias("D", "A")], Verdict.MISSING),
    "a rule of another version names it": (
        [*ONE_MISSING, unclassified("D"), alias("D", "B", "2025.2")],
        Verdict.RULES_CONFLICT,
    ),
    "a rule of another version names one, a rule of its own another": (
        [*ONE_MISSING, unclassified("D", "E"), alias("D", "B", "2025.2"), alias("E", "B")],
        Verdict.COMPLETE_AFTER_NORMALIZATION,
    ),
    "the rules are of another version": (
        [snapshot("A"), required("A", rules="motor@2025.2")],
        Verdict.RULES_CONFLICT,
    ),
    "the rules were not in effect": ([snapshot("A"), required("A", in_effect=False)], Verdict.RULES_CONFLICT),
    "the case has changed since": ([*ONE_MISSING, unclassified(version=2)], Verdict.CASE_CHANGED),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_the_documents_come_to(case: str) -> None:
    observed, expected = TABLE[case]
    assert verdict(known(observed)) is expected


def seen(observed: Observed) -> tuple[Seen, ...]:
    return tuple(Seen(tool, told, None) for tool, told in observed)


def view(state: str, observed: Observed) -> PlannerView:
    observations = tuple(
        Observation(tool, f"c{n}", {"case_id": "C-1", "document_id": told.get("document_id", "")}, told, None)
        for n, (tool, told) in enumerate(observed)
    )
    return PlannerView("claims", "claims-1", state, len(observed) + 1, dict(CASE), observations, ())


@pytest.mark.parametrize(
    ("state", "observed", "said"),
    [
        (S.RECEIVED, [], SNAPSHOT),
        (S.CASE_READ, [snapshot("A")], REQUIREMENTS),
        (S.RULES_READ, ONE_MISSING, UNCLASSIFIED),
        (S.DOCUMENTS_LISTED, [*ONE_MISSING, unclassified("D")], ALIAS),
    ],
)
def test_the_driver_asks_for_the_read_that_comes_next(state: str, observed: Observed, said: str) -> None:
    proposed = CLAIMS.propose(view(state, observed))
    assert isinstance(proposed, ToolCall)
    assert (proposed.name, proposed.arguments["case_id"]) == (said, "C-1")


@pytest.mark.parametrize("case", [name for name, (_, found) in TABLE.items() if found is not None])
def test_what_the_driver_says_at_the_end_is_what_code_takes(case: str) -> None:
    observed, found = TABLE[case]
    said = CLAIMS.propose(view(S.DOCUMENTS_LISTED, observed))
    if isinstance(said, Final):
        taken = finish(CASE, seen(observed), said)
        assert taken is not None
        assert found is not None
        assert (taken.event, taken.rule_version) == (found.value.lower(), RULES)
    else:
        assert isinstance(said, NeedsHuman)
        anything = finish(CASE, seen(observed), Final({}, ("case://C-1@1",)))
        assert anything is not None
        assert anything.event == "undecidable", "a planner that says it is done is sent to the same person"


def test_where_a_listed_document_is_gone_a_person_decides() -> None:
    gone = Observation(ALIAS, "c9", {"case_id": "C-1", "document_id": "D"}, None, "not_found")
    shown = view(S.DOCUMENTS_LISTED, [*ONE_MISSING, unclassified("D")])
    asked = PlannerView("claims", "claims-1", shown.state, 5, shown.case, (*shown.observations, gone), ())
    assert CLAIMS.propose(asked) == NeedsHuman("evidence_insufficient")


CODES = st.lists(st.sampled_from("ABCDE"), unique=True)
ALIASES = st.lists(st.tuples(st.sampled_from(["D1", "D2", "D3"]), st.sampled_from("ABCDE")), unique_by=lambda a: a[0])


@given(received=CODES, wanted=CODES, aliases=ALIASES)
def test_complete_is_only_what_lacks_nothing(received: list[str], wanted: list[str], aliases: list[Any]) -> None:
    observed = [snapshot(*received), required(*wanted), unclassified(*(one for one, _ in aliases))]
    of = known([*observed, *(alias(*one) for one in aliases)])
    found = verdict(of)
    lacking = set(wanted) - set(received) - {code for _, code in aliases}
    assert (found in {Verdict.COMPLETE, Verdict.COMPLETE_AFTER_NORMALIZATION}) is (not lacking)
    assert found is not None
    assert answer(of, found)["missing_document_codes"] == sorted(lacking)


def test_the_result_of_a_case_that_nobody_could_read_says_nothing_of_its_documents() -> None:
    told = result(Ended(CASE, S.REJECTED, "case_not_found", {}, (Seen(SNAPSHOT, None, "not_found"),), ()))
    assert (told.outcome, told.received_document_codes, told.missing_document_codes) == ("CASE_NOT_FOUND", None, None)


def test_the_baseline_reads_twice_and_takes_no_unclassified_document_for_one_that_is_there() -> None:
    assert baseline(CASE, ()) == Read(SNAPSHOT, {"case_id": "C-1"})
    assert baseline(CASE, seen(ONE_MISSING[:1])) == Read(REQUIREMENTS, {"case_id": "C-1", "rule_set": RULES})
    judged = baseline(CASE, seen(ONE_MISSING))
    assert isinstance(judged, Judged)
    assert (judged.decision, judged.missing, judged.rule_version) == ("MISSING_REQUIRED_DOCUMENTS", ("B",), RULES)


@pytest.mark.parametrize("refused", [[], ONE_MISSING[:1]])
def test_the_baseline_of_what_is_not_found_is_that(refused: Observed) -> None:
    tool = REQUIREMENTS if refused else SNAPSHOT
    judged = baseline(CASE, (*seen(refused), Seen(tool, None, "not_found")))
    assert isinstance(judged, Judged)
    assert (judged.decision, judged.notification) == ("CASE_NOT_FOUND", None)


@pytest.mark.parametrize("language", Language)
def test_a_claimant_is_told_of_completeness_only_at_that_end(language: Language) -> None:
    told = {
        (state, reason): CLAIMS.message(state, reason, language, {}, ())
        for state in S
        for reason in ("documents_complete", "missing_required_documents")
    }
    complete = told.pop((S.COMPLETED, "documents_complete"))
    assert complete
    assert complete not in told.values()


def test_every_limit_is_the_businesss_own() -> None:
    limits = CLAIMS.limits
    assert (limits.calls, limits.calls_per_tool, limits.repeats, limits.call_ceiling_seconds) == (8, 8, 1, 8)


def test_it_has_no_effect_no_approval_and_nothing_to_undo() -> None:
    assert CLAIMS.effects == ()
    assert CLAIMS.approval_state is CLAIMS.compensation_state is CLAIMS.approvable is None
    assert not any(row.on in {"wrong_effect", "approved"} for row in TRANSITIONS)
