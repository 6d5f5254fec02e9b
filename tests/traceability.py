"""Which test shows what has to be shown: one table, printed into `docs/tests.md` by `python -m tests.traceability`.

Invariant: a row names tests that are there, or says what it waits for; nothing stands for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests import field_rows, wire_rows

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tests.md"
_HEAD = """# What is shown by which test

Made by `python -m tests.traceability` from the table there; a test compares, and looks for each name. *Later* says what
a row waits for. A numbered row, and one that says how many, has to be there from the first release on. That a test is
there and passes says nothing about a live system: `kessai eval` is what tries one.

| what has to be shown | by |
|---|---|
"""


@dataclass(frozen=True, slots=True)
class Row:
    """`tests`: `folder/file::test`, without `tests/`, `test_` and `.py`. `later`: what is missing, where nothing is."""

    what: str
    tests: tuple[str, ...] = ()
    later: str = ""


TABLE: tuple[Row, ...] = (
    Row("1. legal and illegal state transitions", (
        "unit/control_machine::a_pair_is_legal_exactly_where_the_description_says_so",
        "unit/transition_table::the_table_is_the_agreed_one_to_the_last_row")),
    Row("2. argument schema and unknown fields", (
        "security/token_one_call::undeclared_and_coerced_arguments_are_refused_whatever_the_token_says",)),
    Row("3. tool allow-list, scope, case boundary", (
        "unit/authorization::nothing_passes_without_scope_catalogue_state_tenant_resource_budget_and_a_tool_that_is_there",
        "integration/engine_evil_planner::another_order_is_denied_before_any_request_in_every_state_with_an_alert")),
    Row("4. one not-found across tenants", (
        "security/alike::what_is_anothers_and_what_is_not_there_are_one_to_the_caller_and_to_the_database",
        "security/token_one_call::what_is_another_customers_or_tenants_answers_like_what_does_not_exist",
        "integration/claims_tools::what_is_anothers_is_told_in_the_very_words_of_what_does_not_exist")),
    Row("a handler that forgets whose rows it asks for", (
        "integration/tool_server_careless::a_tool_that_forgets_its_conditions_gives_and_does_nothing_of_anothers",
        "integration/tool_server_careless::without_row_level_security_every_one_of_them_would_have_leaked",
        "integration/tool_server_isolation::a_role_sees_the_rows_of_the_token_and_no_others")),
    Row("each role of the database does its own work alone", (
        "integration/tool_server_isolation::each_role_is_refused_every_statement_that_it_does_not_need",)),
    Row("host and tool server read nothing of each other's", (
        "integration/store_apart::no_role_of_the_other_side_is_let_into_a_database",
        "integration/store_apart::no_role_of_the_other_side_may_run_any_statement_there")),
    Row("which tools a planner is shown: by state, tenant, rights, stops, contract and listing", (
        "unit/offered::in_each_state_of_a_kind_exactly_its_tools_are_shown",
        "unit/offered::what_is_offered_is_what_every_factor_grants_and_nothing_else",
        "unit/offered::a_tool_that_one_factor_takes_out_is_gone_and_every_other_stays",
        "unit/offered::an_empty_factor_leaves_nothing_and_never_all",
        "integration/engine_decisions::an_empty_factor_leaves_no_tool_and_never_all")),
    Row("what a tool says in words, and an address in it, is obeyed by nobody and opened by nobody", (
        "integration/engine_evil_planner::an_instruction_inside_data_changes_neither_the_tools_offered_nor_what_is_done",
        "security/texts_and_links::an_order_and_rules_that_speak_to_a_planner_change_neither_tools_nor_calls_nor_the_end",
        "security/texts_and_links::titles_and_aliases_that_speak_to_a_planner_change_neither_tools_nor_calls_nor_the_end",
        "security/texts_and_links::an_address_is_text_in_every_block_of_a_page")),
    Row("a tool server of another revision, without tools or of another contract: no case is taken in, and code 15", (
        "integration/run_not_ready::it_ends_with_15_and_the_reason_and_no_case_and_no_call",
        "contract/tool_client_readiness::a_server_without_the_tools_capability_is_not_ready",
        "contract/tool_client_readiness::a_tool_of_another_contract_makes_the_server_not_ready")),
    Row("no address is taken from an argument or a token", (
        "security/no_addresses::no_argument_takes_an_address",
        "security/no_addresses::the_tool_server_has_nothing_to_fetch_with",
        "security/no_addresses::whatever_of_the_host_knows_the_network_is_named_here",
        "contract/tool_client_wire::no_redirect_carries_the_token_away",
        "contract/tool_client_wire::no_redirect_leads_away_what_is_asked_beside_the_endpoint")),
    Row("another issuer speaks for its own tenants alone", (
        "security/forgery::an_attempt_is_refused_with_nothing_done_and_nothing_of_it_told",
        "security/token_keys::an_issuer_whose_tenants_are_not_said_is_trusted_for_none")),
    Row("a revoked token is good for no method", (
        "contract/edge_token_fault::every_method_asks_whether_the_token_stands",
        "security/forgery::an_attempt_is_refused_with_nothing_done_and_nothing_of_it_told")),
    Row("a flood from one client costs another no call", (
        "integration/flood::a_flood_costs_a_right_client_no_call_the_server_no_memory_and_the_log_no_room",
        "contract/edge_rate::an_address_that_fails_too_often_is_told_to_wait_and_a_right_token_passes_from_it_meanwhile",
        "contract/edge_unread::what_is_no_http_has_a_bounded_number_of_lines",
        "contract/edge_unread::so_many_requests_may_be_sent_ahead_and_no_more",
        "contract/edge_unread::an_answer_that_nobody_takes_is_given_up")),
    Row("what others ask of security, row by row; what a thief, a traitor or a taken-over program cannot do", (
        "unit/security_page::every_number_of_the_standards_chapters_stands_there_once",
        "unit/security_page::a_row_is_shown_by_tests_or_says_why_not",
        "unit/security_page::what_somebody_cannot_do_is_shown_by_tests_or_said_not_to_be",
        "unit/security_page::a_test_that_is_named_is_there")),
    Row("5. a repeated action is blocked", (
        "integration/engine_limits::an_action_that_succeeded_is_done_once_whatever_id_it_comes_under",)),
    Row("6. bounded retry after a transient error", (
        "integration/engine_retry::a_read_is_tried_twice_and_then_it_is_a_persons",
        "integration/engine_retry::a_second_busy_answer_is_the_end_of_sending")),
    Row("7. a stop by the budget of steps", (
        "integration/engine_limits::the_sixth_call_is_made_and_a_seventh_is_not_and_stops_the_others",)),
    Row("8. MCP: handshake, tool list, structured result", (
        "contract/edge_protocol::the_official_client_lists_and_calls",
        "contract/edge_protocol::the_old_revisions_handshake_needs_no_session")),
    Row("9. 401 without a bearer token", (
        "contract/edge_metadata::the_challenge_leads_to_the_metadata_that_names_resource_and_issuers",
        "e2e/compose_commands::who_comes_without_a_token_gets_what_the_runbook_says")),
    Row("10. a token that was tampered with, a wrong audience", (
        "security/forgery::an_attempt_is_refused_with_nothing_done_and_nothing_of_it_told",
        "security/forgery::the_right_one_of_a_kind_passes")),
    Row("a token that was verified before is judged at each use", (
        "security/token_seen::the_time_is_asked_at_each_use",
        "security/token_seen::the_next_use_after_a_change_of_the_keys_is_judged_by_the_new_ones",
        "security/token_one_call::a_kept_token_that_is_revoked_between_two_uses_is_refused_at_the_second")),
    Row("11. recovery of a read that a crash cut off", (
        "integration/engine_crash::a_read_that_was_cut_off_is_planned_again_and_counts_neither_as_a_call_nor_as_a_repeat",
        "e2e/cli_claims::a_run_that_is_killed_under_a_read_reads_again")),
    Row("12. the same request again", (
        "e2e/cli_run::the_same_case_again_answers_with_the_same_workflow_calls_nothing_and_says_so",
        "e2e/cli_claims::one_run_and_its_repetition_answer_as_accepted_and_call_four_times_in_all",
        "e2e/cli_claims::an_installation_is_accepted_by_the_runbooks_own_commands")),
    Row("13. a model's proposal and its end over the Responses API", later="the adapter of a real model (Y3-05)"),
    Row("what a vendor's turn proposes, and how it ends, whoever sends it", (
        "unit/planner_decode::a_turn_is_one_decision_or_a_named_fault",
        "unit/planner_decode::a_model_ends_by_a_reserved_call_with_strict_arguments")),
    Row("14. migration, container, a call from end to end", (
        "integration/tool_server_migrate::an_empty_database_gets_every_file_once_and_a_second_run_changes_nothing",
        "e2e/compose_commands::a_case_is_completed_by_the_worker_and_its_notice_reaches_the_mail_sink")),
    Row("six faults, seen to happen outside the host", (
        "e2e/cli_evaluate_run::cases_of_each_kind_end_as_the_rules_have_it_and_their_faults_are_seen_to_happen",
        "e2e/cli_evaluate_run::a_shops_right_returns_are_made_once_under_every_fault_and_all_else_is_refused",
        "unit/evaluation_cases::all_six_faults_occur_and_strike_at_every_step")),
    Row("faults beyond the six: kills, a restart, a lost commit, a slow answer, older contracts", (
        "e2e/cli_evaluate_run::every_fault_happens_and_shows_that_it_stops_recovers_and_stays_within_its_permission",
        "e2e/cli_evaluate_run::a_fault_at_a_request_that_never_comes_is_not_proved",
        "e2e/cli_evaluate_defects::a_planted_defect_is_found_where_it_is")),
    Row("back-off, confirmation query, compensation and stop, shown by a command", (
        "e2e/cli_demo::the_four_things_are_shown_on_real_programs_and_nothing_real_is_touched",)),
    Row("with all updates removed every case ends with nothing done", (
        "integration/engine_draft_mode::with_all_updates_removed_every_case_ends_with_nothing_done_and_a_draft_where_the_rules_allowed_it",
        "e2e/cli_evaluate_run::with_all_updates_removed_every_case_ends_with_nothing_done_and_a_sheet_where_it_would_have_acted")),
    Row("told and so, 1 of 7: no completion without a call", (
        "integration/answer_and_state::nothing_is_called_done_without_a_call",
        "integration/engine_evil_planner::saying_that_it_is_done_or_approved_does_nothing_and_moves_nothing")),
    Row("told and so, 2 of 7: a denial is not told as a success", (
        "integration/answer_and_state::a_denial_is_not_told_as_a_success",
        "integration/engine_approval::a_denial_ends_the_case_and_nothing_is_made")),
    Row("told and so, 3 of 7: a tool's error is passed on as it is", (
        "integration/answer_and_state::a_tools_error_reaches_the_planner_as_it_came",
        "contract/tool_client_pair::every_code_that_a_tool_answers_with_arrives_as_that_code")),
    Row("told and so, 4 of 7: what is under way is told as that", (
        "integration/answer_and_state::what_was_accepted_and_goes_on_is_told_as_under_way",
        "integration/engine_verify::accepted_is_not_done_and_is_asked_about_again_within_its_bound")),
    Row("told and so, 5 of 7: no second one after a lost answer", (
        "integration/answer_and_state::after_a_time_out_nothing_is_made_twice_and_nothing_is_sent_before_it_was_looked_for",
        "e2e/takeover::a_write_whose_answer_was_lost_is_found_and_not_repeated")),
    Row("told and so, 6 of 7: of several results, each belongs to its own request", (
        "integration/answer_and_state::several_results_belong_each_to_the_request_that_asked",
        "contract/edge_life::fifty_calls_at_once_are_answered_each_with_its_own_id")),
    Row("told and so, 7 of 7: what was made on a wrong target is not accepted", (
        "integration/answer_and_state::what_was_made_on_another_target_is_not_taken_for_done",
        "integration/engine_verify::a_read_back_of_another_order_line_or_amount_has_to_be_undone_and_is_never_done")),
    Row("120 cases", (
        "unit/evaluation_cases::there_are_120_cases_with_the_count_of_each_category",
        "unit/evaluation_cases::every_row_writes_out_its_six_expectations_and_its_four_flags",
        "e2e/cli_evaluate_whole::all_120_cases_end_as_the_rules_have_it_and_nothing_is_left_unaccounted_for")),
    Row("the record: changed, removed, put in, reordered, cut off, written anew by one side", (
        "integration/record_seal::what_a_superuser_spoils_is_found_and_named",
        "integration/record_seal::an_end_that_was_cut_off_with_its_seals_is_missed_by_the_other_side",
        "integration/record_seal::a_side_that_writes_its_record_anew_with_its_own_key_cannot_do_so_alone",
        "integration/record_seal::who_has_both_databases_and_one_key_cannot_write_the_record_of_that_key_anew")),
    Row("the seven questions of an audit, and what is recorded of each call", (
        "integration/explain::the_seven_questions_of_an_audit_name_request_policy_versions_evidence_and_detours",
        "integration/record_seal::a_sealed_line_says_who_did_what_in_which_version_and_what_came_of_it")),
    Row("the record: sealed within a second, no row skipped, by one sealer", (
        "integration/record_kept::what_is_written_is_sealed_within_a_second_by_one_of_two_loops",
        "integration/record_heads::a_call_is_sealed_within_a_second_by_the_server_that_answered_it",
        "integration/tool_server_connections::what_a_call_did_its_token_and_its_row_in_the_log_are_of_one_commit",
        "integration/record_seal::a_row_that_commits_late_under_an_earlier_number_is_sealed_by_the_next_batch",
        "integration/record_kept::a_sealer_that_is_killed_in_the_middle_of_a_batch_leaves_no_gap_and_no_lock",
        "integration/record_locks::no_role_keeps_the_record_from_being_sealed_by_all_the_locks_that_it_may_take")),
    Row("the record: verified offline, kept so long, words erased", (
        "e2e/cli_audit::an_export_is_verified_on_another_machine_with_a_copy_of_the_public_keys",
        "integration/record_kept::what_is_too_old_is_cut_behind_a_signed_head_and_the_rest_verifies",
        "integration/record_cut::what_is_older_than_the_set_days_goes_on_each_side_and_nothing_else",
        "integration/record_cut::what_is_wrong_is_named_by_the_commands_and_nothing_of_it_is_cut",
        "integration/record_cut::the_tool_servers_own_command_cuts_no_line_that_is_not_what_was_sealed",
        "integration/record_kept::words_that_are_erased_are_gone_from_the_row_and_the_chain_stays_whole")),
    Row("what anybody typed is in no log, handover, export or report", (
        "e2e/cli_canary::what_was_typed_is_put_out_nowhere_but_where_the_runbook_says_so",
        "security/handover_canary::no_word_of_a_planner_is_on_the_sheet",
        "unit/evaluation_page::no_text_of_a_cases_request_is_in_its_report_or_on_its_page",
        "security/handover_canary::no_word_of_the_customer_the_order_or_a_refusal_is_on_the_sheet")),
    Row("the record: no program may change, remove or empty a history", (
        "integration/record_guarded::no_role_of_a_program_may_change_or_remove_or_empty_a_history",
        "integration/record_guarded::a_right_that_somebody_grants_is_found")),
    Row("requests, answers and files that nobody thought of", (
        "security/fuzz_server::every_request_has_a_valid_answer_its_line_and_no_effect_but_the_allowed_one",
        "security/fuzz_heads::nothing_but_a_signed_head_is_taken_or_answered_with_the_logs_own",
        "security/fuzz_client::every_answer_has_its_outcome_and_the_next_call_is_made",
        "security/fuzz_files::what_reads_a_file_takes_it_or_says_why_not")),
    Row("no version is installed that an advisory calls bad", (
        "unit/known_bad::no_lock_names_a_version_that_is_known_to_be_bad",
        "unit/known_bad::a_bad_version_that_is_planted_in_the_lock_is_found_and_named")),
    Row("no secret and no personal data in an export of the record", (
        "security/record_canary::no_word_number_or_address_that_anybody_typed_is_in_an_export",)),
    Row("two workers at one case", (
        "integration/engine_race::of_two_drivers_that_read_the_same_version_one_commits_a_hundred_times",
        "e2e/two_workers::cases_that_are_woken_many_times_are_done_once")),
    Row("random events, crashes, two workers, approvals and stops: the invariants after each step", (
        "integration/engine_stateful::whatever_happens_in_whatever_order_the_invariants_hold_after_each_step_and_all_of_it_does_happen",
        "integration/engine_stateful::the_same_holds_in_many_more_and_longer_histories")),
    Row("another day, another worker", (
        "integration/engine_approval::after_a_day_nothing_is_approved_any_more_and_nothing_ever_happens",
        "e2e/crash_points::a_worker_that_dies_at_a_commit_is_taken_over_from")),
    Row("a kill before and after every commit of worker, tool server and command", (
        "e2e/cli_crash_matrix::every_commit_of_every_way_of_writing_is_survived",
        "e2e/crash_points::every_commit_of_a_return_is_counted_with_its_place",
        "e2e/crash_matrix_defects::a_host_that_adopts_nothing_is_red_where_an_effect_stands_that_nobody_heard_of",
        "e2e/crash_matrix_defects::a_tool_server_that_mails_again_is_red_where_a_mail_had_left_that_nobody_knew_of",
        "e2e/crash_matrix_defects::a_kill_that_does_not_happen_is_red_though_the_case_ends_well")),
    Row("a write that was done before the crash and of which nothing was recorded", (
        "integration/engine_crash::invariant_3_a_write_that_was_cut_off_is_never_planned_again_but_looked_up_by_its_key_first",
        "e2e/crash_points::a_worker_that_dies_at_a_commit_is_taken_over_from",
        "e2e/crash_points::a_tool_server_that_dies_at_a_commit_costs_a_recovery_and_no_attempt")),
    Row("recovery by risk: a read, a write, one that is not sent again, what nobody knows, a thing that is missing", (
        "integration/engine_crash::a_read_that_was_cut_off_is_planned_again_and_counts_neither_as_a_call_nor_as_a_repeat",
        "integration/engine_crash::invariant_3_a_write_that_was_cut_off_is_never_planned_again_but_looked_up_by_its_key_first",
        "integration/engine_retry::a_read_is_tried_twice_and_then_it_is_a_persons",
        "integration/engine_unknown::a_write_that_was_done_and_whose_answer_was_lost_is_found_by_its_key_and_adopted",
        "integration/engine_retry::a_contract_that_says_stop_is_not_sent_again_after_a_lost_answer",
        "integration/engine_unknown::invariant_10_where_the_look_up_cannot_tell_it_stays_unknown_and_is_never_sent_again",
        "integration/engine_draft_mode::a_normal_case_of_a_kind_without_one_thing_ends_with_a_draft_and_nothing_done")),
    Row("six findings that stop the system", (
        "integration/engine_findings::a_finding_stops_new_cases_and_updates_in_the_commit_that_records_it",
        "integration/engine_findings::every_finding_but_the_calls_that_a_case_may_need_has_its_test_here")),
    Row("five measures that stop the system by themselves", later=(
        "only the sixth call does today; the queue, its age, the rate of failures and a day's cost come later (U-03)")),
    Row("six contract tests of every tool that writes, as one command", (
        "contract/contract_suite::every_item_of_an_update_tool_holds_over_the_real_tool_server",
        "contract/contract_suite::a_tool_server_with_one_defect_fails_the_item_that_is_about_it_and_no_other",
        "e2e/cli_contract_test::every_update_tool_passes_in_a_home_that_is_gone_afterwards")),
    Row("a release is let in by stages, each by what its cases have shown", (
        "integration/rollout::a_stage_takes_in_its_audience_and_no_more_cases_than_it_has_to_show",
        "integration/rollout::three_stages_are_passed_in_their_order_and_then_everybody_comes_in_and_some_are_checked",
        "integration/rollout::what_stands_against_a_stage_keeps_it_open_whoever_asks",
        "e2e/cli_rollout::a_stage_is_closed_by_ten_cases_and_both_sides_and_stands_in_the_form")),
    Row("a way back to the last release that passed", (
        "integration/releases::a_rollback_is_for_new_cases_and_every_case_goes_on_under_the_release_that_it_began_with",
        "integration/releases::the_command_goes_back_to_the_last_that_passed_and_says_who_why_and_from_where",
        "integration/releases::a_program_that_lacks_the_release_of_an_open_case_does_not_start",
        "e2e/cli_release::a_release_is_recorded_by_its_passing_report_once_and_shown_with_who_and_by_what",
        "e2e/cli_evaluate_whole::a_release_is_recorded_by_the_report_of_a_real_run")),
    Row("a change of one part, by what it mended and what it broke", (
        "unit/evaluation_compare::eight_of_eight_fixed_and_two_notices_twice_among_35_normal_cases_is_a_regression",
        "unit/evaluation_compare::what_has_to_be_equal_and_is_not_is_named_and_nothing_is_compared",
        "e2e/cli_evaluate::a_comparison_is_kept_with_its_groups_over_an_earlier_one_and_over_nothing_else",
        "e2e/cli_evaluate_whole::a_change_is_judged_by_real_reports_from_before_it_and_after_it")),
    Row("an evaluation that finds what is planted, where it is, and says so", (
        "e2e/cli_evaluate_defects::a_planted_defect_is_found_where_it_is",
        "e2e/cli_evaluate_defects::the_same_cases_without_a_defect_are_red_for_nothing_but_their_count")),
    Row("fewer approvals are a new version", (
        "integration/asked_approvals::a_removed_or_other_approval_under_the_same_version_is_refused",
        "unit/evaluation_compare::a_version_that_asks_for_fewer_approvals_is_another_series_and_not_compared")),
    Row("three examples of a structured judgement's intake", later="the intake of messages (Y1-11)"),
)  # fmt: skip


WIRE = {
    heading: tuple(Row(what, tests) for what, tests in rows.items())
    for heading, rows in (wire_rows.SECTIONS | field_rows.SECTIONS).items()
}


def node(name: str) -> tuple[Path, str]:
    """Give the file and the function that a name of the table stands for."""
    place, test = name.split("::")
    folder, file = place.split("/")
    return ROOT / "tests" / folder / f"test_{file}.py", f"test_{test}"


def page() -> str:
    """Write the tables as they stand in the documents."""
    parts = [_HEAD, _lines(TABLE)]
    for heading, rows in WIRE.items():
        parts += [f"\n## {heading}\n\n| row | by |\n|---|---|\n", _lines(rows)]
    return "".join(parts)


def _lines(rows: tuple[Row, ...]) -> str:
    lines = []
    for row in rows:
        shown = [f"`{node(name)[0].relative_to(ROOT)}::{node(name)[1]}`" for name in row.tests]
        lines.append(f"| {row.what} | {'<br>'.join(shown) or f'*later:* {row.later}'} |\n")
    return "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
