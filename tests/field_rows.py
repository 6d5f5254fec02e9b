"""What has gone wrong for others, kind by kind, and which tests show that it does not here, for `tests.traceability`.

The names of tests are as in the table there.
"""

from __future__ import annotations

_FORGED = "security/forgery::an_attempt_is_refused_with_nothing_done_and_nothing_of_it_told"
_CLAIMS, _KEYS, _ONE = "security/token_claims::", "security/token_keys::", "security/token_one_call::"
_EDGE, _BODY, _BOUNDS = "contract/edge_protocol::", "contract/edge_messages::", "contract/edge_bounds::"
_LIFE, _HOSTILE = "contract/tool_client_life::", "contract/tool_client_hostile::"
_SERVER = "integration/tool_server_"
_CASE, _YES = "integration/engine_approval::", "integration/tool_server_approvals::"

TOKENS: dict[str, tuple[str, ...]] = {
    "no algorithm, in whatever spelling": (_FORGED,),
    "the public key as a shared secret": (
        _FORGED, f"{_KEYS}no_shared_secret_is_a_key_however_long",
        f"{_CLAIMS}the_library_is_new_enough_to_refuse_a_jwk_as_an_hmac_key"),
    "a key, or the address of one, that the token brings": (
        _FORGED, "security/no_addresses::the_tool_server_has_nothing_to_fetch_with"),
    "extensions that must be understood": (_FORGED,),
    "an audience that is absent, a list, a prefix, a sibling's": (_FORGED,),
    "an issuer that is contained in ours, or ours in it": (_FORGED,),
    "times in odd types": (_FORGED, "security/token_totality::any_value_in_any_claim_gives_an_answer"),
    "a required claim that is absent, empty or null": (_FORGED,),
    "another spelling of the same token": (
        _FORGED, "security/token_totality::a_token_with_one_character_changed_is_refused"),
    "the header's spelling": (_FORGED, "security/forgery::the_right_one_of_a_kind_passes"),
    "bytes in the header that are no text": (_FORGED,),
    "a token in an address, in a log, in the record": (
        _FORGED, "security/log_canary::no_token_no_argument_and_no_text_of_an_exception_reaches_the_log",
        "security/record_canary::no_word_number_or_address_that_anybody_typed_is_in_an_export",
        "security/token_nowhere::no_part_of_a_token_is_in_what_a_planner_sees_in_arguments_bodies_logs_or_tables",
        "security/token_nowhere::no_notice_carries_a_part_of_the_token_that_asked_for_it"),
    "a single use by fifty at once": (
        f"{_ONE}of_fifty_writes_at_once_with_one_single_use_token_one_acts",
        f"{_SERVER}races::a_token_that_is_used_fifty_times_at_once_acts_at_most_once"),
    "a key that was retired, revoked, or given twice": (
        "contract/key_rotation::keys_follow_one_another_under_load_and_no_call_is_refused",
        "contract/key_rotation::a_stolen_key_is_refused_from_the_next_call_on_and_the_host_goes_on_with_another",
        f"{_KEYS}a_kid_or_a_key_that_stands_there_twice_is_refused"),
    "a weak key": (
        f"{_KEYS}a_short_or_weak_rsa_key_is_not_loaded",
        f"{_KEYS}a_modulus_of_the_generator_that_had_the_roca_fault_is_no_key",
        f"{_KEYS}a_key_on_another_curve_than_its_algorithms_is_no_key",
        f"{_KEYS}the_server_does_not_start_on_files_that_it_cannot_trust"),
    "the token of one task used on another's object": (
        f"{_ONE}the_token_of_one_order_reads_no_other",
        f"{_ONE}what_is_another_customers_or_tenants_answers_like_what_does_not_exist"),
}  # fmt: skip

CLIENTS: dict[str, tuple[str, ...]] = {
    "a session of another's": (_FORGED, f"{_EDGE}a_session_id_is_no_identity_and_opens_nothing"),
    "the identity that a session began with": (f"{_EDGE}every_request_is_judged_by_its_own_token",),
    "which Accept and Content-Type are taken": (
        f"{_BODY}both_media_types_of_an_answer_must_be_acceptable",
        f"{_BODY}who_does_not_say_what_is_acceptable_has_accepted_neither", f"{_BODY}a_body_is_json_and_says_so"),
    "a server that restarts, and forgets its sessions": (
        f"{_LIFE}after_a_kill_and_a_restart_the_next_call_works",
        f"{_LIFE}a_kill_during_a_write_leaves_it_unknown_and_the_client_alive",
        f"{_LIFE}a_forgotten_session_is_opened_anew_for_the_next_call",
        f"{_LIFE}a_server_that_keeps_forgetting_is_asked_once_per_call"),
    "a status that nobody hears of": (
        f"{_HOSTILE}a_write_has_its_outcome_one_request_and_the_client_goes_on",
        f"{_HOSTILE}a_read_has_its_outcome_one_request_and_the_client_goes_on",
        f"{_HOSTILE}the_older_revision_has_the_same_outcomes",
        "contract/tool_client_wire::no_redirect_carries_the_token_away"),
    "ids of every JSON type": (
        f"{_BODY}an_id_comes_back_as_it_was_sent",
        f"{_BODY}an_id_of_another_type_is_refused_and_nothing_is_executed",
        f"{_BODY}a_call_without_an_id_is_no_notification_to_execute",
        "contract/edge_life::two_calls_with_one_id_are_two_calls_though_both_are_in_flight"),
    "an error that the output schema swallows": (
        f"{_EDGE}a_refusal_reaches_the_client_with_its_code_whatever_the_output_schema_says",
        f"{_EDGE}a_bug_in_a_handler_is_an_answer_with_a_code_and_the_server_lives"),
    "a call that its caller has given up": (
        "contract/edge_life::a_caller_that_goes_away_cancels_its_call_and_no_other",
        f"{_ONE}a_write_whose_caller_gives_up_cancels_and_leaves_is_made_once_and_found_by_its_key",
        "integration/engine_unknown::a_write_that_was_done_and_whose_answer_was_lost_is_found_by_its_key_and_adopted",
        "e2e/takeover::a_write_whose_answer_was_lost_is_found_and_not_repeated"),
    "another host, another origin": (
        "contract/edge_hosts::a_request_for_another_host_is_misdirected",
        "contract/edge_hosts::a_page_of_another_origin_is_refused",
        "contract/edge_hosts::names_and_origins_that_the_operator_adds_are_served_and_compared_whole"),
    "bodies without end, that lie, or are bombs": (
        f"{_BOUNDS}200_megabytes_in_chunks_end_early_and_cost_no_memory", f"{_BOUNDS}a_length_that_lies_is_found_out",
        f"{_BOUNDS}an_unknown_sender_is_answered_before_the_body_has_come",
        f"{_BOUNDS}one_byte_at_a_time_is_not_forever_and_others_are_served_meanwhile",
        f"{_BOUNDS}a_compressed_bomb_is_never_unpacked",
        f"{_BODY}a_body_that_has_not_one_meaning_as_json_is_refused"),
    "arguments that nobody declared": (f"{_ONE}undeclared_and_coerced_arguments_are_refused_whatever_the_token_says",),
    "arguments that are turned into something else": (
        f"{_BODY}arguments_reach_the_dispatcher_as_they_were_sent", f"{_BODY}a_number_that_is_no_integer_stays_one",
        f"{_SERVER}bounds::arguments_that_are_not_exactly_the_tools_are_refused_before_sql"),
    "names of tools": (
        f"{_BODY}names_of_tools_fit_the_narrowest_pattern_of_any_vendor",
        f"{_BODY}a_name_that_is_not_exactly_a_tools_is_unknown"),
    "several calls in one request": (f"{_BODY}a_batch_is_refused_whole",),
}  # fmt: skip

APPROVALS: dict[str, tuple[str, ...]] = {
    "another amount or destination is another approval": (
        f"{_YES}what_changed_in_the_shop_after_the_approval_is_told_and_asks_for_another",
        "security/approval_http::a_destination_that_changed_since_is_told_to_whoever_may_ask_again",
        f"{_CASE}what_the_shop_has_changed_since_is_asked_for_again_as_it_is_now"),
    "one approval, one return": (
        f"{_CASE}an_approval_of_one_case_is_worth_nothing_in_another",
        f"{_YES}the_same_event_under_its_own_key_is_a_replay_and_under_another_key_used",
        f"{_YES}of_two_keys_that_race_with_one_event_one_acts"),
    "nobody's silence is a yes; whose turn it is, and until when": (
        f"{_CASE}after_a_day_nothing_is_approved_any_more_and_nothing_ever_happens",
        f"{_CASE}a_substitute_decides_once_the_request_is_old_enough",
        f"{_CASE}a_case_is_moved_to_approved_by_no_sql_without_a_recorded_decision_of_that_version"),
    "subject, tool, target, arguments, time and end are the approved ones where it is carried out": (
        f"{_YES}an_event_that_differs_in_one_respect_is_void_and_spends_nothing",
        f"{_YES}other_arguments_than_those_approved_are_another_action",
        f"{_YES}an_approval_counts_between_its_decision_and_its_end_and_for_a_day_at_most"),
    "they are looked at again when the call leaves": (
        "integration/engine_stored_call::a_call_that_is_no_longer_what_was_approved_is_not_sent",
        f"{_CASE}an_approval_that_runs_out_before_its_call_is_sent_ends_the_case",
        f"{_CASE}an_approval_whose_key_was_revoked_or_whose_approver_has_no_right_any_more_is_asked_for_again",
        f"{_CASE}a_key_that_was_revoked_lets_nothing_more_be_sent_that_it_signed"),
    "a decision about another version of the case changes nothing": (
        f"{_CASE}a_decision_about_anything_else_changes_nothing",
        f"{_YES}without_the_version_that_was_approved_the_event_is_for_none"),
    "each family of tools has a credential of its own, worth nothing at another's": (
        f"{_SERVER}rights::a_role_is_refused_what_is_not_its_own",
        f"{_SERVER}isolation::each_role_is_refused_every_statement_that_it_does_not_need",
        f"{_SERVER}bounds::a_tool_is_refused_without_its_own_scope"),
    "a token is bound to its order at the server too": (f"{_ONE}the_token_of_one_order_reads_no_other",),
    "any number of servers, none of which keeps anything": (
        f"{_ONE}any_replica_answers_alike_and_what_was_done_or_used_at_one_is_so_at_the_other",
        f"{_EDGE}two_replicas_answer_alternating_requests_alike"),
}  # fmt: skip

SECTIONS = {
    "What went wrong for others with tokens": TOKENS,
    "What went wrong for others between client and server": CLIENTS,
    "What a person's yes and a credential are worth": APPROVALS,
}
