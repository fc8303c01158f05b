"""Commits: what is on disk, in which one, and what a run that lost its turn may still write."""

from tests.mutants import Fault, code, fault, text

_PARKING = "tests/bot/approvals/test_parking.py::test_"
_MOVED = "tests/bot/inbound/test_moved.py::test_"
_HISTORY = "tests/bot/persistence/test_history.py::test_"
_LEFTOVERS = "tests/bot/runs/test_crashed.py::test_"
_BALANCE = "tests/bot/store/test_balance.py::test_"
_DATABASE = "tests/bot/store/test_database.py::test_"

FAULTS: tuple[Fault, ...] = (
    fault(
        "store/synchronous-off",
        "_PREPARE",
        text("synchronous=FULL;", "synchronous=OFF;"),
        f"{_DATABASE}a_commit_waits_for_the_disk",
    ),
    fault(
        "store/what-is-refused-is-forgotten",
        "Refused.learn",
        code("await self._keep(self._model, parts)"),
        "tests/wire/test_refused_parts.py::test_a_part_that_is_refused_is_left_out_and_never_sent_again",
    ),
    fault(
        "store/commit-per-unit",
        "Writer._run",
        code("if A:\n    await self._commit(A)", "for unit in A:\n    await self._commit([unit])"),
        f"{_DATABASE}writes_that_wait_share_a_commit",
    ),
    fault(
        "store/unit-not-undone",
        "Writer._run_batch",
        code("A.execute('ROLLBACK' if B else 'ROLLBACK TO unit')", "A.execute('ROLLBACK') if B else None"),
        f"{_DATABASE}one_of_several_writes_that_fails_undoes_itself_alone[1]",
    ),
    fault(
        "store/first-unit-not-undone",
        "Writer._run_batch",
        code("A.execute('ROLLBACK' if B else 'ROLLBACK TO unit')", "None if B else A.execute('ROLLBACK TO unit')"),
        f"{_DATABASE}one_of_several_writes_that_fails_undoes_itself_alone[0]",
        f"{_DATABASE}a_write_that_fails_alone_is_undone",
    ),
    fault(
        "store/epoch-not-compared",
        "check_epoch",
        text("epoch=?", "epoch>=?"),
        "tests/bot/store/test_epochs.py::test_a_stale_run_is_refused_and_changes_nothing",
    ),
    fault(
        "store/state-not-compared",
        "check_epoch",
        code("\"state='running'\"", "'1'"),
        "tests/bot/store/test_epochs.py::test_a_run_that_has_ended_is_refused_and_changes_nothing",
    ),
    fault(
        "store/mark-not-stored",
        "Inbox.accept",
        code("if A:\n    rows.set_value(B, ...)", "if A and not batch:\n    rows.set_value(B, ...)"),
        "tests/bot/store/test_keeping.py::test_an_event_is_stored_once_and_its_mark_with_it",
    ),
    fault(
        "store/predicate-unlike-its-index",
        "OPEN_TURN",
        text("('queued','running','parked')", "('queued','parked','running')"),
        "tests/bot/store/test_plans.py::test_a_predicate_is_that_of_an_index",
    ),
    fault(
        "store/recovery-takes-what-a-living-worker-has",
        "_LEASE_GONE",
        text("worker IS NOT ?", "? IS NOT NULL"),
        "tests/bot/persistence/test_turns.py::test_only_turns_whose_lease_is_gone_are_taken",
    ),
    fault(
        "store/a-claim-names-no-worker",
        "Claims._take",
        text("worker=?3,", "worker=?3 || '?',"),
        "tests/bot/persistence/test_turns.py::test_only_turns_whose_lease_is_gone_are_taken",
    ),
    fault(
        "events/published-before-the-commit",
        "Writer._run_batch",
        code(
            "kept = rows.persisted_after(connection, self._published)",
            "self._subscriber((kept := rows.persisted_after(connection, self._published)))",
        ),
        "tests/bot/store/test_keeping.py::test_events_are_published_before_their_writer_is_answered",
    ),
    fault(
        "runs/calls-not-marked-before-they-run",
        "_run_group",
        code("await B.start_calls(A, follows=C)", "Begun.YES"),
        "tests/agent/test_loop.py::test_a_call_is_stored_as_running_before_it_runs_and_never_both",
    ),
    fault(
        "runs/the-first-message-is-trusted-for-all",
        "Toolbox.open",
        code("all(map(is_trusted, A.messages))", "is_trusted(A.messages[0])"),
        "tests/bot/runs/test_specs.py::test_a_turn_has_the_tools_of_whom_it_trusts_least",
    ),
    fault(
        "runs/one-owner-among-those-who-asked",
        "RunJournal.__init__",
        code("all", "any"),
        "tests/bot/runs/test_specs.py::test_a_failure_is_explained_if_only_owners_asked",
    ),
    fault(
        "runs/steering-goes-past-commands",
        "Inbox.steer",
        text("conv_id=? AND ({rows.COMMANDS_BEFORE}) = 0", "conv_id=?"),
        "tests/bot/store/test_steering.py::test_nothing_steers_from_elsewhere",
    ),
    fault(
        "runs/steering-comes-from-any-place",
        "Inbox.steer",
        text("conv_id=?", "conv_id<>-?"),
        "tests/bot/store/test_steering.py::test_nothing_steers_from_elsewhere",
    ),
    fault(
        "runs/a-write-is-cut-by-a-cancellation",
        "run_to_completion",
        code("cancelled = error", "raise"),
        "tests/bot/test_outbox_close.py::test_it_ends_before_a_cancellation_is_told",
    ),
    fault(
        "queueing/collected-past-others",
        "_together",
        code("list(takewhile(lambda row: C[4] == B, A))", "[C for C in A if C[4] == B]"),
        "tests/bot/store/test_queueing.py::test_what_waits_by_itself_is_not_passed",
    ),
    fault(
        "queueing/what-was-allowed-is-skipped",
        "_STEERED",
        text(
            "state='steering' AND accepted_at > (SELECT coalesce(max(decided_at), 0) FROM approval WHERE turn_id=?1))",
            "state='steering')",
        ),
        "tests/bot/inbound/test_queueing.py::test_what_steers_a_run_that_asks_waits_for_the_decision",
    ),
    fault(
        "catch-up/held-keeps-its-place",
        "History.release",
        code("(A, B)", "(B, B)"),
        f"{_HISTORY}what_waits_behind_a_history_is_released_in_the_order_of_the_platform",
    ),
    fault(
        "catch-up/a-turn-for-each-that-was-missed",
        "_GATHERING",
        text("iif(ready_at < 0, 'missed', sender || ' ' || ready_at),", "sender || ' ' || ready_at,"),
        "tests/bot/inbound/test_catch_up.py::test_what_several_people_said_in_a_group_meanwhile_is_one_turn",
    ),
    fault(
        "catch-up/who-is-shut-out-takes-it-along",
        "_HELD",
        code("f\"{HELD} AND reason='{Cause.PAIRING}'\"", "HELD"),
        f"{_HISTORY}who_is_shut_out_takes_nothing_along_that_waits_behind_a_history",
    ),
    fault(
        "catch-up/cursor-goes-back",
        "move_cursor",
        text("(length(cursor), cursor) < (length(?1), ?1))", "true)"),
        f"{_HISTORY}a_cursor_never_goes_back_and_is_there_after_a_restart",
    ),
    fault(
        "catch-up/cursor-without-its-page",
        "CatchUp._read",
        code("[Heard(C.place, A), *B]", "B"),
        "tests/bot/inbound/test_catch_up.py::test_what_was_missed_is_answered_once_oldest_first_and_in_one_turn",
    ),
    fault(
        "catch-up/overheard-leaves-its-fence",
        "_heard",
        code("harmless(A)", "A"),
        "tests/bot/test_compose.py::test_what_was_overheard_is_fenced_and_cannot_leave_its_line",
    ),
    fault(
        "parking/decided-twice",
        "decide",
        text("approval.state='open' AND (expires_at", "(expires_at"),
        f"{_PARKING}of_two_decisions_at_once_one_wins",
    ),
    fault(
        "parking/decided-too-late",
        "decide",
        text("(expires_at > ?", "(?+1"),
        f"{_PARKING}nobody_decides_in_time",
    ),
    fault(
        "parking/decision-not-used-up",
        "Turns.start_calls",
        text("used_at=iif(state='waiting',", "used_at=iif(state='nothing',"),
        f"{_PARKING}a_call_that_is_allowed_runs_once",
        "tests/crash/test_explorer.py::test_every_commit[typed]",
    ),
    fault(
        "parking/started-twice",
        "Turns.start_calls",
        text("state IN ('asked','waiting')", "state='asked'"),
        "tests/crash/test_explorer.py::test_every_commit[typed]",
    ),
    fault(
        "parking/clock-runs-on",
        "Approvals.park",
        text("{rows.STOP_CLOCK}", "started_at=coalesce(started_at, ?)"),
        f"{_PARKING}only_running_time_counts",
    ),
    fault(
        "budgets/two-presses-allow-twice",
        "BudgetWaits.allow_more",
        text("{_OVER} AND turn_id=?", "turn_id=?"),
        "tests/bot/runs/test_budget_waits.py::test_whoever_allows_it_a_moment_later_allows_nothing",
    ),
    fault(
        "budgets/others-may-allow-more",
        "build",
        code("Command(..., name='budget')", "Command(..., name='budget', guests='direct')"),
        "tests/bot/runs/test_budget_waits.py::test_who_is_no_owner_cannot_allow_more",
    ),
    fault(
        "compaction/a-run-takes-the-summary-back",
        "Turns.step",
        text(
            "context_start=max(context_start, ?1), pruned_below=max(pruned_below, ?2) WHERE transcript_id=?3"
            " AND (context_start < ?1 OR pruned_below < ?2)",
            "context_start=?1, pruned_below=?2 WHERE transcript_id=?3",
        ),
        "tests/bot/runs/test_compaction.py::test_a_summary_made_during_a_run_stands_after_it",
    ),
    fault(
        "balance/pruned-messages-not-counted",
        "prune",
        code("balance.carry(A, B)", "note_gone(A, 'inbox', B)"),
        f"{_BALANCE}what_was_pruned_stays_counted_and_what_was_not_explained_stays_named",
    ),
    fault(
        "balance/what-was-begun-is-never-sent",
        "Keeping.lasts",
        code("run_to_completion(self._tell())", "self._tell()"),
        "tests/bot/runs/test_compaction.py::test_a_run_that_is_stopped_meanwhile_has_sent_what_it_began_to_send",
    ),
    fault(
        "balance/a-refused-answer-counts-as-answered",
        "_BECAME",
        text("THEN 'told' WHEN said", "THEN 'answered' WHEN said"),
        f"{_BALANCE}each_message_is_answered_told_or_pending",
    ),
    fault(
        "calls/a-chat-that-moves-leaves-them-behind",
        "move_chat",
        text("{OPEN_DELIVERY}", "{OPEN_DELIVERY} AND state<>'sending'"),
        f"{_MOVED}a_call_that_came_to_nothing_is_gone_on_with_where_the_chat_is_now",
    ),
    fault(
        "calls/made-for-ever-where-the-chat-was",
        "_settle",
        text(
            "conv_id=(SELECT coalesce(moved_to, conv_id) FROM conversation WHERE conv_id=delivery.conv_id)",
            "conv_id=conv_id",
        ),
        f"{_MOVED}a_preview_that_comes_to_nothing_is_taken_away_where_the_chat_is_now",
    ),
    fault(
        "exec/leftovers-of-stopped-turns-forgotten",
        "Recovery.leftovers",
        text("AND", "AND tool_call.state='running' AND"),
        f"{_LEFTOVERS}what_a_crash_left_is_ended_at_the_next_start[stopped, not cancelled yet]",
    ),
    fault(
        "exec/other-sessions-seen",
        "Background.of",
        code("[A for A in self._known.values() if A.session_key == B]", "list(self._known.values())"),
        "tests/agent/tools/test_background.py::test_sessions_do_not_see_each_others",
    ),
    fault(
        "exec/runs-before-there-is-room",
        "Background.start",
        code("self._admit(A)\nA.process.open_gate()", "A.process.open_gate()\nself._admit(A)"),
        "tests/agent/tools/test_background.py::test_there_are_only_so_many",
    ),
)
