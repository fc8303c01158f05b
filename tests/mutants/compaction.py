"""Faults in what keeps long conversations within the window: summaries, notes, shortening, and what they keep."""

from tests.mutants import Fault

_TESTS = "tests/bot/runs/test_compaction.py::test_"
_SUMMARY = "tests/agent/test_context.py::test_"

FAULTS = (
    Fault(
        "compaction/no-room-for-thinking",
        "ContextEngine._limit",
        "model.output_limit(self._spec.route.thinking)",
        "model.max_output",
        ("tests/bot/runs/test_compaction.py::test_room_is_left_for_what_thinking_adds_to_an_answer",),
    ),
    Fault(
        "compaction/never-at-the-end-of-a-turn",
        "ContextEngine.after_turn",
        "if self.count() > max(due, self._context.no_summary_below):",
        "if False:",
        (f"{_TESTS}a_long_conversation_is_summed_up_at_the_end_of_a_turn",),
    ),
    Fault(
        "compaction/rules-of-people-are-lost",
        "compose",
        "quotes = _quotes([*_lines(before, 1), *_said(covered)], min(most, _QUOTES))",
        "quotes: list[str] = []",
        (f"{_TESTS}a_long_conversation_is_summed_up_at_the_end_of_a_turn",),
    ),
    Fault(
        "compaction/identifiers-of-the-summary-before-are-lost",
        "compose",
        "for part in (2, 0, 1)",
        "for part in (2,)",
        (
            f"{_SUMMARY}identifiers_are_kept_over_several_summaries",
            f"{_SUMMARY}identifiers_of_the_models_words_are_kept",
        ),
    ),
    Fault(
        "compaction/rules-in-long-messages-are-lost",
        "_said",
        "_ruled(line)[:_QUOTED]",
        "line[:_QUOTED]",
        (f"{_SUMMARY}a_rule_at_the_end_of_a_long_message_is_kept",),
    ),
    Fault(
        "compaction/whole-messages-push-rules-out",
        "_quotes",
        "lines = [*map(_ruled, lines[:last]), *lines[last:]]",
        "pass",
        (f"{_SUMMARY}rules_are_kept_where_the_messages_around_them_do_not_fit",),
    ),
    Fault(
        "compaction/credentials-are-quoted",
        "_said",
        "{without_credentials(text)}",
        "{text}",
        (f"{_SUMMARY}credentials_become_marks",),
    ),
    Fault(
        "compaction/words-without-end",
        "compose",
        "_cut(without_credentials(text.strip()), most * _MODEL_WORDS)",
        "without_credentials(text.strip())",
        (f"{_SUMMARY}words_without_end_are_cut",),
    ),
    Fault(
        "compaction/nothing-without-a-model",
        "ContextEngine.compact",
        "if words is None and not needed:",
        "if words is None:",
        (f"{_TESTS}without_a_model_that_sums_up_nothing_is_lost_but_the_oldest_words",),
    ),
    Fault(
        "compaction/tried-after-each-turn",
        "ContextEngine.after_turn",
        "self._context.no_summary_below = int(self.count() * _GROWN)",
        "pass",
        (f"{_TESTS}what_fails_at_the_end_of_a_turn_is_not_tried_after_each",),
    ),
    Fault(
        "compaction/the-focus-is-lost",
        "request",
        "asked = _FOCUS.format(focus=focus) if focus else",
        "asked = _FOCUS.format(focus=focus) if False else",
        (f"{_TESTS}a_person_can_have_it_summed_up",),
    ),
    Fault(
        "compaction/an-old-context-is-used-again",
        "Contexts.forget",
        "self._forgotten.add(transcript_id)",
        "pass",
        (f"{_TESTS}a_summary_made_during_a_run_stands_after_it",),
    ),
    Fault(
        "compaction/what-was-too-large-is-sent-again",
        "ContextEngine._limit",
        "if self._too_large else limit",
        "if False else limit",
        (f"{_TESTS}what_a_provider_finds_too_large_is_summed_up_and_asked_again",),
    ),
    Fault(
        "compaction/nobody-is-told",
        "ContextEngine._tell_late",
        "await self._keeper.lasts()",
        "pass",
        (f"{_TESTS}a_summary_that_takes_too_long_delays_nobody_else_and_is_told",),
    ),
    Fault(
        "compaction/results-stay-whole",
        "ContextEngine._make_room",
        "if self._context.prune(self._kept_from())",
        "if False",
        (f"{_TESTS}old_results_are_shortened_first",),
    ),
    Fault(
        "compaction/what-goes-on-is-forgotten",
        "Keeping.state",
        'return "\\n".join([f"- {line}" async for line in self._lines()])',
        'return ""',
        (f"{_TESTS}it_is_summed_up_while_a_person_is_asked",),
    ),
    Fault(
        "compaction/notes-are-saved-again",
        "Compactions.flushes",
        "return db.execute(change, (transcript_id,)).rowcount == 1",
        "return True",
        (f"{_TESTS}what_fails_at_the_end_of_a_turn_is_not_tried_after_each",),
    ),
    Fault(
        "compaction/a-run-takes-the-summary-back",
        "Turns.step",
        'SET context_start=max(context_start, ?1), pruned_below=max(pruned_below, ?2)"'
        '\n            " WHERE transcript_id=?3 AND (context_start < ?1 OR pruned_below < ?2)"',
        'SET context_start=?1, pruned_below=?2 WHERE transcript_id=?3"',
        (f"{_TESTS}a_summary_made_during_a_run_stands_after_it",),
    ),
)
