"""What is shown of beats, and of jobs that fail."""

from tests.mutants import Fault

_SHOWN = "tests/bot/background/test_beats_shown.py::test_"
_WORDS = "bot/replies/beat_words.py"
_JOURNAL = "bot/runs/journal.py"

FAULTS = (
    Fault(
        "heartbeat-replies/each-answer-by-itself",
        _WORDS,
        "        if goes_on and not silent:\n            return",
        "        if False:\n            return",
        (f"{_SHOWN}all_words_of_a_beat_are_one_text",),
    ),
    Fault(
        "heartbeat-replies/words-before-a-pause-forgotten",
        _JOURNAL,
        "self._beat.resume(self.turn.turn_id, context.entries)",
        "pass",
        (f"{_SHOWN}a_beat_that_waited_for_a_person_keeps_its_words",),
    ),
    Fault(
        "heartbeat-replies/silence-with-words",
        _WORDS,
        "if silent or not words:",
        "if not words:",
        (f"{_SHOWN}all_words_of_a_beat_are_one_text",),
    ),
    Fault(
        "heartbeat-replies/a-file-is-quiet",
        _WORDS,
        "        if not sends.files:\n            words",
        "        if True:\n            words",
        (f"{_SHOWN}what_is_quiet_is_not_shown_and_the_rest_is[block]",),
    ),
    Fault(
        "heartbeat-replies/the-same-alert-again",
        _WORDS,
        "is_repeat(words, await self.earlier())",
        "False",
        (f"{_SHOWN}the_same_alert_is_not_said_again_within_a_day",),
    ),
    Fault(
        "heartbeat-replies/never-the-same-alert-again",
        "bot/runs/presentation.py",
        "turn.conv_id, self.clock.now() - _DAY)",
        "turn.conv_id, 0)",
        (f"{_SHOWN}the_same_alert_is_not_said_again_within_a_day",),
    ),
    Fault(
        "heartbeat-replies/said-again-and-once-more",
        "bot/store/schedules.py",
        "({rows.STANDS} OR {_AGAIN})",
        "{rows.STANDS}",
        (f"{_SHOWN}what_was_lost_is_said_again_and_then_not_once_more",),
    ),
    Fault(
        "heartbeat-replies/streamed-to-readers",
        _JOURNAL,
        "        if self._beat is not None:\n            return\n        if event.part",
        "        if event.part",
        (f"{_SHOWN}what_is_quiet_is_not_shown_and_the_rest_is[block]",),
    ),
    Fault(
        "heartbeat-replies/quiet-words-in-events",
        _JOURNAL,
        "step = replace(step, ended=replace(step.ended, text=words))",
        "pass",
        (f"{_SHOWN}a_terminal_shows_only_what_a_beat_says",),
    ),
    Fault(
        "heartbeat-replies/calls-in-terminals",
        "bot/cli/terminal/view.py",
        "if run == self._beat and not says:",
        "if False:",
        (f"{_SHOWN}a_terminal_shows_only_what_a_beat_says",),
    ),
    Fault(
        "heartbeat-replies/accounts-not-asked",
        "bot/config/background.py",
        "return general.model_copy(update=said)",
        "return general",
        (f"{_SHOWN}what_is_shown_is_up_to_the_account_and_else_to_the_heartbeat",),
    ),
    Fault(
        "heartbeat-replies/failure-in-the-conversation",
        _JOURNAL,
        '            return ""\n        found',
        "            return said\n        found",
        (f"{_SHOWN}a_beat_that_fails_says_nothing_in_the_conversation",),
    ),
    Fault(
        "heartbeat-replies/each-failure-of-a-job",
        "bot/wording.py",
        'return "" if job.failures else',
        'return "" if not job else',
        (f"{_SHOWN}a_job_that_fails_says_so_once",),
    ),
    Fault(
        "heartbeat-replies/hidden-words-from-memory",
        "bot/runs/runner.py",
        "if turn.kind not in BY_THEMSELVES:  # their",
        "if True:  # their",
        (f"{_SHOWN}quiet_beats_cost_later_requests_nothing",),
    ),
    Fault(
        "heartbeat-replies/light-prompt-kept",
        "bot/runs/prompts.py",
        "if (own or not light) and turn.prompt",
        "if turn.prompt",
        (f"{_SHOWN}a_light_beat_has_no_files_of_the_workspace",),
    ),
    Fault(
        "heartbeat-replies/the-time-of-other-turns",
        "bot/runs/specs.py",
        "limits=answerer.limits",
        "limits=self.answerer.limits",
        (f"{_SHOWN}a_beat_has_time_of_its_own_and_may_be_silent_in_it",),
    ),
    Fault(
        "heartbeat-replies/the-model-of-other-turns",
        "bot/wiring.py",
        "beating=Answerer(clients[1]",
        "beating=Answerer(clients[0]",
        (f"{_SHOWN}beats_have_a_model_of_their_own",),
    ),
    Fault(
        "heartbeat-replies/typing-for-nobody",
        "bot/runs/runner.py",
        "None if turn.kind in BY_THEMSELVES else serving",
        "serving",
        (f"{_SHOWN}a_job_that_fails_says_so_once",),
    ),
    Fault(
        "heartbeat-replies/an-empty-beat-is-a-failure",
        "bot/runs/specs.py",
        "may_be_empty=turn.kind is TurnKind.BEAT",
        "may_be_empty=False",
        (f"{_SHOWN}what_is_quiet_is_not_shown_and_the_rest_is[block]",),
    ),
)
