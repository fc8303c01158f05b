"""How turns begin, what they keep in memory, and what a crash leaves of them."""

from tests.mutants import Fault

FAULTS = (
    Fault(
        "runs/one-model-for-all-steps",
        "agent/runner.py",
        "lambda: self.model)",
        "lambda: spec.model)",
        ("tests/bot/test_specs.py::test_the_model_may_change_between_steps",),
    ),
    Fault(
        "runs/one-model-for-all-sessions",
        "bot/runs/specs.py",
        "model=self.model_of(turn.session_key)",
        "model=self.model",
        ("tests/bot/test_specs.py::test_sessions_may_have_models_of_their_own",),
    ),
    Fault(
        "runs/buttons-shown-to-the-model",
        "channels/message.py",
        "{InboundKind.MESSAGE, InboundKind.API}",
        "{InboundKind.MESSAGE, InboundKind.API, InboundKind.BUTTON}",
        (
            "tests/bot/test_inbound.py::"
            "test_a_button_is_kept_and_neither_shown_to_a_model_nor_taken_for_a_command[Allow once]",
        ),
    ),
    Fault(
        "runs/sweep-removed",
        "bot/service.py",
        "                await self.parts.lanes.sweep()\n",
        "",
        ("tests/bot/test_sweep.py::test_a_message_that_nobody_was_told_of_is_answered",),
    ),
    Fault(
        "runs/contexts-without-bound",
        "bot/runs/contexts.py",
        "while self._tokens > self._max_tokens and self._cached:",
        "while False:",
        ("tests/bot/test_contexts.py::test_long_conversations_of_many_people_do_not_stay_in_memory",),
    ),
    Fault(
        "runs/contexts-not-counted",
        "bot/runs/contexts.py",
        "self._tokens += context.tokens",
        "self._tokens += 1",
        ("tests/bot/test_contexts.py::test_long_conversations_of_many_people_do_not_stay_in_memory",),
    ),
    Fault(
        "runs/contexts-not-kept",
        "bot/runs/contexts.py",
        "self._cached[transcript_id] = context",
        "return",
        ("tests/bot/test_contexts.py::test_long_conversations_of_many_people_do_not_stay_in_memory",),
    ),
    Fault(
        "runs/leftovers-not-ended",
        "agent/tools/leftovers.py",
        "def end_leftover(pid: int, pid_started: str) -> bool:\n",
        """\
def end_leftover(pid: int, pid_started: str) -> bool:
    return False


def never_called(pid: int, pid_started: str) -> bool:
""",
        ("tests/crash/test_leftovers.py::test_a_command_does_not_outlive_a_crash_and_the_next_start",),
    ),
    Fault(
        "runs/leftovers-not-remembered",
        "agent/tools/exec.py",
        'await context.started(process.pid, started or "")',
        "pass",
        ("tests/crash/test_leftovers.py::test_a_command_does_not_outlive_a_crash_and_the_next_start",),
    ),
    Fault(
        "runs/background-takes-all-places",
        "bot/runs/lanes.py",
        "max(1, places // 2)",
        "places",
        ("tests/bot/test_lanes.py::test_the_background_has_half_of_the_places",),
    ),
    Fault(
        "runs/drain-starts-more",
        "bot/runs/lanes.py",
        "        self._open = False\n        if self._refilling",
        "        if self._refilling",
        ("tests/bot/test_lanes.py::test_a_drain_lets_runs_finish_and_cuts_the_rest",),
    ),
    Fault(
        "runs/crashed-turns-not-repaired",
        "bot/service.py",
        "await self._once_possible(self._recover)",
        "pass",
        ("tests/bot/test_crashed.py::test_a_turn_of_a_person_goes_on_after_a_crash",),
    ),
    Fault(
        "runs/beats-repeated",
        "bot/store/recovery.py",
        'if kind == "beat":',
        "if False:",
        ("tests/bot/test_crashed.py::test_a_beat_is_not_repeated_after_a_crash",),
    ),
    Fault(
        "runs/steering-lost-with-a-failed-run",
        "bot/store/repair.py",
        "    close_calls(db, turn_id, transcript_id, now, asked=True)\n    release_messages(db, turn_id)",
        "    close_calls(db, turn_id, transcript_id, now, asked=True)",
        ("tests/bot/test_crashed.py::test_what_steered_a_run_that_failed_before_reading_it_is_answered",),
    ),
    Fault(
        "runs/stale-context-used",
        "bot/runs/contexts.py",
        "turn.entries[0].seq == context.end + 1",
        "True",
        ("tests/agent/test_runner.py::test_an_answer_that_breaks_twice_after_text_ends_in_one_sentence",),
    ),
    Fault(
        "runs/calls-not-marked-before-they-run",
        "agent/tool_batch.py",
        "            await journal.start_calls([_start(spec, step, call) for call in ready])\n",
        "            pass\n",
        ("tests/agent/test_loop.py::test_a_call_is_stored_as_running_before_it_runs_and_never_both",),
    ),
    Fault(
        "runs/call-ids-doubled",
        "agent/loop.py",
        "if part.call_id in seen or not part.call_id:",
        "if not part.call_id:",
        ("tests/agent/test_loop.py::test_call_ids_are_unique_whatever_the_model_writes",),
    ),
    Fault(
        "runs/context-moves-a-little-each-time",
        "agent/context.py",
        "_KEEP = 0.6",
        "_KEEP = 0.9",
        ("tests/agent/test_context.py::test_a_beginning_that_moves_moves_far_enough_to_stay_a_while",),
    ),
    Fault(
        "runs/attempts-not-summed",
        "bot/store/rows.py",
        'STOP_CLOCK = "ran = ran + max',
        'STOP_CLOCK = "ran = max',
        ("tests/bot/store/test_running_time.py::test_attempts_are_summed_and_pauses_do_not_count",),
    ),
    Fault(
        "runs/a-crash-counts-as-running",
        "bot/store/recovery.py",
        "(_last_sign(db, turn_id), turn_id))",
        "(int(2e12), turn_id))",
        ("tests/bot/store/test_running_time.py::test_an_attempt_that_crashed_ran_until_its_last_sign",),
    ),
    Fault(
        "runs/waiting-for-the-store-counts-as-running",
        "bot/runs/runner.py",
        "self._release(turn, since)",
        "self._release(turn)",
        ("tests/bot/test_lanes.py::test_waiting_for_the_store_is_no_running_time",),
    ),
    Fault(
        "runs/each-attempt-has-all-the-time",
        "agent/runner.py",
        "self._spec.limits.timeout - self._spec.ran",
        "self._spec.limits.timeout",
        ("tests/agent/test_runner.py::test_the_time_of_a_run_is_that_of_all_its_attempts",),
    ),
    Fault(
        "runs/the-sweep-starts-nothing",
        "bot/runs/lanes.py",
        """\
            await self._refill()
            self._pump()
""",
        "            await self._refill()\n",
        ("tests/bot/test_lanes.py::test_the_sweep_starts_what_a_lost_signal_left",),
    ),
    Fault(
        "runs/the-background-is-woken-as-people",
        "bot/inbound/pipeline.py",
        "background=item.message.kind in BACKGROUND",
        "background=False",
        ("tests/bot/test_lanes.py::test_what_nobody_wrote_runs_as_soon_as_it_is_accepted[wake]",),
    ),
    Fault(
        "runs/edits-always-too-late",
        "bot/store/inbox.py",
        "item = _edited(db, item, conv_id)",
        'item = replace(item, state="dropped", reason="edited too late")',
        (
            "tests/bot/test_inbound.py::test_an_edit_replaces_the_words_of_a_message_that_waits",
            "tests/crash/test_explorer.py::test_nothing_happens[edit]",
        ),
    ),
)
