"""Hooks: what guards let through, what is loaded from where, and what becomes of what they forbid."""

from tests.mutants import Fault

_HOOKS = "tests/bot/hooks/test_hooks.py::test_"

FAULTS = (
    Fault(
        "hooks/lower-ones-come-first",
        "Hooks.__post_init__",
        "key=lambda one: -one.priority",
        "key=lambda one: one.priority",
        (f"{_HOOKS}higher_ones_come_first_and_the_first_block_is_the_last_word",),
    ),
    Fault(
        "hooks/a-late-guard-lets-pass",
        "Hooks.ask",
        'reason = _failed(hook, event, f"it took longer than {hook.timeout:g} s")',
        "reason = None",
        (f"{_HOOKS}a_guard_of_a_file_forbids_a_call_and_fails_shut",),
    ),
    Fault(
        "hooks/a-broken-guard-lets-pass",
        "find",
        "            found += _shut(shut, file.name)\n",
        "",
        (f"{_HOOKS}a_guard_that_cannot_be_loaded_lets_nothing_pass",),
    ),
    Fault(
        "hooks/files-of-the-workspace-are-loaded",
        "_of_file",
        "if why := _within_reach(file, config):",
        'if why := "":',
        (f"{_HOOKS}nothing_is_loaded_from_the_workspace",),
    ),
    Fault(
        "hooks/commands-are-told-secrets",
        "as_json",
        "return clean(json.dumps(",
        "return str(json.dumps(",
        (f"{_HOOKS}what_leaves_the_process_has_no_secrets",),
    ),
    Fault(
        "hooks/a-code-of-two-is-a-failure",
        "run_command",
        "if code == FORBIDS:",
        "if code == 3:",
        (f"{_HOOKS}a_command_gets_json_and_decides",),
    ),
    Fault(
        "hooks/the-first-message-goes-out-unasked",
        "Outbox.planning",
        "blocks and SENDING not in self._hooks.points and",
        "blocks and",
        (f"{_HOOKS}what_may_not_be_sent_is_in_the_ledger_with_its_cause",),
    ),
    Fault(
        "hooks/what-was-forbidden-is-not-explained",
        "bot/store/balance.py",
        ",'{Cause.HOOK}'",
        "",
        (f"{_HOOKS}what_may_not_be_sent_is_in_the_ledger_with_its_cause",),
    ),
    Fault(
        "hooks/previews-are-shown-unasked",
        "TurnRunner.journal",
        'cutting = cutting.model_copy(update={"mode": "block"})',
        "pass",
        (f"{_HOOKS}nothing_of_an_answer_is_shown_before_a_guard_has_seen_it_whole",),
    ),
    Fault(
        "hooks/messages-join-a-run-unasked",
        "place",
        'if mode == "steer" and rule.joins and may',
        'if mode == "steer" and may',
        (f"{_HOOKS}a_message_that_is_dropped_reaches_no_model",),
    ),
    Fault(
        "hooks/what-programs-write-waits-for-ever",
        "Inbox.unanswered",
        "{FOR_A_RUN} AND NOT {IN_BACKGROUND}",
        "kind='message'",
        (f"{_HOOKS}what_programs_write_is_asked_about_like_what_people_write",),
    ),
    Fault(
        "hooks/programs-wait-for-what-was-dropped",
        "Inbox.drop",
        "if taken[0] is not None:",
        "if False:",
        (f"{_HOOKS}what_programs_write_is_asked_about_like_what_people_write",),
    ),
    Fault(
        "hooks/endless-answers-are-kept",
        "agent/programs.py",
        "if len(out) > most:",
        "if False:",
        ("tests/agent/test_programs.py",),
    ),
    Fault(
        "hooks/a-denial-of-claude-code-is-none",
        "_as_ours",
        'decisions.append(more.get("permissionDecision"))',
        "pass",
        (f"{_HOOKS}what_a_hook_of_claude_code_answers_is_understood",),
    ),
    Fault(
        "hooks/files-without-a-module",
        "_loaded",
        "module = sys.modules[spec.name] = ",
        "module = ",
        (f"{_HOOKS}a_file_that_blocks_its_thread_holds_up_no_other_file",),
    ),
    Fault(
        "hooks/threads-without-end",
        "Beside._begin",
        "if self._left > _MOST_LEFT:",
        "if False:",
        (f"{_HOOKS}a_file_that_never_ends_its_calls_is_not_called_for_ever",),
    ),
)
