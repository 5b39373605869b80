"""Faults that others have met, by kind, and the tests that hold each kind off. A convention test finds a test that isn't there or never runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    # Who owns a run
    "A worker that outslept its lease writes no more; its call is unknown, then found by its key, and sent once": (
        "tests/scenarios/test_lost_workers.py::test_a_worker_that_outslept_its_lease_is_refused_and_its_refund_is_found_and_not_repeated",
    ),
    "The same claim comes twice to one process: it runs once, and a lost lease stops it": (
        "client/tests/test_workers.py::test_a_claim_delivered_twice_runs_once",
        "client/tests/test_workers.py::test_a_claim_delivered_twice_while_it_runs_is_dropped",
        "client/tests/test_workers.py::test_a_stop_lets_the_call_end_reports_it_and_begins_nothing_new",
    ),
    "A worker slept until its run had ended elsewhere, and goes on": (
        "tests/scenarios/test_lost_workers.py::test_a_worker_that_slept_until_the_run_had_ended_elsewhere_changes_nothing",
        "tests/storms/test_storms.py::test_workers_that_come_back_after_they_were_replaced_change_nothing",
    ),
    "A reaper that read before a commit comes after it": (
        "tests/services/test_lease_races.py::test_a_commit_that_wins_against_the_lapse_is_final",
        "tests/services/test_effects.py::test_a_late_failed_by_a_reaper_changes_nothing_that_is_committed",
    ),
    "Two reapers see one lease run out": (
        "tests/services/test_lease_races.py::test_two_reapers_of_one_lease_end_it_once",
    ),
    "A worker is killed while the record says that it runs": (
        "tests/scenarios/test_lost_workers.py::test_a_worker_that_died_while_the_run_says_running_is_followed_under_a_higher_fence",
        "tests/crash/test_crash.py::test_a_killed_worker_loses_and_repeats_nothing",
    ),
    "Heartbeats are late on a saturated machine though the work goes on": (
        "tests/scenarios/test_crowded_workers.py::test_a_worker_whose_heartbeats_are_late_on_a_saturated_machine_is_followed_once_and_repeats_nothing",
    ),
    "A run kills every worker that takes it": (
        "tests/scenarios/test_crowded_workers.py::test_a_run_that_kills_each_worker_is_counted_before_it_runs_blocked_at_the_third_and_others_flow",
        "tests/services/test_leases.py::test_a_run_that_kills_every_worker_is_blocked_after_the_third_claim",
    ),
    "A worker's own clock is wrong": (
        "tests/scenarios/test_crowded_workers.py::test_a_worker_whose_own_clock_is_wrong_keeps_its_lease_by_the_server_s",
        "client/tests/test_client.py::test_a_permit_is_timed_by_the_servers_clock_not_by_ours",
    ),
    "Steps are lost or doubled when many runs go on at once on a loaded machine": (
        "tests/scenarios/test_crowded_workers.py::test_forty_steps_of_parallel_runs_on_a_loaded_machine_add_exactly_their_rows",
    ),
    "A checkpoint of code that knows more than ours": (
        "client/tests/test_workflows.py::test_a_state_that_fits_only_in_part_is_refused_without_its_values",
        "client/tests/test_workflows.py::test_a_state_of_a_version_that_is_not_taken_over_is_refused",
        "client/tests/test_workflows.py::test_a_damaged_state_is_refused_before_it_is_decoded",
    ),
    # Calls to the outside world
    "A worker dies and the job that it started goes on": (
        "tests/engine/test_reconcile.py::test_a_remote_job_that_outlives_its_worker_is_found_by_key_and_not_started_again",
    ),
    "A call is given up on before its slow target answers, and asked for again": (
        "tests/scenarios/test_lost_workers.py::test_a_caller_that_gives_up_on_a_slow_service_never_sends_twice",
        "tests/services/test_effects.py::test_a_caller_that_gives_up_and_asks_again_gets_the_same_permit_and_key",
    ),
    "A library tries again under the adapter": (
        "client/tests/test_calls.py::test_a_library_that_tries_again_under_the_call_sends_nothing_more",
        "client/tests/test_calls.py::test_a_second_request_under_one_permit_is_not_sent",
        "client/tests/test_calls.py::test_a_call_carries_key_precondition_and_the_permitted_bytes",
    ),
    "A repeat has one field more than the call had": (
        "tests/engine/test_reconcile.py::test_a_repeat_with_one_more_field_is_422_and_the_key_is_looked_up",
        "tests/services/test_effects.py::test_a_rerun_with_other_model_arguments_is_refused_and_the_recorded_request_stands",
    ),
    "A target says that the call is in progress": (
        "tests/engine/test_reconcile.py::test_a_conflict_in_progress_is_unknown_and_asked_later_by_reading",
    ),
    "A target has forgotten the key": (
        "tests/engine/test_reconcile.py::test_a_key_that_the_target_may_have_forgotten_is_not_resent",
        "tests/engine/test_reconcile.py::test_a_key_that_the_target_forgot_is_found_by_reference_or_goes_to_a_person",
    ),
    "A step is run again after its call was made": (
        "tests/scenarios/test_lost_workers.py::test_a_call_and_the_wait_that_follows_it_are_one_commit_and_no_resume_repeats_the_call",
        "tests/scenarios/test_lost_workers.py::test_what_was_done_before_a_run_was_resumed_twice_is_not_done_again",
    ),
    "A process dies between its permit and its receipt": (
        "tests/services/test_effects.py::test_in_flight_is_written_before_the_call_and_a_lost_settle_fails_closed",
        "tests/services/test_effects.py::test_a_crash_between_permit_and_receipt_leaves_unknown_that_nobody_can_permit",
    ),
    "A target answers in every way in which targets fail": (
        "tests/storms/test_storms.py::test_whatever_a_target_answers_at_most_one_change_is_made_and_the_ledger_knows",
    ),
    "An outcome stayed unknown": (
        "tests/browser/test_reconcile.py::test_an_unknown_outcome_is_found_in_the_queue_and_settled",
        "tests/services/test_effects.py::test_a_person_s_word_that_it_didn_t_happen_is_taken_only_once_it_can_t_arrive_any_more",
    ),
    # Events, waits and wakes
    "An event comes just before, during or after the opening of its wait": (
        "tests/engine/test_races.py::test_an_event_just_before_during_or_after_the_opening_of_its_wait_wakes_the_run_once",
        "tests/storms/test_storms.py::test_an_event_and_a_wait_meet_once_however_they_come",
    ),
    "A hint is lost between look and sleep": (
        "tests/engine/test_sweep.py::test_with_all_hints_deleted_everything_still_proceeds",
        "tests/services/test_bell.py::test_a_ring_between_a_look_and_the_wait_is_not_missed",
        "tests/services/test_events.py::test_a_meeting_that_a_death_left_apart_is_found_by_the_sweep",
    ),
    "The connection that listens is killed, or falls silent": (
        "tests/deployment/test_lost_bell.py::test_a_claim_finds_its_run_while_nobody_listens_and_the_listener_comes_back",
    ),
    "The timer stands still": (
        "tests/deployment/test_supervisor.py::test_with_the_timer_frozen_the_queue_takes_a_silent_worker_s_run_back",
    ),
    "One event comes five times at once, and again after its wait": (
        "tests/engine/test_races.py::test_the_same_event_five_times_at_once_is_taken_once",
        "tests/services/test_events.py::test_a_repeated_event_is_a_duplicate_during_and_after_the_wait",
    ),
    "An event meets a wait that has just gone": (
        "tests/services/test_events.py::test_an_event_that_matched_a_wait_which_has_gone_is_there_for_the_next",
    ),
    "A callback comes a second too late, twice": (
        "tests/services/test_events.py::test_an_event_a_second_after_the_deadline_is_late_and_revives_nothing",
        "tests/engine/test_meetings.py::test_an_event_that_loses_against_the_deadline_revives_nothing",
    ),
    "A wait has no end": (
        "tests/scenarios/test_waiting.py::test_a_wait_without_a_deadline_is_refused",
        "tests/engine/test_poison.py::test_a_wait_can_t_be_put_off_beyond_what_anybody_would_see",
    ),
    "A long sleep ends while workers restart all the time": (
        "tests/scenarios/test_crowded_workers.py::test_five_workers_restarted_until_a_wait_is_due_make_one_wake_one_claim_and_one_call",
    ),
    "The database's clock jumps ahead and back": (
        "tests/engine/test_clocks.py::test_waits_fire_once_and_never_early_when_the_clock_jumps_a_day_ahead_and_half_a_day_back",
        "tests/engine/test_clocks.py::test_a_clock_that_went_back_is_told_and_what_was_to_happen_at_once_happens",
        "tests/engine/test_clocks.py::test_a_process_that_starts_after_the_clock_went_back_mends_the_same",
    ),
    "The clock steps back between a timer and the scan for it": (
        "tests/engine/test_clocks.py::test_a_timer_written_before_the_clock_stepped_back_is_looked_for_among_all_that_have_not_fired",
    ),
    "Rows are written in another order than their ids": (
        "tests/engine/test_sweep.py::test_what_is_written_late_under_an_older_id_is_swept_too",
    ),
    "A day across a change of summer time": (
        "tests/engine/test_clocks.py::test_a_day_is_86400_seconds_across_a_change_of_summer_time_and_shows_alike_everywhere",
        "client/tests/test_workflows.py::test_durations_are_elapsed_seconds",
    ),
    "Cancelling meets going on": (
        "tests/engine/test_cancel_races.py::test_a_deadline_that_cancels_against_what_was_waited_for_has_one_winner_who_is_told",
        "tests/engine/test_cancel_races.py::test_two_operators_of_whom_one_cancels_and_one_wakes_are_told_who_won",
        "tests/engine/test_cancel_races.py::test_cancelling_against_a_worker_that_completes_past_its_lease",
    ),
    "A job is delivered again by the queue": (
        "tests/engine/test_redelivered_tasks.py::test_a_task_delivered_to_several_workers_and_then_again_does_its_work_once",
        "tests/engine/test_races.py::test_five_checkers_of_one_wake_make_one_decision",
        "tests/deployment/test_settings.py::test_the_queue_never_starts_a_task_again_while_it_may_still_run",
    ),
    # What is stored
    "A connection is cut between COMMIT and its reply": (
        "tests/scenarios/test_lost_connections.py::test_a_call_that_lost_its_connection_is_carried_out_once_when_it_is_sent_again",
        "tests/storms/test_storms.py::test_cut_connections_to_the_database_lose_and_repeat_nothing",
        "tests/storms/test_storms.py::test_a_database_server_that_is_killed_again_and_again_keeps_what_it_acknowledged",
    ),
    "The database is there and never answers, or is cut off again and again": (
        "tests/deployment/test_silent_database.py::test_the_timer_goes_on_after_the_stated_time_though_what_it_asked_is_never_answered",
        "tests/deployment/test_silent_database.py::test_a_web_process_answers_503_in_the_stated_time_and_goes_on",
        "tests/engine/test_sweep.py::test_a_connection_that_is_lost_costs_a_sweep_one_item_at_most",
    ),
    "A state looks like code": (
        "tests/api/test_inert_states.py::test_a_state_in_the_shape_of_an_object_stays_a_document_everywhere",
    ),
    "A tool's output has NUL and half an emoji": (
        "tests/api/test_refusals.py::test_a_bad_commit_leaves_the_checkpoint_and_the_run",
        "tests/api/test_refusals.py::test_a_bad_body_is_refused_and_nothing_is_written_or_shown",
    ),
    "An id has more digits than a double": (
        "tests/scenarios/test_digits.py::test_nineteen_digits_are_the_same_in_call_page_form_export_and_after_a_crash",
        "tests/scenarios/test_digits.py::test_nineteen_digits_as_a_number_are_refused_at_every_entry_and_nothing_is_kept",
    ),
    "A state has 60 MB, others nearly two": (
        "tests/api/test_live_server.py::test_60_megabytes_get_a_clean_413_and_the_next_call_its_answer",
        "tests/api/test_refusals.py::test_runs_with_states_near_the_limit_are_taken_and_lists_still_page",
    ),
    "Many append to one chain at once": (
        "tests/services/test_writer.py::test_sixteen_writers_on_one_run_fork_nothing",
    ),
    "A bit of a stored entry flips": (
        "tests/services/test_verify.py::test_one_flipped_bit_is_located_flagged_and_mended_by_nobody_with_its_index_made_anew",
        "tests/services/test_verify.py::test_one_altered_byte_of_an_entry_is_located",
    ),
    "One connection serves tenants in turn, then nobody": (
        "tests/tenants/test_connection.py::test_one_connection_keeps_nothing_of_whoever_came_before",
        "tests/tenants/test_connection.py::test_one_connection_serves_tenants_in_turn_and_mixes_nothing",
    ),
    # Deciding
    "Approve meets deny, a double click, a replayed form": (
        "tests/approvals/test_decision_races.py::test_approve_against_deny_has_one_winner_and_the_loser_sees_it",
        "tests/approvals/test_decision_races.py::test_a_double_click_is_one_vote_and_both_get_the_same_answer",
        "tests/scenarios/test_entry_points.py::test_every_door_decides_once_repeats_alike_and_refuses_the_second_and_the_late",
    ),
    "Two last votes come at once": (
        "tests/approvals/test_decision_races.py::test_two_votes_that_make_a_quorum_together_reach_it_once",
        "tests/approvals/test_decision_races.py::test_of_two_last_votes_exactly_one_decides",
    ),
    "Many decide at once": (
        "tests/engine/test_meetings.py::test_of_many_approvers_at_once_exactly_one_decides_and_all_others_are_told",
    ),
    "One approval, and many who wait to use it": (
        "tests/approvals/test_use.py::test_the_approved_call_is_permitted_once_for_however_many_ask",
    ),
    "Leave is used that was denied, expired or used": (
        "tests/approvals/test_use.py::test_what_was_denied_or_expired_is_never_permitted_and_each_is_told_apart",
    ),
    "Another call of the same tool under one approval": (
        "tests/approvals/test_use.py::test_another_call_of_the_same_tool_is_asked_for_by_itself",
        "tests/scenarios/test_lost_workers.py::test_approving_one_call_is_no_leave_for_another_of_the_same_tool_in_the_same_run",
    ),
    "Arguments are rewritten after the approval": (
        "tests/approvals/test_asking.py::test_another_subject_than_the_approved_one_is_not_covered",
        "tests/approvals/test_asking.py::test_a_changed_subject_is_a_new_revision_that_carries_no_votes",
    ),
    "The same is asked again": (
        "tests/approvals/test_asking.py::test_the_same_thing_asked_twice_is_the_one_open_request",
    ),
    "A right is lost while a vote waits, or between reading and writing": (
        "tests/approvals/test_decision_races.py::test_a_right_that_is_taken_while_the_vote_waits_is_not_there_any_more",
        "tests/approvals/test_decision_races.py::test_a_right_that_is_taken_between_reading_and_writing_stops_the_vote",
        "tests/ui/test_decision_meetings.py::test_decided_by_another_is_told_with_who_and_the_text_is_kept",
    ),
    "Time is over and no sweep ran": (
        "tests/approvals/test_decisions.py::test_after_decide_by_nothing_is_decided_though_no_sweep_ran",
        "tests/approvals/test_asking.py::test_after_use_by_an_approval_is_worth_nothing_though_no_sweep_ran",
        "tests/ui/test_inbox.py::test_an_expired_request_leaves_the_list_before_any_sweep",
    ),
    "A vote waited for its lock past the time": (
        "tests/approvals/test_decision_races.py::test_a_vote_that_waited_for_the_lock_past_decide_by_is_refused",
        "tests/approvals/test_decision_races.py::test_a_vote_that_waited_for_a_sweep_is_told_that_it_expired",
    ),
    "Anything but the word approves": (
        "tests/ui/test_decision_forms.py::test_anything_but_the_literal_word_is_refused",
        "tests/approvals/test_decisions.py::test_only_the_literal_words_decide",
    ),
    "A call is made without asking": (
        "tests/services/test_effects.py::test_without_a_grant_there_is_no_permit",
        "tests/scenarios/test_waiting.py::test_a_proposal_that_nobody_was_asked_about_is_no_leave",
    ),
    "Denied, expired, withdrawn and a dead worker look alike to the agent": (
        "tests/scenarios/test_refund_story.py::test_what_became_of_an_approval_is_told_apart_and_none_of_it_is_leave",
        "tests/approvals/test_decisions.py::test_what_nobody_decided_expires_and_says_so",
    ),
    "One door has other rules than the next": (
        "tests/scenarios/test_entry_points.py::test_who_may_not_decide_may_not_at_any_door",
        "tests/scenarios/test_entry_points.py::test_what_does_not_count_counts_at_no_door",
        "tests/scenarios/test_entry_points.py::test_the_quorum_is_the_same_at_every_door_and_doors_may_be_mixed",
    ),
    "A key decides": ("tests/api/test_approvals.py::test_no_key_decides_whatever_it_may_do",),
    "The form says who may approve": (
        "tests/ui/test_decision_forms.py::test_approvers_state_and_risk_from_the_form_count_for_nothing",
    ),
    "An empty list of approvers means everybody": (
        "tests/approvals/test_quorum.py::test_an_empty_group_means_nobody",
        "tests/approvals/test_asking.py::test_too_few_people_who_could_decide_are_seen_and_never_approve",
    ),
    "A superuser or a global permission decides": (
        "tests/approvals/test_decisions.py::test_a_superuser_and_a_global_permission_decide_nothing",
        "tests/services/test_identity.py::test_list_and_act_agree_over_every_person_and_verb",
    ),
    "Rights are remembered from before": (
        "tests/approvals/test_decisions.py::test_rights_and_being_active_are_read_inside_the_deciding_transaction",
    ),
    "A group in use is deleted": (
        "tests/approvals/test_deleted_teams.py::test_the_group_of_a_team_is_deleted_neither_by_django_nor_by_sql",
        "tests/approvals/test_deleted_teams.py::test_a_team_that_is_gone_all_the_same_blocks_its_requests_and_says_so",
    ),
    "Opening a link decides, or spends it": (
        "tests/scenarios/test_entry_points.py::test_reading_any_address_changes_nothing_and_decides_nothing",
        "tests/ui/test_readers.py::test_a_link_can_be_opened_twice_and_still_decides",
        "tests/ui/test_readers.py::test_reading_a_link_decides_nothing_however_it_is_dressed",
    ),
    "No worker is up when somebody decides": (
        "tests/scenarios/test_refund_story.py::test_a_refund_waits_for_a_person_and_is_paid_once_by_newer_code",
        "tests/ui/test_approvals.py::test_decided_and_resumed_are_two_facts_and_a_slow_agent_is_named",
    ),
    # Pages
    "A stranger's page or part of one": (
        "tests/tenants/test_pages.py::test_no_page_of_another_tenant_is_there",
        "tests/tenants/test_pages.py::test_nothing_of_another_tenant_is_there_under_the_own_address",
    ),
    "A badge counts something else than its list": (
        "tests/ui/test_inbox.py::test_the_badge_is_the_list_for_every_member",
        "tests/ui/test_counts.py::test_every_badge_is_the_length_of_the_list_it_leads_to",
    ),
    "A list renders again under the pointer": (
        "tests/ui/test_inbox.py::test_nothing_newer_is_204_and_something_newer_is_a_bar_that_counts_it",
        "tests/browser/test_inbox.py::test_something_new_is_offered_by_a_bar_and_nothing_moves",
    ),
    "A decided card opens as if it were open": (
        "tests/ui/test_approvals.py::test_a_decided_card_opens_again_read_only_with_who_what_and_when",
    ),
    "Requests that are over can't be found any more": (
        "tests/ui/test_ended_requests.py::test_a_request_that_is_over_opens_is_found_and_is_exported",
    ),
    "Rows are skipped while others leave; ten thousand cost more than ten": (
        "tests/ui/test_inbox.py::test_pages_skip_nothing_and_repeat_nothing_while_rows_leave",
        "tests/benchmarks/test_crowded_inbox.py::test_ten_thousand_requests_cost_the_queries_of_ten_and_no_page_skips_or_repeats_one",
    ),
    "Everything is busy while one thing is asked for": (
        "tests/browser/test_busy.py::test_a_look_that_takes_long_leaves_the_decision_of_its_own_card_and_of_another_usable",
        "tests/browser/test_busy.py::test_a_decision_that_takes_long_is_sent_once_and_busies_its_own_form_alone",
    ),
    "A long value is cut off silently": (
        "tests/ui/test_approvals.py::test_a_long_value_says_how_long_it_is_and_stands_whole_below",
        "tests/approvals/test_renderers.py::test_without_a_renderer_the_card_says_that_it_is_not_known",
    ),
    "A token was rotated in another tab": (
        "tests/browser/test_inbox.py::test_a_lost_token_keeps_the_form_and_one_click_sends_it_again",
        "tests/ui/test_decision_forms.py::test_a_form_without_the_token_is_refused_with_a_banner_for_htmx_and_the_text_on_a_page",
        "tests/ui/test_look.py::test_the_script_that_sends_forms_reads_the_cookie_that_the_settings_name",
    ),
    "htmx drops an answer": (
        "tests/ui/test_look.py::test_the_htmx_configuration_parses_and_says_what_each_status_does",
    ),
    "A session is over: htmx is redirected, or a form looks saved": (
        "tests/ui/test_access.py::test_signed_out_htmx_is_never_redirected_by_the_server",
        "tests/ui/test_access.py::test_signed_out_a_form_is_not_saved_and_says_so_to_htmx",
    ),
    "Typed text is lost with a refusal": (
        "tests/browser/test_contract.py::test_every_refusal_keeps_text_and_focus_and_sends_nothing_again",
        "tests/browser/test_contract.py::test_a_refusal_of_somebody_whose_right_is_gone_keeps_the_text_too",
        "tests/browser/test_contract.py::test_trouble_of_the_server_or_the_network_keeps_text_and_focus_and_sends_nothing_again",
        "tests/browser/test_reconcile.py::test_typed_evidence_survives_a_reload",
    ),
    "A tab holds a stream open": ("tests/ui/test_look.py::test_no_page_holds_a_connection_open",),
    "A wake or a handoff that nobody can end": (
        "tests/engine/test_wakes.py::test_a_wake_that_never_finishes_goes_to_a_person",
        "tests/browser/test_reconcile.py::test_a_handoff_is_taken_reconciled_and_closed",
    ),
}
