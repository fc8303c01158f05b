"""The terminal, the command line and the set-up."""

from tests.mutants import Fault

_COMMANDS = "tests/bot/cli/test_commands.py::test_"
_CONSOLE = "tests/bot/gateway/test_console.py::test_"
_TERMINAL = "tests/bot/cli/test_terminal.py::test_"

FAULTS = (
    Fault(
        "terminal/a-full-disk-costs-the-message",
        "_History.store_string",
        "        except OSError as error:\n            if self._tell:",
        "        except ZeroDivisionError as error:\n            if self._tell:",
        (f"{_TERMINAL}a_full_disk_costs_the_history_and_not_the_message",),
    ),
    Fault(
        "terminal/every-failed-log-line-is-told",
        "_Calm.handleError",
        "if not self._failed and sys.stderr is not None:",
        "if sys.stderr is not None:",
        ("tests/bot/telemetry/test_logs.py::test_a_full_disk_is_one_line_and_no_traceback",),
    ),
    Fault(
        "terminal/listed-when-not-enabled",
        "Health.view",
        " if one.section.enabled or not one.section.local]",
        "]",
        ("tests/bot/gateway/test_health.py::test_a_console_that_is_not_enabled_is_not_listed",),
    ),
    Fault(
        "terminal/ctrl-c-on-a-text-ends-the-run",
        "Prompt._keys.interrupt",
        """\
            if event.current_buffer.text:
                event.current_buffer.reset()
            elif""",
        "            event.current_buffer.reset()\n            if",
        (f"{_TERMINAL}ctrl_c_on_a_line_with_text_only_clears_it_also_during_a_run",),
    ),
    Fault(
        "terminal/a-first-ctrl-c-leaves",
        "Prompt._keys.interrupt",
        "            elif self._is_armed:\n",
        "            elif True:\n",
        (f"{_TERMINAL}a_first_ctrl_c_is_forgotten_by_typing_and_by_time",),
    ),
    Fault(
        "terminal/esc-leaves",
        "Prompt._keys",
        "lambda event: self._on_stop()",
        "lambda event: event.app.exit(exception=KeyboardInterrupt())",
        (f"{_TERMINAL}esc_ends_the_run_and_keeps_what_was_typed",),
    ),
    Fault(
        "terminal/what-is-live-goes-with-the-terminal",
        "Terminal.run",
        "                self._print(self._view.leave())\n",
        "                pass\n",
        (f"{_TERMINAL}what_was_shown_live_stays_when_the_terminal_is_told_to_end",),
    ),
    Fault(
        "terminal/a-stop-is-said-of-every-run",
        "View._ended_run",
        "if event.outcome is events.Outcome.ABORTED and self.aborting == event.run.run_id:",
        "if event.outcome is events.Outcome.ABORTED:",
        ("tests/bot/cli/test_view.py::test_a_stop_that_a_command_has_made_is_told_by_its_reply",),
    ),
    Fault(
        "terminal/calls-not-named-by-their-path",
        "subject",
        '(values.get("path"), *values.values())',
        "values.values()",
        ("tests/bot/cli/test_view.py::test_a_tool_call_is_one_line",),
    ),
    Fault(
        "terminal/closed-before-the-service",
        "_run",
        """\
        stopped.cancel()
        await service.close()
        if terminal is not None:
            terminal.cancel()
""",
        """\
        stopped.cancel()
        if terminal is not None:
            terminal.cancel()
        await service.close()
        if terminal is not None:
""",
        ("tests/bot/cli/test_run.py::test_a_signal_lets_an_answer_finish_before_your_eyes",),
    ),
    Fault(
        "terminal/a-second-signal-leaves-it-raw",
        "_run.on_signal",
        "termios.tcsetattr(sys.stdin, termios.TCSANOW, screen)",
        "pass",
        ("tests/bot/cli/test_run.py::test_a_second_signal_leaves_at_once_and_the_terminal_usable",),
    ),
    Fault(
        "terminal/opens-without-the-last-exchange",
        "EventRoutes.console",
        "return answer(ConsoleView(position=position, last=last))",
        "return answer(ConsoleView(position=position, last=None))",
        (f"{_CONSOLE}the_last_exchange_is_what_was_shown_of_it",),
    ),
    Fault(
        "terminal/questions-of-others-not-shown",
        "Claims._take",
        "_typed(messages) if epoch == 1 and session_key == console_key()",
        "_typed(messages) if False",
        (f"{_TERMINAL}a_second_terminal_sees_questions_and_answers",),
    ),
    Fault(
        "terminal/question-shown-again-behind-a-pause",
        "Claims._take",
        "_typed(messages) if epoch == 1 and session_key == console_key()",
        "_typed(messages) if session_key == console_key()",
        ("tests/bot/gateway/test_approvals.py::test_a_terminal_is_shown_the_question_once",),
    ),
    Fault(
        "terminal/own-questions-shown-twice",
        "Conversation.say",
        "            self._typed.append(text)  # shown by who says it\n",
        "",
        (f"{_TERMINAL}a_second_terminal_sees_questions_and_answers",),
    ),
    Fault(
        "terminal/questions-of-everybody-are-kept-twice",
        "Claims._take",
        "_typed(messages) if epoch == 1 and session_key == console_key()",
        "_typed(messages) if epoch == 1",
        (f"{_CONSOLE}over_the_port_there_is_no_terminal",),
    ),
    Fault(
        "terminal/what-the-service-says-is-not-read",
        "plan",
        "if place.kind is ChatKind.CONSOLE:",
        "if False:",
        (f"{_CONSOLE}a_failed_run_is_told_before_its_end",),
    ),
    Fault(
        "terminal/blocks-wait-for-a-channel",
        "plan",
        "if place.kind in (ChatKind.API, ChatKind.CONSOLE)",
        "if place.kind in (ChatKind.API,)",
        (f"{_CONSOLE}a_terminal_reads_questions_answers_and_what_the_service_says",),
    ),
    Fault(
        "terminal/what-waited-before-is-not-read",
        "bot/store/migrations/0006_terminals_read_events.sql",
        "AND delivery.state = 'planned'",
        "AND delivery.state = 'sending'",
        ("tests/bot/store/test_migrate.py::test_what_waited_for_a_terminal_is_read_once_by_the_next",),
    ),
    Fault(
        "terminal/what-was-shown-is-not-noted",
        "Conversation._printed",
        "            self._shown.note(self._position)\n",
        "            pass\n",
        ("tests/bot/cli/test_plain.py::test_what_was_said_before_comes_first",),
    ),
    Fault(
        "terminal/a-slow-terminal-sets-the-others-back",
        "ShownPosition.note",
        "not anew and position <= self.read()",
        "False",
        ("tests/bot/cli/test_shown.py::test_what_others_have_shown_stays",),
    ),
    Fault(
        "terminal/text-behind-a-gap-is-shown",
        "View._grow",
        'if event.part == "text" and event.offset == len(answer.text):',
        'if event.part == "text":',
        ("tests/bot/cli/test_view.py::test_what_comes_behind_a_gap_waits_for_the_end",),
    ),
    Fault(
        "terminal/what-does-not-count-is-printed-as-said",
        "View._answer_ended",
        "self._answer.text = self._answer.text[len(event.text) :]",
        "pass",
        ("tests/bot/cli/test_view.py::test_a_cut_answer_says_only_what_counts",),
    ),
    Fault(
        "terminal/an-unknown-command-is-said-to-the-model",
        "nearest",
        'return f"/{near}" if near else None',
        "return None",
        ("tests/bot/cli/test_slash.py::test_a_slip_has_a_nearest_command",),
    ),
    Fault(
        "terminal/a-closed-pipe-is-an-error",
        "carry_out",
        "    except BrokenPipeError:  # whoever",
        "    except ZeroDivisionError:  # whoever",
        (f"{_COMMANDS}no_command_minds_a_closed_pipe",),
    ),
    Fault(
        "terminal/turns-share-a-session",
        "main.work",
        "session or console_key(uuid4().hex)",
        'session or "cli"',
        (f"{_COMMANDS}a_turn_prints_its_answer_in_a_session_of_its_own",),
    ),
    Fault(
        "terminal/only-the-folder-is-looked-into",
        "located",
        "return (where, cwd) if where.is_file() else (None, where)",
        "return path, cwd",
        (f"{_COMMANDS}a_service_is_found_from_another_folder",),
    ),
    Fault(
        "terminal/a-running-service-is-not-found",
        "find",
        "            if state is not None and answers(state):",
        "            if False:",
        (f"{_COMMANDS}a_service_is_found_from_another_folder",),
    ),
    Fault(
        "terminal/setup-shows-its-noise",
        "scripts/setup",
        '"$@" >>"$log" 2>&1 || give_up',
        '"$@" || give_up',
        ("tests/packaging/test_setup.py::test_without_a_network_it_ends_in_one_sentence",),
    ),
    Fault(
        "terminal/a-service-that-starts-ends-the-terminal",
        "Conversation.listen",
        "first = self._position is None and not self._lost",
        "first = self._position is None",
        ("tests/bot/cli/test_conversation.py::test_a_service_that_was_never_reached_may_take_its_time_to_start",),
    ),
)
