"""The wire schemas: what they let in, what no model may ever fill in, and that the committed ones are these."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shared_contracts.base import parse
from shared_contracts.contract import Tool
from shared_contracts.generate import FOLDER, render, schemas, write
from shared_contracts.tools import TOOLS
from tests.support.tool_prepared import good

EVERY_TOOL = pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)


def accepted(tool: Tool, arguments: Any) -> bool:
    try:
        parse(tool.arguments, arguments)
    except ValidationError:
        return False
    return True


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    match schema:
        case dict():
            yield schema
            for item in schema.values():
                yield from nodes(item)
        case list():
            for item in schema:
                yield from nodes(item)


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for node in nodes(schema):
        if isinstance(node.get("properties"), dict):
            yield from node["properties"].items()


# --- what is committed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", schemas())
def test_a_committed_schema_is_the_one_that_the_code_generates(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == render(schemas()[name])


def test_the_generator_writes_every_schema_and_leaves_other_files_alone(tmp_path):
    (tmp_path / "case.returns.json").write_text("another's", encoding="utf-8")
    write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(schemas()) | {"case.returns.json"}
    assert (tmp_path / "case.returns.json").read_text(encoding="utf-8") == "another's"


def test_no_committed_schema_belongs_to_a_tool_that_is_gone():
    committed = {path.name for side in ("input", "output") for path in FOLDER.glob(f"*.{side}.json")}
    assert committed <= set(schemas())


@EVERY_TOOL
def test_a_tools_schemas_are_valid_and_closed_in_the_2020_12_dialect(tool):
    for schema in (tool.input_schema, tool.output_schema):
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        jsonschema.Draft202012Validator.check_schema(schema)
        objects = [node for node in nodes(schema) if node.get("type") == "object"]
        assert objects
        assert all(node["additionalProperties"] is False for node in objects)


@EVERY_TOOL
def test_a_tools_name_is_a_plain_word(tool):
    assert re.fullmatch(r"[a-z_]{1,64}", tool.name)
    assert TOOLS[tool.name] is tool


@EVERY_TOOL
def test_everything_that_goes_in_has_an_upper_limit(tool):
    limits = {"string": "maxLength", "integer": "maximum", "array": "maxItems"}
    for node in nodes(tool.input_schema):
        kind = node.get("type")
        if isinstance(kind, str) and kind in limits and "enum" not in node:
            assert limits[kind] in node, node


@EVERY_TOOL
def test_an_answer_is_facts_with_their_evidence_and_no_bare_message(tool):
    names = {name for name, _ in properties(tool.output_schema)}
    assert "evidence_ref" in tool.output_schema["required"]
    assert set(tool.evidence) <= set(tool.output_schema["properties"])
    assert not names & {"message", "text", "summary"}


# --- what a model may never fill in --------------------------------------------------------------------------

FORBIDDEN = re.compile(
    r"tenant|subject|^sub$|organi[sz]ation|principal|caller|user|actor|customer|token|api_?key|secret|password"
    r"|credential|approv|budget|attempt|idempoten|^key$|timestamp|_at$|^at$|^iat$|^jti$|audit|scope|role"
    r"|ur[il]$|^url|link|href|endpoint|host|address|e?mail|recipient|callback"
)


@EVERY_TOOL
def test_no_input_schema_asks_for_identity_credentials_approval_budget_time_or_an_address(tool):
    assert [name for name, _ in properties(tool.input_schema) if FORBIDDEN.search(name)] == []
    assert [node["format"] for node in nodes(tool.input_schema) if "format" in node] == []


def test_the_scan_would_find_the_names_that_it_looks_for():
    for name in (
        "tenant_id", "subject", "organisation_id", "api_key", "access_token", "approval_state", "approved",
        "task_budget", "idempotency_key", "requested_at", "audit_timestamp", "callback_url", "uri", "email",
    ):  # fmt: skip
        assert FORBIDDEN.search(name), name


# --- what is let in ------------------------------------------------------------------------------------------


@EVERY_TOOL
@pytest.mark.parametrize(("length", "fits"), [(0, False), (1, True), (80, True), (81, False)])
def test_an_identifier_has_from_one_to_eighty_characters(tool, length, fits):
    for name in set(tool.input_schema["properties"]) & {"order_id", "return_id", "case_id", "document_id"}:
        arguments = good(tool) | {name: "A" * length}
        assert accepted(tool, arguments) is fits
        assert jsonschema_rs.validator_for(tool.input_schema).is_valid(arguments) is fits


@EVERY_TOOL
@pytest.mark.parametrize(
    "wrong",
    [1, 1.5, None, True, [], {}, ["A-1"], "", " A-1", "A 1", "A-1\n", "A\x00", "Ａ-1", "../A", "A-1;DROP"],
    ids=repr,
)
def test_an_identifier_is_text_of_plain_characters(tool, wrong):
    assert not accepted(tool, good(tool) | {tool.resource_argument: wrong})


@EVERY_TOOL
@pytest.mark.parametrize("extra", ["bank_account", "tenant_id", "idempotency_key", "approved", "ORDER_ID", ""])
def test_a_member_that_is_not_declared_is_refused(tool, extra):
    arguments = good(tool)
    assert accepted(tool, arguments)
    assert not accepted(tool, arguments | {extra: "A-1"})
    assert not jsonschema_rs.validator_for(tool.input_schema).is_valid(arguments | {extra: "A-1"})


@EVERY_TOOL
def test_a_member_that_is_missing_is_refused(tool):
    for name in tool.input_schema["required"]:
        assert not accepted(tool, {key: value for key, value in good(tool).items() if key != name})


def test_a_member_that_is_not_declared_is_refused_inside_a_line_too():
    line = {"line_id": "L1", "quantity": 1, "refund": 1}
    assert not accepted(TOOLS["create_return"], good(TOOLS["create_return"]) | {"lines": [line]})


SCALARS = st.none() | st.booleans() | st.integers(-2, 10_001) | st.sampled_from(["A-1", "L1", "other", "", "é", "A b"])
LINE = st.fixed_dictionaries({}, optional={"line_id": SCALARS, "quantity": SCALARS, "more": SCALARS})
ANYTHING = st.fixed_dictionaries(
    {},
    optional={
        "order_id": SCALARS,
        "case_id": SCALARS,
        "rule_set": SCALARS | st.just("motor@2026.1"),
        "document_id": SCALARS,
        "reason": SCALARS,
        "return_id": SCALARS,
        "corrects": SCALARS | st.just("<m-1@mail.example>"),
        "lines": st.lists(LINE, max_size=2) | SCALARS,
        "more": SCALARS,
    },
)


@EVERY_TOOL
@given(arguments=ANYTHING)
def test_the_reference_validator_and_the_fast_one_agree_and_what_the_model_takes_the_schema_takes(tool, arguments):
    by_reference = jsonschema.Draft202012Validator(tool.input_schema).is_valid(arguments)
    assert jsonschema_rs.validator_for(tool.input_schema).is_valid(arguments) is by_reference
    assert by_reference or not accepted(tool, arguments)
