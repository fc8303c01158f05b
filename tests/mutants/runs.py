"""How turns begin, what they keep in memory, and what a crash leaves of them."""

from tests.mutants import Fault

_SEVERAL = "tests/bot/store/test_steering.py"
_AT_ONCE = "tests/bot/runs/test_crashed.py"

FAULTS = (
    Fault(
        "runs/one-break-more-and-no-further",
        "Runner._can",
        "return again or (goes_on and await self._journal.keep())",
        "return again",
        (
            "tests/agent/test_runner.py"
            "::test_an_answer_that_breaks_again_and_again_goes_on_while_it_gets_further[cuts0-block]",
        ),
    ),
    Fault(
        "runs/streamed-and-lost",
        "RunJournal.keep",
        "if blocks := self._replies.cut():",
        "if blocks := ():",
        ("tests/agent/test_runner.py::test_an_answer_that_gets_no_further_goes_on_after_a_pause[cuts1-560]",),
    ),
    Fault(
        "runs/breaks-without-end",
        "Runner._can",
        "self._loop.step < self._spec.limits.max_steps",
        "True",
        ("tests/agent/test_runner.py::test_an_answer_that_always_breaks_has_an_end",),
    ),
    Fault(
        "runs/timer-before-the-lanes-thrown-away",
        "Lanes.wake_later",
        "if not self._draining and key",
        "if self._open and key",
        (
            "tests/bot/inbound/test_debounce.py"
            "::test_it_is_answered_as_soon_as_it_is_ready_and_the_model_can_be_asked[0.0]",
        ),
    ),
    Fault(
        "runs/the-start-names-another-model",
        "Specs.answered_by",
        "AnsweredBy(found.model, found.thinking)",
        "AnsweredBy(self.answerer.model, found.thinking)",
        ("tests/bot/runs/test_model_commands.py::test_a_session_chooses_its_model",),
    ),
    Fault(
        "runs/one-model-for-all-sessions",
        "Specs.of",
        "Route(self.fleet, answerer.model,",
        "Route(self.fleet, self.answerer.model,",
        ("tests/bot/runs/test_model_commands.py::test_a_session_chooses_its_model",),
    ),
    Fault(
        "runs/sweep-removed",
        "Service._sweep",
        "                await self.parts.lanes.sweep()\n",
        "",
        ("tests/bot/runs/test_crashed.py::test_a_message_that_nobody_was_told_of_is_answered",),
    ),
    Fault(
        "runs/contexts-without-bound",
        "Contexts.give_back",
        "while self._tokens > MAX_TOKENS and self._cached:",
        "while False:",
        ("tests/bot/runs/test_compaction.py::test_long_conversations_of_many_people_do_not_stay_in_memory",),
    ),
    Fault(
        "runs/contexts-not-counted",
        "Contexts.give_back",
        "self._tokens += context.tokens",
        "self._tokens += 1",
        ("tests/bot/runs/test_compaction.py::test_long_conversations_of_many_people_do_not_stay_in_memory",),
    ),
    Fault(
        "runs/contexts-not-kept",
        "Contexts.give_back",
        "self._cached[transcript_id] = context",
        "return",
        ("tests/bot/runs/test_compaction.py::test_long_conversations_of_many_people_do_not_stay_in_memory",),
    ),
    Fault(
        "runs/leftovers-not-ended",
        "end_leftover",
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
        "ExecTool._to_its_end",
        'await context.started(process.pid, started or "")',
        "pass",
        ("tests/crash/test_leftovers.py::test_a_command_does_not_outlive_a_crash_and_the_next_start",),
    ),
    Fault(
        "runs/background-takes-all-places",
        "Lanes.allow",
        "max(1, places // 2)",
        "places",
        ("tests/bot/runs/test_lanes.py::test_the_background_has_half_of_the_places",),
    ),
    Fault(
        "runs/drain-starts-more",
        "Lanes.drain",
        "        self._open, self._draining = False, True\n        if self._refilling",
        "        if self._refilling",
        ("tests/bot/runs/test_lanes.py::test_a_drain_lets_runs_finish_and_cuts_the_rest",),
    ),
    Fault(
        "runs/crashed-turns-not-repaired",
        "Service.start",
        "await self._once_possible(self._recover)",
        "pass",
        ("tests/bot/runs/test_crashed.py::test_a_turn_of_a_person_goes_on_after_a_crash",),
    ),
    Fault(
        "runs/beats-repeated",
        "Recovery.recover",
        'if kind == "beat":',
        "if False:",
        ("tests/bot/runs/test_crashed.py::test_a_beat_is_not_repeated_after_a_crash",),
    ),
    Fault(
        "runs/steering-lost-with-a-failed-run",
        "close_run",
        "    approvals.give_up(db, turn_id, now)\n    release_messages(db, turn_id)",
        "    approvals.give_up(db, turn_id, now)",
        ("tests/bot/runs/test_crashed.py::test_what_steered_a_run_that_failed_before_reading_it_is_answered",),
    ),
    Fault(
        "runs/stale-context-used",
        "Contexts.take",
        "turn.entries[0].seq == context.end + 1",
        "True",
        ("tests/agent/test_runner.py::test_what_was_streamed_stays_whatever_ended_the_answer",),
    ),
    Fault(
        "runs/calls-not-marked-before-they-run",
        "_run_group",
        "        begun = await journal.start_calls(starts)\n",
        "        begun = Begun.YES\n",
        ("tests/agent/test_loop.py::test_a_call_is_stored_as_running_before_it_runs_and_never_both",),
    ),
    Fault(
        "runs/call-ids-doubled",
        "Loop._checked",
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
        ("tests/bot/store/test_epochs.py::test_attempts_are_summed_and_pauses_do_not_count",),
    ),
    Fault(
        "runs/a-crash-counts-as-running",
        "Recovery.recover",
        "(_last_sign(db, turn_id), turn_id))",
        "(int(2e12), turn_id))",
        ("tests/bot/store/test_epochs.py::test_an_attempt_that_crashed_ran_until_its_last_sign",),
    ),
    Fault(
        "runs/waiting-for-the-store-counts-as-running",
        "TurnRunner._wait_for_store",
        "self.put_back(turn, since)",
        "self.put_back(turn)",
        ("tests/bot/runs/test_lanes.py::test_waiting_for_the_store_is_no_running_time",),
    ),
    Fault(
        "runs/each-attempt-has-all-the-time",
        "Runner.run",
        "self._spec.limits.timeout - self._spec.progress.ran",
        "self._spec.limits.timeout",
        ("tests/agent/test_runner.py::test_the_time_of_a_run_is_that_of_all_its_attempts",),
    ),
    Fault(
        "runs/the-sweep-starts-nothing",
        "Lanes.sweep",
        """\
            await self._refill()
            self._pump()
""",
        "            await self._refill()\n",
        ("tests/bot/runs/test_lanes.py::test_the_sweep_starts_what_a_lost_signal_left",),
    ),
    Fault(
        "runs/the-background-is-woken-as-people",
        "Pipeline.begin",
        "background=message.kind in BACKGROUND",
        "background=False",
        ("tests/bot/runs/test_lanes.py::test_what_nobody_wrote_runs_as_soon_as_it_is_accepted[wake]",),
    ),
    Fault(
        "runs/messages-of-several-places-taken-together",
        "_together",
        "takewhile(lambda row: list(row[5:]) == where, found[1:])",
        "takewhile(bool, found[1:])",
        (
            f"{_SEVERAL}::test_what_came_from_another_place_is_another_turn",
            f"{_SEVERAL}::test_what_can_be_asked_for_by_itself_is_a_turn_of_its_own",
            f"{_SEVERAL}::test_a_stop_ends_only_what_was_written_before_it",
        ),
    ),
    Fault(
        "runs/one-damaged-message-ends-the-turn",
        "_readable",
        "if not taken and turn_id is not None:",
        "if len(taken) < len(read) and turn_id is not None:",
        (f"{_SEVERAL}::test_one_damaged_message_costs_only_itself",),
    ),
    Fault(
        "runs/tools-are-offered-as-the-first-message-is-trusted",
        "Permissions._decided",
        "trusted = all(map(is_trusted, turn.messages))",
        "trusted = is_trusted(turn.messages[0])",
        ("tests/bot/runs/test_specs.py::test_a_turn_has_the_tools_of_whom_it_trusts_least",),
    ),
    Fault(
        "runs/the-first-message-is-trusted-for-all",
        "Toolbox.open",
        "all(map(is_trusted, turn.messages))",
        "is_trusted(turn.messages[0])",
        ("tests/bot/runs/test_specs.py::test_a_turn_has_the_tools_of_whom_it_trusts_least",),
    ),
    Fault(
        "runs/one-owner-among-those-who-asked",
        "RunJournal.__init__",
        "all(map(dependencies.is_owner, turn.messages))",
        "any(map(dependencies.is_owner, turn.messages))",
        ("tests/bot/runs/test_specs.py::test_a_failure_is_explained_if_only_owners_asked",),
    ),
    Fault(
        "runs/steering-goes-past-commands",
        "Inbox.steer",
        "AND conv_id=? AND ({rows.COMMANDS_BEFORE}) = 0",
        "AND conv_id=?",
        ("tests/bot/store/test_steering.py::test_nothing_steers_from_elsewhere",),
    ),
    Fault(
        "runs/steering-comes-from-any-place",
        "Inbox.steer",
        "AND session_key=? AND conv_id=?",
        "AND session_key=? AND conv_id<>-?",
        ("tests/bot/store/test_steering.py::test_nothing_steers_from_elsewhere",),
    ),
    Fault(
        "runs/a-stop-does-not-count-what-steered",
        "_stop_one",
        "sum(steering for _, steering in begun)",
        "0",
        ("tests/bot/runs/test_later.py::test_a_stop_drops_what_steered_and_counts_it",),
    ),
    Fault(
        "runs/what-steers-is-not-edited",
        "bot/store/edits.py",
        '("waiting", "steering", "held")',
        '("waiting", "held")',
        ("tests/bot/store/test_steering.py::test_what_steers_can_be_edited_and_follows_its_chat",),
    ),
    Fault(
        "runs/later-is-now",
        "Claims.claim",
        "ready = max(now, until)",
        "ready = max(now, until) + 10**9",
        ("tests/bot/runs/test_later.py::test_it_is_answered_when_it_is_ready_and_holds_up_nobody",),
    ),
    Fault(
        "runs/later-by-a-clock-that-is-set-back",
        "Claims.claim",
        "ready = max(now, until)",
        "ready = now",
        ("tests/bot/runs/test_later.py::test_a_clock_that_is_set_back_makes_nobody_wait_longer",),
    ),
    Fault(
        "runs/later-is-when-the-sweep-comes",
        "Lanes._wake_after",
        "self._line_up(session_key, background, ready_at)",
        "pass",
        ("tests/bot/runs/test_later.py::test_each_of_several_has_its_own_moment",),
    ),
    Fault(
        "runs/later-is-forgotten-by-a-restart",
        "Service._recover",
        "        await store.recovery.ready()\n",
        "",
        ("tests/bot/runs/test_later.py::test_a_restart_ends_the_wait",),
    ),
    Fault(
        "runs/a-claim-has-a-commit-of-its-own",
        "Lanes.wake_early",
        "        self.wake(session_key)\n        return True\n",
        "        return False\n",
        (f"{_AT_ONCE}::test_a_question_and_its_answer_wait_for_the_disk_twice",),
    ),
    Fault(
        "runs/a-claim-misses-the-commit-of-the-acceptance",
        "Writer._run",
        "            await asyncio.sleep(0)  # others",
        "            # others",
        (f"{_AT_ONCE}::test_a_question_and_its_answer_wait_for_the_disk_twice",),
    ),
    Fault(
        "runs/a-message-is-claimed-before-the-command-it-follows",
        "Pipeline._store_and_tell",
        "if self._commands_coming or not",
        "if not",
        (f"{_AT_ONCE}::test_what_a_command_decides_is_true_for_the_message_behind_it",),
    ),
    Fault(
        "runs/the-background-is-forgotten-beside-a-person",
        "Pipeline._tell",
        "elif message.kind in BACKGROUND | CARRIED_OUT or item.session_key not in woken:",
        "elif item.session_key not in woken:",
        (f"{_AT_ONCE}::test_all_of_a_batch_is_answered",),
    ),
    Fault(
        "runs/edits-always-too-late",
        "change",
        "if edited and state in _UNSEEN:",
        "if False:",
        (
            "tests/bot/inbound/test_inbound.py::test_an_edit_replaces_the_words_of_a_message_that_waits",
            "tests/crash/test_explorer.py::test_nothing_happens[edit]",
        ),
    ),
    Fault(
        "runs/a-write-is-cut-by-a-cancellation",
        "run_to_completion",
        "            cancelled = error\n",
        "            raise\n",
        ("tests/bot/test_outbox_close.py::test_it_ends_before_a_cancellation_is_told",),
    ),
)
