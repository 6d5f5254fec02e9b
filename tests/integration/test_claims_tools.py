"""The four tools of the document family, over their own database role: what each tells, and to whom nothing is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg import errors

from shared_contracts.contract import FAMILIES
from shared_contracts.tools import TOOLS
from tests.support.claims import DEMO, claims_shop
from tests.support.tool_shop import Shop, ask, code_of, given
from tool_server import load_cases
from tool_server.load import SeedError
from tool_server.loads import load_file
from tool_server.offer import OFFER, listed

SNAPSHOT, REQUIREMENTS = "caseops_get_case_snapshot", "caseops_get_policy_requirements"
UNCLASSIFIED, ALIAS = "caseops_list_unclassified_documents", "caseops_resolve_document_alias"
RULES = "motor-claim-standard@2026.1"
WHOSE: dict[str, Any] = {"tenant": "anshin-jp", "customer": "P-3002"}
CALLS: dict[str, dict[str, Any]] = {
    SNAPSHOT: {"case_id": "C-102"},
    REQUIREMENTS: {"case_id": "C-102", "rule_set": RULES},
    UNCLASSIFIED: {"case_id": "C-102"},
    ALIAS: {"case_id": "C-102", "document_id": "DOC-C102-003"},
}
TOLD: dict[str, dict[str, Any]] = {
    SNAPSHOT: {
        "case_id": "C-102", "version": 7, "rule_set": RULES,
        "received_document_codes": ["IDENTITY_DOCUMENT", "LOSS_STATEMENT"], "evidence_ref": "case://C-102@7",
    },
    REQUIREMENTS: {
        "case_id": "C-102", "rule_set": RULES, "owner": "motor-claims-rules", "in_effect": True,
        "required_document_codes": ["LOSS_STATEMENT", "IDENTITY_DOCUMENT", "ACCIDENT_CERTIFICATE"],
        "evidence_ref": f"policy://{RULES}",
    },
    UNCLASSIFIED: {
        "case_id": "C-102", "version": 7, "evidence_ref": "case://C-102@7",
        "documents": [{"document_id": "DOC-C102-003", "version": 1, "title": "道路交通事故認定書"}],
    },
    ALIAS: {
        "case_id": "C-102", "document_id": "DOC-C102-003", "resolved": True, "canonical_code": "ACCIDENT_CERTIFICATE",
        "rule_version": "2026.1", "confidence": 1.0, "evidence_ref": "evidence://C-102/DOC-C102-003@1",
    },
}  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return claims_shop(tmp_path)


@pytest.mark.parametrize("name", CALLS)
def test_a_tool_tells_its_one_thing(name: str, shop: Shop) -> None:
    assert given(shop.run(lambda tools: ask(tools, name, CALLS[name], **WHOSE))) == TOLD[name]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "whose",
    [{"tenant": "kaede-jp", "customer": "P-3002"}, {"tenant": "anshin-jp", "customer": "P-3003"}],
    ids=["another tenant", "another claimant"],
)
def test_what_is_anothers_is_not_found(name: str, whose: dict[str, Any], shop: Shop) -> None:
    assert code_of(shop.run(lambda tools: ask(tools, name, CALLS[name], **whose))) == "not_found"


@pytest.mark.parametrize("name", CALLS)
def test_what_is_anothers_is_told_in_the_very_words_of_what_does_not_exist(name: str, shop: Shop) -> None:
    async def scene(tools: Any) -> list[Any]:
        asked = ["C-101", "C-201", "C-999"]  # another claimant's, another tenant's, nobody's
        return [await ask(tools, name, {**CALLS[name], "case_id": one}, **WHOSE) for one in asked]

    anothers, foreign, missing = shop.run(scene)
    assert code_of(missing) == "not_found"
    assert anothers == foreign == missing


@pytest.mark.parametrize("name", CALLS)
def test_a_token_of_one_case_reads_no_other(name: str, shop: Shop) -> None:
    arguments = {**CALLS[name], "case_id": "C-103"}
    answer = shop.run(lambda tools: ask(tools, name, arguments, resource="C-102", **WHOSE))
    assert code_of(answer) == "token_for_other_resource"


def test_rules_are_told_of_the_version_that_the_case_is_bound_to_and_of_no_other(shop: Shop) -> None:
    arguments = {"case_id": "C-102", "rule_set": "motor-claim-standard@2025.2"}
    assert code_of(shop.run(lambda tools: ask(tools, REQUIREMENTS, arguments, **WHOSE))) == "not_found"


def test_a_document_without_a_rule_is_not_resolved_and_a_classified_one_is_no_question(shop: Shop) -> None:
    whose = {"tenant": "anshin-jp", "customer": "P-3004"}

    async def scene(tools: Any) -> tuple[Any, Any]:
        unknown = await ask(tools, ALIAS, {"case_id": "C-104", "document_id": "DOC-C104-003"}, **whose)
        classified = await ask(tools, ALIAS, {"case_id": "C-104", "document_id": "DOC-C104-001"}, **whose)
        return unknown, classified

    unknown, classified = shop.run(scene)
    assert {name: given(unknown)[name] for name in ("resolved", "canonical_code", "rule_version", "confidence")} == {
        "resolved": False, "canonical_code": None, "rule_version": None, "confidence": 0.0,
    }  # fmt: skip
    assert code_of(classified) == "not_found"


def test_the_role_of_the_family_reads_and_writes_nothing_but_the_log(shop: Shop) -> None:
    with psycopg.connect(shop.database.dsn("tools_document"), autocommit=True) as role:
        for statement in (
            "INSERT INTO document.cases VALUES ('anshin-jp', 'C-9', 1, 'P-1', 'motor-claim-standard', '2026.1')",
            "UPDATE document.aliases SET canonical_code = 'X'",
            "DELETE FROM document.documents",
            "SELECT FROM orders.orders",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                role.execute(statement)  # type: ignore[call-overload]


def test_a_version_that_is_known_changes_for_nobody(shop: Shop) -> None:
    with (
        psycopg.connect(shop.database.owner, autocommit=True) as owner,
        pytest.raises(errors.CheckViolation, match="append-only"),
    ):
        owner.execute("UPDATE document.aliases SET canonical_code = 'OTHER'")


def test_the_same_file_again_changes_nothing_and_another_content_of_a_version_is_refused(
    shop: Shop, tmp_path: Path
) -> None:
    owner = shop.database.owner

    async def again(_: Any) -> Any:
        return await load_file(owner, DEMO)

    assert shop.run(again) == load_cases.LoadedCases(0, 0, 0, 0)
    other = tmp_path / "other.json"
    other.write_text(
        DEMO.read_text(encoding="utf-8").replace("ACCIDENT_CERTIFICATE", "POLICE_REPORT"), encoding="utf-8"
    )

    async def changed(_: Any) -> Any:
        return await load_file(owner, other)

    with pytest.raises(SeedError, match="another content"):
        shop.run(changed)
    assert shop.one("SELECT count(*) FROM document.aliases WHERE canonical_code = 'POLICE_REPORT'") == 0


def grown(**changes: Any) -> load_cases.SeedCases:
    """The demo's data with something else in it, under the versions that are known."""
    seed = load_cases.read_seed(DEMO)
    certificate = load_cases.SeedDocument(document_id="DOC-NEW", version=1, title="x", code="ACCIDENT_CERTIFICATE")
    case = next(one for one in seed.cases if one.case_id == "C-103")
    case = case.model_copy(update={"documents": (*case.documents, certificate), **changes})
    return seed.model_copy(update={"cases": (case,)})


@pytest.mark.parametrize("version", [1, 2])
def test_a_document_comes_with_a_new_version_of_its_case_and_never_into_a_known_one(version: int, shop: Shop) -> None:
    owner = shop.database.owner

    async def load(seed: load_cases.SeedCases) -> Any:
        return await load_cases.load(owner, seed)

    assert str(shop.run(lambda _: load(grown(version=2)))) == (
        "rule sets: 0 new; aliases: 0 new; cases: 1 new; documents: 1 new"
    )
    late = load_cases.SeedDocument(document_id="DOC-LATE", version=1, title="y", code=None)
    with pytest.raises(SeedError, match="C-103@2: is known with another content"):
        shop.run(lambda _: load(grown(version=version, documents=(late,))))
    assert shop.one("SELECT count(*) FROM document.documents WHERE document_id = 'DOC-LATE'") == 0


def test_a_title_comes_with_a_new_version_of_its_rules_and_never_into_a_known_one(shop: Shop) -> None:
    seed, owner = load_cases.read_seed(DEMO), shop.database.owner
    alias = seed.rule_sets[0].aliases[0].model_copy(update={"title": "写真"})
    more = seed.rule_sets[0].model_copy(update={"aliases": (*seed.rule_sets[0].aliases, alias)})

    async def load(_: Any) -> Any:
        return await load_cases.load(owner, seed.model_copy(update={"rule_sets": (more,), "cases": ()}))

    with pytest.raises(SeedError, match=r"motor-claim-standard@2025\.2: is known with another content"):
        shop.run(load)
    assert shop.one("SELECT count(*) FROM document.aliases WHERE title = '写真'") == 0


def test_a_case_has_no_more_documents_than_one_answer_can_tell_of(tmp_path: Path) -> None:
    seed = load_cases.read_seed(DEMO).model_dump(mode="json")
    paper = seed["cases"][0]["documents"][0]
    seed["cases"][0]["documents"] = [{**paper, "document_id": f"D-{n}"} for n in range(101)]
    (tmp_path / "many.json").write_text(json.dumps(seed), encoding="utf-8")
    with pytest.raises(SeedError, match=r"cases\[0\]\.documents"):
        load_cases.read_seed(tmp_path / "many.json")


def test_the_four_are_listed_as_reads_that_may_be_repeated_in_a_closed_world() -> None:
    ours = {name: listed(tool) for name, tool in OFFER.items() if name.startswith("caseops_")}
    assert set(ours) == set(CALLS)
    for shown in ours.values():
        marks = shown.annotations
        assert marks is not None
        assert (marks.read_only_hint, marks.idempotent_hint, marks.open_world_hint) == (True, True, False)


def test_their_contracts_are_those_of_the_page_that_describes_them() -> None:
    page = yaml.safe_load((Path(__file__).parents[1] / "fixtures" / f"{ALIAS}.yaml").read_text(encoding="utf-8"))
    tool = TOOLS[ALIAS]
    written = (tool.name, tool.version, tool.scope.value, tool.risk.value, tool.timeout_seconds, tool.attempts_max)
    named = ("name", "version", "required_scope", "risk", "timeout_seconds", "max_attempts")
    assert written == tuple(page[name] for name in named)
    sources = {"run-bound-resource": False, "model-proposed": True}
    assert {name: name in tool.proposed_arguments for name in tool.arguments.model_fields} == {
        name: sources[source] for name, source in page["input"].items()
    }
    assert set(page["output"]) <= set(tool.result.model_fields)
    assert {tool.family for tool in TOOLS.values() if tool.name in CALLS} == {"document"} < set(FAMILIES)
    for name in CALLS:
        assert (TOOLS[name].version, TOOLS[name].timeout_seconds, TOOLS[name].attempts_max) == ("1.0", 5, 2)
        assert not TOOLS[name].writes
        assert "tenant_id" not in TOOLS[name].input_schema["properties"]
