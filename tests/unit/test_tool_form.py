"""The registration form: complete for every tool, the same after YAML, and honest about what is missing."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from host.workflows.returns import TOOLS as TOOLS_OF_STATES
from shared_contracts.contract import Ambiguous, Equals, ExecutesAt, ReadBack, Risk, Scope, Tool, Verification
from shared_contracts.form import ToolForm, form
from shared_contracts.form_checks import SECTIONS, checklist, lint
from shared_contracts.form_yaml import FormError, dump_form, dump_forms, load_form, load_forms
from shared_contracts.tools import TOOLS

FIXTURES = Path(__file__).parents[1] / "fixtures"
EVERY_TOOL = pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
PURCHASE = load_form((FIXTURES / "create_purchase_order.yaml").read_text(encoding="utf-8"))
ALIAS = load_form((FIXTURES / "caseops_resolve_document_alias.yaml").read_text(encoding="utf-8"))


def states_of(name: str) -> tuple[str, ...]:
    return tuple(str(state) for state, tools in TOOLS_OF_STATES.items() if name in tools)


@EVERY_TOOL
def test_the_form_of_every_tool_is_complete(tool):
    assert lint(form(tool, states_of(tool.name))) == ()


@EVERY_TOOL
def test_a_form_is_the_same_after_it_was_written_and_read(tool):
    filled = form(tool, states_of(tool.name))
    assert load_form(dump_form(filled)) == filled


def test_all_forms_stand_in_one_stream_and_come_back_in_order():
    forms = tuple(form(tool) for tool in TOOLS.values())
    assert load_forms(dump_forms(forms)) == forms


def test_the_states_that_offer_a_tool_stand_in_its_form():
    assert form(TOOLS["create_return"], states_of("create_return")).allowed_states == ("ELIGIBLE", "APPROVED")


# --- contracts written by hand -------------------------------------------------------------------------------


def test_the_purchase_contract_loads_with_its_scope_and_its_precondition():
    assert PURCHASE.name == "create_purchase_order"
    assert PURCHASE.owner == "procurement-platform"
    assert PURCHASE.input is not None
    assert PURCHASE.input.required == ("supplier_id", "item_id", "quantity", "request_id")
    assert PURCHASE.input.additional_properties is False
    assert PURCHASE.authorization is not None
    assert PURCHASE.authorization.actor_scope == "procurement-write"
    assert PURCHASE.authorization.preconditions == ("supplier_must_be_approved",)
    assert PURCHASE.side_effect == "purchase_order_created"
    assert PURCHASE.idempotency_key == "request_id"
    assert PURCHASE.success_evidence == ("purchase_order_id", "status")
    assert PURCHASE.success_when == str(Equals("status", "created"))
    assert PURCHASE.ambiguous_failure is Ambiguous.RECONCILE_THEN_STOP
    assert PURCHASE.approval_required_when == "amount_exceeds_internal_limit"
    assert PURCHASE.updates


def test_the_alias_contract_loads_with_the_source_of_each_argument():
    assert ALIAS.name == "caseops_resolve_document_alias"
    assert ALIAS.version == "1.0"
    assert ALIAS.authorization is not None
    assert ALIAS.authorization.actor_scope == "document:resolve"
    assert ALIAS.risk is Risk.READ
    assert (ALIAS.timeout_seconds, ALIAS.max_attempts) == (5, 2)
    assert ALIAS.input is not None
    assert ALIAS.input.sources == {"case_id": "run-bound-resource", "document_id": "model-proposed"}
    assert ALIAS.output == {
        "resolved": "boolean", "canonical_code": "optional string", "rule_version": "optional string",
        "evidence_ref": "string",
    }  # fmt: skip
    assert not ALIAS.updates


@pytest.mark.parametrize("contract", [PURCHASE, ALIAS], ids=lambda one: one.name)
def test_a_contract_written_by_hand_survives_being_written_and_read(contract):
    assert load_form(dump_form(contract)) == contract


def test_lint_names_what_a_contract_written_by_hand_leaves_open():
    assert {"version", "compensation", "how the effect is confirmed", "whether it is safe to retry"} <= set(
        lint(PURCHASE)
    )
    assert {"undeclared input is refused", "what is recorded", "owning team"} <= set(lint(ALIAS))
    assert "compensation" not in lint(ALIAS), "a read has nothing to take back"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "one form is expected"),
        ("name: a\n---\nname: b\n", "one form is expected"),
        ("- a", "mapping"),
        ("just text", "mapping"),
        ("name: [", "no YAML"),
        ("name: !!python/object:os.system x", "no YAML"),
        ("name: Not A Name", "name"),
        ("name: ''", "name"),
        ("owner: somebody", "name"),
        ("name: a\nbank_account: x", "bank_account"),
        ("name: a\nversion: 1.0", "version"),
        ("name: a\nversion: 2026-01-01", "registration form"),
        ("name: a\ntimeout_seconds: '5'", "timeout_seconds"),
        ("name: a\ntimeout_seconds: 0", "timeout_seconds"),
        ("name: a\nrisk: harmless", "risk"),
        ("name: a\nambiguous_failure: retry", "ambiguous_failure"),
        ("name: a\ninput: {case_id: anywhere}", "case_id"),
        ("name: a\ninput: {required: [x], case_id: model-proposed}", "case_id"),
        ("name: a\nauthorization: {actor_scope: s, approved: false}", "precondition"),
        ("name: a\nauthorization: {actor_scope: s, approved: 'true'}", "precondition"),
        ("name: a\nauthorization: {supplier_must_be_approved: true}", "actor_scope"),
        ("name: a\nrequired_scope: s\nauthorization: {actor_scope: t}", "not both"),
    ],
)
def test_what_is_no_form_is_refused_with_a_word_on_where(text, says):
    with pytest.raises(FormError, match=says):
        load_form(text)


# --- what is missing is named --------------------------------------------------------------------------------


def test_a_form_of_a_name_alone_lacks_every_section_that_a_read_needs():
    needed = [section.name for section in SECTIONS if section.fields]
    assert list(lint(ToolForm(name="a"))) == needed


def test_a_form_of_an_update_lacks_every_section_but_the_one_that_says_so():
    everything = [section.name for section in SECTIONS]
    everything.remove("read or update")
    assert list(lint(ToolForm(name="a", access="update"))) == everything


BLANKED_SECTIONS: dict[str, tuple[Any, str]] = {
    "version": ("", "version"),
    "summary": ("", "what it does"),
    "side_effect": ("", "what it does"),
    "success_when": (None, "what it does"),
    "after": ((), "when it may be called"),
    "preconditions": ((), "preconditions"),
    "targets": ("", "permitted targets"),
    "owner": ("", "owning team"),
    "business_owner": ("", "business owner"),
    "forbidden_when": ((), "business owner"),
    "timeout_seconds": (0, "whether it is safe to retry"),
    "attempts_max": (0, "whether it is safe to retry"),
    "idempotency_key": ("", "whether it is safe to retry"),
    "idempotency_retention_days": (0, "whether it is safe to retry"),
    "reconcile_with": ("", "how the effect is confirmed"),
    "ambiguous_failure": (None, "how the effect is confirmed"),
    "evidence": ((), "how the output is verified"),
    "compensate_with": ("", "compensation"),
    "compensate_within_hours": (0, "compensation"),
    "verify": (None, "how the output is verified"),
    "audit_items": ((), "what is recorded"),
}


@pytest.mark.parametrize("name", BLANKED_SECTIONS)
def test_a_blank_in_the_row_is_a_missing_section_of_its_form(name):
    blank, section = BLANKED_SECTIONS[name]
    assert lint(form(replace(TOOLS["create_return"], **{name: blank}))) == (section,)


CHANGES: dict[str, Any] = {
    "version": "2", "summary": "Something else.", "owner": "others", "business_owner": "others", "targets": "nothing",
    "scope": Scope.NOTICES_WRITE, "risk": Risk.IRREVERSIBLE_WRITE, "timeout_seconds": 11, "attempts_max": 3,
    "evidence": ("return_id",), "proposed_arguments": ("lines",), "after": ("get_order",), "preconditions": ("other",),
    "side_effect": "other", "idempotency_key": "request_id", "idempotency_retention_days": 7,
    "reconcile_with": "find_notice", "ambiguous_failure": Ambiguous.RECONCILE_THEN_STOP,
    "success_when": Equals("status", "done"), "pending_values": ("queued",), "doubtful_values": ("unknown",),
    "verify": None, "verification": Verification.NONE,
    "compensate_with": "other", "compensate_within_hours": 48, "approval_required_when": "never",
    "forbidden_when": ("label_used",), "executes_at": ExecutesAt.LOCAL, "audit_items": ("jti",),
    "arguments": TOOLS["get_return"].arguments, "result": TOOLS["get_order"].result, "name": "other",
    "external_id": "evidence_ref", "resource_argument": "lines", "looks_up": True,
}  # fmt: skip


@pytest.mark.parametrize("name", [field.name for field in fields(Tool)])
def test_every_field_of_the_row_shows_in_the_form(name):
    tool = TOOLS["create_return"]
    assert form(replace(tool, **{name: CHANGES[name]})) != form(tool)


# --- the checklist of a write --------------------------------------------------------------------------------


@EVERY_TOOL
def test_every_write_passes_all_nine_items_and_no_read_does(tool):
    items = checklist(tool, TOOLS)
    assert len(items) == 9
    assert all(item.passed for item in items) is tool.writes


@pytest.mark.parametrize(
    ("item", "changes"),
    [
        (0, {"risk": Risk.READ}),
        (1, {"preconditions": ()}),
        (1, {"side_effect": ""}),
        (1, {"evidence": ()}),
        (3, {"forbidden_when": ("not_eligible",)}),
        (4, {"idempotency_key": ""}),
        (4, {"idempotency_retention_days": 0}),
        (5, {"reconcile_with": ""}),
        (5, {"reconcile_with": "get_order"}),
        (6, {"success_when": None}),
        (7, {"ambiguous_failure": None}),
        (8, {"risk": Risk.READ}),
    ],
)
def test_an_item_fails_where_the_row_does_not_keep_it(item, changes):
    assert not checklist(replace(TOOLS["create_return"], **changes), TOOLS)[item].passed


def test_an_input_that_takes_undeclared_members_fails_its_item():
    class Open(ToolForm):
        model_config = ToolForm.model_config | {"extra": "allow"}

    assert not checklist(replace(TOOLS["create_return"], arguments=Open), TOOLS)[2].passed


def test_a_read_back_and_an_answer_are_told_apart():
    assert form(TOOLS["create_return"]).verification == "read_back"
    assert form(TOOLS["get_order"]).verification == "response"
    assert isinstance(TOOLS["create_return"].verify, ReadBack)


@pytest.mark.parametrize(("name", "value"), [("delay_seconds", 2.5), ("poll_seconds", 5.0), ("looks", 2)])
def test_when_and_how_often_an_effect_is_looked_for_stands_in_the_form(name, value):
    tool = TOOLS["create_return"]
    assert tool.verify is not None
    changed = form(replace(tool, verify=replace(tool.verify, **{name: value})))
    assert changed.read_back is not None
    assert getattr(changed.read_back, name) == value
    assert load_form(dump_form(changed)) == changed
