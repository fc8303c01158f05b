"""The first steps with it: the set-up and the command, what the configuration is made of, and what is said of it."""

from tests.mutants import Fault

_SETUP = "tests/packaging/test_setup.py::test_"
_RUN = "tests/bot/cli/test_run.py::test_"
_VARIABLES = "tests/bot/config/test_variables.py::test_"
_LOAD = "tests/bot/config/test_load.py::TestMistakes::test_"
_DOCTOR = "tests/bot/cli/test_doctor.py::test_"

FAULTS = (
    Fault(
        "first-steps/tools-of-what-is-made-anew",
        "scripts/setup",
        "    PATH=${path%:}",
        "    :",
        (f"{_SETUP}an_activated_environment_is_made_anew",),
    ),
    Fault(
        "first-steps/the-first-start-compiles",
        "scripts/setup",
        " --compile-bytecode",
        "",
        (f"{_SETUP}installs_pinned_and_then_does_nothing",),
    ),
    Fault(
        "first-steps/what-is-ours-is-not-compiled",
        "scripts/setup",
        "compileall -qq agent bot channels heartbeat",
        "compileall -qq agent",
        (f"{_SETUP}what_is_ours_is_compiled_as_well",),
    ),
    Fault(
        "first-steps/somebody-elses-command-is-replaced",
        "scripts/link",
        'if [ ! -e "$folder/hark" ] && ',
        "if ",
        (f"{_SETUP}where_no_link_can_be_the_line_to_copy_is_said",),
    ),
    Fault(
        "first-steps/nothing-is-linked",
        "scripts/link",
        '&& ln -sf "$hark" "$folder/hark"',
        "&& false",
        (f"{_SETUP}the_command_is_linked_where_the_shell_looks",),
    ),
    Fault(
        "first-steps/the-start-does-not-name-the-command",
        "_command",
        "if own.exists() and not (found and own.samefile(found)):",
        "if False:",
        (f"{_RUN}where_the_shell_does_not_find_hark_the_line_to_copy_is_said",),
    ),
    Fault(
        "first-steps/a-time-of-today-is-past",
        "_at",
        "or (not day and due <= today)",
        "",
        ("tests/heartbeat/test_spoken.py::test_once",),
    ),
    Fault(
        "first-steps/every-two-days-at-eight-is-every-two-days",
        "heartbeat/spoken.py",
        "(?!,? (?:at|on) )",
        "",
        ("tests/heartbeat/test_spoken.py::test_what_is_no_time_is_not_guessed_at",),
    ),
    Fault(
        "first-steps/a-job-was-said-last",
        "Reads.last_exchange",
        "NOT EXISTS (SELECT 1 FROM firing WHERE firing.turn_id = entry.turn_id)",
        "1",
        (
            "tests/bot/background/test_schedule.py::"
            "test_a_terminal_begins_with_what_a_person_wrote_last_and_not_with_what_a_job_was_asked",
        ),
    ),
    Fault(
        "first-steps/a-closed-terminal-kills",
        "_run",
        "loop.add_signal_handler(signal.SIGHUP, on_hangup)",
        "pass",
        (f"{_RUN}a_signal_lets_an_answer_finish_before_your_eyes",),
    ),
    Fault(
        "first-steps/a-second-hangup-is-haste",
        "_run",
        "loop.add_signal_handler(signal.SIGHUP, on_hangup)",
        "loop.add_signal_handler(signal.SIGHUP, on_signal)",
        (f"{_RUN}a_signal_lets_an_answer_finish_before_your_eyes",),
    ),
    Fault(
        "first-steps/nohup-is-overruled",
        "_run",
        "if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:",
        "if True:",
        (f"{_RUN}what_was_started_to_outlive_its_terminal_minds_no_hangup",),
    ),
    Fault(
        "first-steps/a-webhook-that-cannot-be-reached",
        "_is_public",
        'return parts.scheme == "https" and reached',
        "return bool(url)",
        ("tests/bot/config/test_load.py::TestMistakes::test_a_webhook_that_telegram_cannot_reach",),
    ),
    Fault(
        "first-steps/accounts-may-have-any-webhook",
        "Telegram._can_be_brought",
        "for account, bot in self.bots().items() if self.enabled else ():",
        'for account, bot in {"": self}.items() if self.enabled else ():',
        ("tests/bot/config/test_load.py::TestMistakes::test_a_webhook_of_a_further_account",),
    ),
    Fault(
        "first-steps/the-file-wins-over-the-shell",
        "examine",
        "{**variables, **environ}",
        "{**environ, **variables}",
        (f"{_VARIABLES}its_variables_are_there_and_those_of_the_process_win",),
    ),
    Fault(
        "first-steps/models-do-not-see-the-file",
        "Config.environ",
        "return {**self._source.variables, **environ}",
        "return dict(environ)",
        (f"{_VARIABLES}its_variables_are_there_and_those_of_the_process_win",),
    ),
    Fault(
        "first-steps/an-empty-variable-is-off",
        "_Reader._with_variables.put_in",
        "if not found and default is None:",
        "if found is None and default is None:",
        (f"{_VARIABLES}an_empty_variable_is_a_mistake_and_no_platform_that_is_off",),
    ),
    Fault(
        "first-steps/others-may-read-it",
        "warnings",
        "& 0o077",
        "& 0o020",
        (f"{_VARIABLES}one_that_others_may_read_is_a_warning",),
    ),
    Fault(
        "first-steps/only-the-last-run-is-asked",
        "find",
        "named = state_of(file, os.environ) if file else None",
        "named = None",
        ("tests/bot/cli/test_commands.py::test_beside_its_service_a_command_needs_no_variables_of_it",),
    ),
    Fault(
        "first-steps/mistakes-beside-a-service-are-not-told",
        "find",
        "Source(mistakes=error.problems)",
        "Source()",
        ("tests/bot/cli/test_commands.py::test_beside_its_service_a_command_needs_no_variables_of_it",),
    ),
    Fault(
        "first-steps/one-mistake-hides-others",
        "_checked",
        'if here not in document.unset and not (error["type"] == "conflict" and known & concerned):',
        'if here not in document.unset and not (error["type"] == "conflict" and known):',
        (f"{_LOAD}every_mistake_is_told_at_once_but_what_only_follows_from_another",),
    ),
    Fault(
        "first-steps/what-follows-is-told-too",
        "_checked",
        'and not (error["type"] == "conflict" and known & concerned):',
        "and True:",
        (f"{_LOAD}every_mistake_is_told_at_once_but_what_only_follows_from_another",),
    ),
    Fault(
        "first-steps/a-refused-token-is-accepted",
        "_try_token",
        'if answer.is_success and body.get("ok", True):',
        "if answer.is_success:",
        (f"{_DOCTOR}each_token_is_tried_at_its_platform",),
    ),
    Fault(
        "first-steps/only-the-first-key-is-tried",
        "_specs",
        "for number, key in enumerate(keys, 1):",
        "for number, key in enumerate(keys[:1], 1):",
        (f"{_DOCTOR}each_key_and_model_is_asked_for_a_word",),
    ),
    Fault(
        "first-steps/a-copy-has-its-name-too-early",
        "copy_of",
        'part = file.with_name(f".{file.name}.part")',
        "part = file",
        ("tests/bot/cli/test_backup.py::test_no_file_is_replaced_and_without_a_store_there_is_nothing",),
    ),
    Fault(
        "first-steps/the-log-is-not-copied",
        "copy_of",
        "            _copy(connection, part)",
        "            shutil.copy(path, part)",
        ("tests/bot/cli/test_backup.py::test_a_copy_beside_a_service_has_what_only_the_log_has",),
    ),
)
