"""Processes of commands: all of them end, also after a crash."""

from tests.mutants import Fault

_EXEC = "tests/agent/tools/test_exec.py::test_"
_LEFTOVERS = "tests/bot/runs/test_leftovers.py::test_"
_BACKGROUND = "tests/agent/tools/test_background.py::test_"
_SERVICE = "tests/bot/background/test_background_commands.py::test_"
_PERMISSION = "tests/agent/tools/test_permission.py::test_"

FAULTS = (
    Fault(
        "exec/those-who-flee-are-not-kept",
        "main",
        "ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)",
        "pass",
        (f"{_EXEC}what_detaches_itself_ends_with_its_command",),
    ),
    Fault(
        "exec/signals-loosen-the-gate",
        "main",
        "signal.signal(number, signal.SIG_IGN)",
        "pass",
        (f"{_EXEC}signals_to_its_own_group_do_not_loosen_the_gate",),
    ),
    Fault(
        "exec/the-tree-is-not-ended",
        "GatedProcess.end",
        "            end_tree(self.pid, self._hear)\n",
        "",
        (f"{_EXEC}what_detaches_itself_ends_with_its_command",),
    ),
    Fault(
        "exec/those-below-are-not-killed",
        "end_tree",
        "        signal_below(leader, signal.SIGKILL)\n",
        "",
        (f"{_EXEC}what_detaches_itself_ends_with_its_command",),
    ),
    Fault(
        "exec/leftovers-of-stopped-turns-forgotten",
        "Recovery.leftovers",
        "WHERE {WITH_PROCESS}",
        "WHERE {WITH_PROCESS} AND tool_call.state='running'",
        (f"{_LEFTOVERS}what_a_crash_left_is_ended_at_the_next_start[stopped, not cancelled yet]",),
    ),
    Fault(
        "exec/ended-processes-looked-for",
        "Turns.results",
        'ended = "" if call.goes_on else ", pid=NULL, pid_started=NULL"',
        'ended = ""',
        (f"{_LEFTOVERS}a_call_that_has_ended_leaves_no_process_to_look_for",),
    ),
    Fault(
        "exec/ended-leftovers-not-forgotten",
        "Service._recover",
        "        await store.recovery.forget(over)\n",
        "",
        (f"{_LEFTOVERS}what_a_crash_left_is_ended_at_the_next_start",),
    ),
    Fault(
        "exec/background-processes-not-known-any-more",
        "Turns.results",
        'ended = "" if call.goes_on else ", pid=NULL, pid_started=NULL"',
        'ended = ", pid=NULL, pid_started=NULL"',
        (f"{_SERVICE}what_a_crash_left_is_ended_at_the_next_start_and_told",),
    ),
    Fault(
        "exec/ends-by-a-crash-not-told",
        "Recovery.forget",
        "            if one.told:\n",
        "            if False:\n",
        (
            f"{_SERVICE}what_a_crash_left_is_ended_at_the_next_start_and_told",
            f"{_SERVICE}its_end_is_told_with_the_next_message_and_its_process_forgotten",
        ),
    ),
    Fault(
        "exec/what-was-read-is-told-again",
        "Running.told",
        'return "" if self.readers else f"{over}',
        'return f"{over}',
        (f"{_SERVICE}what_was_polled_to_its_end_is_not_told",),
    ),
    Fault(
        "exec/a-beat-for-what-a-person-stopped",
        "Dispatcher.command_over",
        "if over.told and not one.wanted.done():",
        "if over.told:",
        (f"{_SERVICE}who_says_stop_ends_them_too",),
    ),
    Fault(
        "exec/no-beat-for-an-end",
        "Dispatcher.command_over",
        '                await self.beats.begin("wake", root_of(one.session_key))\n',
        "",
        (f"{_SERVICE}its_end_is_looked_at_by_a_beat_at_once",),
    ),
    Fault(
        "exec/background-outlives-the-service",
        "Service.close",
        "        await parts.background.close(BACKGROUND_GRACE)\n",
        "",
        (f"{_SERVICE}they_end_with_the_service_which_says_so_when_it_is_back",),
    ),
    Fault(
        "exec/other-sessions-seen",
        "Background.of",
        "return [one for one in self._known.values() if one.session_key == session_key]",
        "return list(self._known.values())",
        (f"{_BACKGROUND}sessions_do_not_see_each_others",),
    ),
    Fault(
        "exec/runs-before-there-is-room",
        "Background.start",
        "            self._admit(one)\n            one.process.open_gate()\n",
        "            one.process.open_gate()\n            self._admit(one)\n",
        (f"{_BACKGROUND}there_are_only_so_many",),
    ),
    Fault(
        "exec/polls-do-not-wake",
        "Running.take",
        "        self._fresh.add(self._mask.feed(data))\n        self._news.set()\n",
        "        self._fresh.add(self._mask.feed(data))\n",
        (f"{_BACKGROUND}a_poll_wakes_as_soon_as_there_is_something",),
    ),
    Fault(
        "exec/stopped-calls-run-on",
        "ExecTool._in_background",
        '            one.end("ended because its call was stopped")\n            await one.over.wait()\n',
        "",
        (f"{_BACKGROUND}a_call_that_is_stopped_ends_what_it_has_begun",),
    ),
    Fault(
        "exec/decisions-count-for-other-folders",
        "ExecTool._ask",
        "command, str(folder), parameters.env,",
        "command, parameters.env,",
        (f"{_PERMISSION}a_decision_counts_for_the_very_same_call_alone",),
    ),
    Fault(
        "exec/decisions-count-in-other-sessions",
        "ExecTool._ask",
        "*(self.name, context.session_key, command,",
        "*(self.name, command,",
        (f"{_PERMISSION}a_decision_counts_for_the_very_same_call_alone",),
    ),
    Fault(
        "exec/variables-of-any-name-given",
        "ExecParameters._named",
        "if refused := sorted(",
        "if False and sorted(",
        (f"{_PERMISSION}what_can_never_run_asks_nobody",),
    ),
    Fault(
        "exec/variables-not-asked-about",
        "ExecTool._verdict",
        "            if not is_harmless_variable(name, value)\n",
        "            if False\n",
        (f"{_PERMISSION}a_request_says_everything_that_will_happen",),
    ),
    Fault(
        "exec/input-not-asked-about",
        "ProcessTool.asks",
        'if parameters.action != "input" or not parameters.text:',
        "if True:",
        (f"{_PERMISSION}what_is_written_to_a_command_is_asked_about_as_well",),
    ),
    Fault(
        "exec/asking-always-grants-always",
        "Permission.ask",
        '        rules = () if self.asking == "always" else rules\n',
        "",
        (f"{_PERMISSION}what_runs_where_what_is_asked_and_what_is_refused",),
    ),
    Fault(
        "exec/everything-runs-unanswered-that-falls-back-to-the-allowlist",
        "Permission.ask",
        '(self.fallback == "allowlist" and not missed)',
        'self.fallback == "allowlist"',
        (f"{_PERMISSION}what_runs_where_what_is_asked_and_what_is_refused",),
    ),
    Fault(
        "exec/output-told-as-it-comes",
        "Paced.add",
        "        if self._timer is None:\n            self._pass_on()\n",
        "        self._pass_on()\n",
        ("tests/agent/tools/test_output.py::test_at_most_four_times_a_second_is_told_and_nothing_is_lost_meanwhile",),
    ),
    Fault(
        "exec/an-exit-code-is-a-failure",
        "agent/tools/exec.py",
        'r"exit code \\d+"',
        'r"exit code 0"',
        (
            "tests/agent/test_silence.py::test_an_exit_code_is_a_result_and_no_failure",
            "tests/agent/tools/test_exec.py::test_says_how_it_ended_and_what_it_wrote_in_order",
        ),
    ),
    Fault(
        "exec/what-was-stopped-is-a-result",
        "_ended",
        "is_error=_RESULT.fullmatch(how) is None",
        "is_error=False",
        ("tests/agent/test_silence.py::test_an_exit_code_is_a_result_and_no_failure",),
    ),
    Fault(
        "exec/no-word-about-the-level",
        "ExecTool._run",
        '(f"[{ending(0)}]", "[running]")',
        '("[exit code", "[running]")',
        ("tests/agent/sandbox/test_inside.py",),
    ),
)
