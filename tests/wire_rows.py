"""What the protocol asks of whoever builds on its library, and which tests show it; `tests.traceability` prints it.

The names of tests are as in the table there. What the library does by itself does not stand here.
"""

from __future__ import annotations

_EDGE, _PAIR, _WIRE = "contract/edge_protocol::", "contract/tool_client_pair::", "contract/tool_client_wire::"
_RULES, _HOSTILE, _ONE = "contract/edge_rules::", "contract/tool_client_hostile::", "security/token_one_call::"
_READY = "contract/tool_client_readiness::"
_BOUNDS, _NORMAL = "integration/tool_server_bounds::", "integration/engine_normal::invariant_11_"
_FORGED = "security/forgery::an_attempt_is_refused_with_nothing_done_and_nothing_of_it_told"
_OUTCOMES = f"{_HOSTILE}a_write_has_its_outcome_one_request_and_the_client_goes_on"

SERVER_MUST: dict[str, tuple[str, ...]] = {
    "every input of a tool is validated": (
        f"{_BOUNDS}arguments_that_are_not_exactly_the_tools_are_refused_before_sql",
        f"{_ONE}undeclared_and_coerced_arguments_are_refused_whatever_the_token_says"),
    "every output fits its schema": (
        "integration/tool_server_faults::a_result_outside_of_its_schema_does_not_leave_and_is_logged",
        "integration/tool_server_faults::no_tools_result_leaves_outside_of_its_schema"),
    "access is decided for each call, tenant and task": (
        f"{_ONE}what_is_another_customers_or_tenants_answers_like_what_does_not_exist",
        f"{_BOUNDS}a_token_for_another_call_is_refused_and_logged"),
    "calls are limited in their rate": (
        "contract/edge_rate::a_principal_above_its_rate_is_told_to_wait_and_nothing_is_executed",
        "contract/edge_rate::a_tenant_has_a_rate_of_its_own_whoever_calls"),
    "what people and models are shown of an output paints and turns nothing": (
        f"{_ONE}what_is_not_to_be_seen_is_an_escape_in_the_text_of_a_result_and_itself_in_its_structured_part",
        f"{_ONE}what_a_refusal_quotes_of_a_call_is_an_escape_in_its_text_too"),
    "a revision that is not served is refused in every request, with those that are": (
        "contract/edge_messages::a_revision_that_is_not_served_is_refused_on_every_request",
        "contract/edge_messages::what_the_new_revision_wants_named_in_every_request_is_not_guessed_at",
        f"{_EDGE}who_begins_with_a_revision_that_has_no_handshake_here_is_offered_the_newest_that_has"),
    "both revisions are told the same of what is offered, and by whom": (
        f"{_EDGE}both_revisions_answer_the_same_capabilities",),
    "outputs hold what the schema names and nothing of the inside": (
        "security/log_canary::a_caller_never_sees_why_a_handler_failed",
        f"{_EDGE}a_bug_in_a_handler_is_an_answer_with_a_code_and_the_server_lives"),
    "Origin is judged on every route, before any token": ("contract/edge_hosts::a_page_of_another_origin_is_refused",),
    "the audience of a token is this resource": (_FORGED,),
    "a token that is not valid gets 401": (_FORGED, f"{_EDGE}every_request_is_judged_by_its_own_token"),
    "no token that came in is passed on": (f"{_RULES}what_carries_calls_out_can_ask_nobody_over_http",),
    "no scope stands above another": (
        f"{_EDGE}the_challenge_names_the_scope_of_the_one_tool_and_the_metadata",
        f"{_BOUNDS}a_tool_is_refused_without_its_own_scope"),
    "the resource's metadata names its issuers": (
        "contract/edge_metadata::the_challenge_leads_to_the_metadata_that_names_resource_and_issuers",),
    "an id is a name and opens nothing, whatever came before": (
        f"{_EDGE}a_session_id_is_no_identity_and_opens_nothing",
        f"{_EDGE}every_request_is_judged_by_its_own_token",
        f"{_BOUNDS}a_return_of_another_order_answers_like_one_that_does_not_exist"),
    "progress rises and ends: none is reported": (
        f"{_RULES}whoever_asks_for_progress_of_what_reports_none_gets_the_answer_alone",),
    "a client without a needed capability is told: none is needed": (
        f"{_RULES}no_tool_asks_for_a_capability_of_its_client",),
    "ttlMs is not negative": (f"{_RULES}what_may_be_kept_says_for_how_long_and_for_whom",),
    "a caller that goes away cancels its call": (
        "contract/edge_life::a_caller_that_goes_away_cancels_its_call_and_no_other",),
    "no token is logged": (
        _FORGED, "security/log_canary::no_token_no_argument_and_no_text_of_an_exception_reaches_the_log"),
    "the protocol's own error numbers mean what it says": (
        f"{_RULES}every_error_number_is_one_that_the_protocol_defines_or_lies_outside_its_range",),
    "header and body are of one revision, and routing headers say what the body says": (
        "contract/edge_messages::a_body_of_the_new_revision_under_the_header_of_an_old_one_is_a_mismatch",
        "contract/edge_messages::a_routing_header_that_says_something_else_than_the_body_is_a_mismatch"),
    "schemas are of the one dialect that is supported": (f"{_EDGE}a_listed_tool_is_its_contract",),
}  # fmt: skip

SERVER_SHOULD: dict[str, tuple[str, ...]] = {
    "401 says which scopes to bring": (
        f"{_RULES}who_comes_without_credentials_is_told_what_to_bring_and_no_error",
        f"{_RULES}whose_credentials_are_not_accepted_is_told_so_in_words_and_what_to_bring"),
    "one 403 says all that is missing, and where the metadata is": (
        f"{_EDGE}the_challenge_names_the_scope_of_the_one_tool_and_the_metadata",),
    "no scope outlives its token": (
        f"{_RULES}no_challenge_and_no_metadata_speaks_of_a_scope_that_outlives_its_token",),
    "what asked for more than it may is logged with its token's id": (
        f"{_EDGE}a_call_that_is_refused_at_the_edge_is_in_the_log_of_calls_too",
        f"{_ONE}every_call_refused_or_answered_is_in_the_log_with_its_token"),
    "the list of tools has one order": (f"{_RULES}a_list_is_the_same_whoever_asks_and_however_often",),
    "names of tools fit": ("contract/edge_messages::names_of_tools_fit_the_narrowest_pattern_of_any_vendor",),
    "the text of a result says what its structured part says": (
        f"{_RULES}the_text_of_a_result_is_its_structured_part",),
    "nothing sensitive is copied into a header": (f"{_RULES}no_parameter_is_copied_into_a_header",),
    "the metadata asks for no more scopes than there are tools for": (
        "contract/edge_metadata::the_challenge_leads_to_the_metadata_that_names_resource_and_issuers",),
    "an error of a token says in words what is wrong": (
        f"{_RULES}whose_credentials_are_not_accepted_is_told_so_in_words_and_what_to_bring",),
    "a server of this machine is bound to this machine": (
        "unit/tool_settings::this_machine_alone_is_listened_to_unless_somebody_says_otherwise",
        "unit/compose::the_database_has_no_port_outside_and_everything_else_is_bound_to_this_machine"),
    "a request has its time": (
        "contract/edge_bounds::a_request_that_never_ends_is_ended",
        "contract/edge_bounds::one_byte_at_a_time_is_not_forever_and_others_are_served_meanwhile"),
}  # fmt: skip

HOST: dict[str, tuple[str, ...]] = {
    "MUST: a tool's annotations decide nothing": (
        f"{_ONE}annotations_decide_nothing_on_the_server",
        f"{_READY}what_a_list_says_of_a_tool_beside_its_contract_decides_nothing",
        "integration/engine_annotations::a_case_goes_the_same_way_whatever_a_list_says_of_its_tools",
        f"{_READY}a_tool_of_another_contract_makes_the_server_not_ready"),
    "MUST: the token is in a header of every request and never in an address": (
        f"{_WIRE}the_token_is_in_the_header_and_nowhere_else",),
    "MUST: the token goes to no other server": (
        f"{_WIRE}no_redirect_carries_the_token_away",
        f"{_WIRE}no_redirect_leads_away_what_is_asked_beside_the_endpoint",
        f"{_WIRE}no_proxy_of_the_environment_sees_a_token"),
    "MUST: a challenge is read": (
        "unit/tool_client_headers::a_bearer_challenge_says_what_was_missing",
        f"{_PAIR}a_scope_that_is_missing_is_refused_with_the_challenge"),
    "MUST: a result of an unknown type or without its structured part is none": (
        _OUTCOMES, f"{_HOSTILE}a_read_has_its_outcome_one_request_and_the_client_goes_on"),
    "MUST: a schema that is not our own is neither followed nor trusted": (
        f"{_READY}a_listed_schema_is_not_followed_wherever_it_points_and_no_result_is_held_against_it",
        f"{_READY}a_tool_of_another_contract_makes_the_server_not_ready"),
    "SHOULD: a person confirms what is sensitive, and sees what it is": (
        "integration/engine_approval::a_denial_ends_the_case_and_nothing_is_made",
        "e2e/cli_approve::what_is_decided_on_is_shown_from_the_database"),
    "SHOULD: a tool's error reaches the model as what it is": (
        f"{_PAIR}every_code_that_a_tool_answers_with_arrives_as_that_code",),
    "SHOULD: there is a longest time, whatever progress is told": (_OUTCOMES,),
    "SHOULD: what is nested too deep or too large is no answer": (_OUTCOMES,),
    "SHOULD: what a server says of itself decides nothing, its contracts do": (
        f"{_READY}a_server_of_our_contracts_is_ready_in_either_revision",),
    "SHOULD: every request is recorded": (
        f"{_NORMAL}every_request_is_an_attempt_with_a_token_of_its_own_and_carries_what_no_planner_fills",),
    "SHOULD: what was denied is not asked for again": (
        "integration/engine_decisions::a_refusal_is_never_tried_again_and_goes_where_its_class_says",),
    "SHOULD: attempts are bounded": ("integration/engine_retry::a_read_is_tried_twice_and_then_it_is_a_persons",),
    "SHOULD: the revision of a server is asked for once": (
        "contract/tool_client_life::calls_come_after_the_whole_handshake_of_their_revision",),
}  # fmt: skip

SECTIONS = {
    "What the protocol demands of a server": SERVER_MUST,
    "What it advises a server": SERVER_SHOULD,
    "What it demands of a host, and advises it": HOST,
}
