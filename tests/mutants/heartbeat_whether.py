"""Whether the assistant speaks up by itself: the rules of silence, HEARTBEAT.md, the gate."""

from tests.mutants import Fault

_QUIET = "tests/heartbeat/test_quiet.py::test_"
_CHECKLIST = "tests/heartbeat/test_checklist.py::test_"
_GATE = "tests/heartbeat/test_gate.py::test_"
_EDGE = (f"{_QUIET}a_token_at_an_edge_is_taken_away_and_the_rest_is_as_it_was",)
_TEXT = (f"{_QUIET}in_the_middle_in_code_and_within_words_it_is_text",)
_CUT = (f"{_QUIET}nothing_but_a_token_is_silence",)
_REASONS = (f"{_GATE}each_reason_holds_for_its_causes",)
_FAULTY = (f"{_CHECKLIST}a_faulty_entry_takes_no_other_with_it",)
_FORMS = (f"{_CHECKLIST}tasks_are_read_in_any_form",)

FAULTS = (
    Fault(
        "heartbeat-whether/one-character-too-many-is-quiet",
        "alert",
        "if len(text.strip()) <= (most",
        "if len(text.strip()) <= (most + 1",
        (f"{_QUIET}a_beat_with_the_token_and_few_other_words_is_quiet",),
    ),
    Fault(
        "heartbeat-whether/no-reply-hides-short-alerts",
        "alert",
        'quiet = quiet or "HEARTBEAT" in text[start:end]',
        "quiet = quiet or start < end",
        (f"{_QUIET}what_no_reply_stands_beside_is_an_alert_however_short",),
    ),
    Fault(
        "heartbeat-whether/beginning-shown-before-it-is-known",
        "may_be_silent",
        "_SILENT.fullmatch(begun, partial=True) is not None",
        "_SILENT.fullmatch(begun) is not None",
        _CUT,
    ),
    Fault(
        "heartbeat-whether/end-shown-before-it-is-known",
        "may_trail",
        "return int(found.start()) if found else len(text)",
        "return len(text)",
        _EDGE,
    ),
    Fault(
        "heartbeat-whether/marks-of-the-words-are-taken-along",
        "_wrapped",
        '        elif piece["mark"]:\n            break\n',
        "",
        _EDGE,
    ),
    Fault(
        "heartbeat-whether/marks-of-the-words-are-left-behind",
        "_wrapped",
        "            opened.pop()\n",
        "            pass\n",
        _EDGE,
    ),
    Fault(
        "heartbeat-whether/indentation-eaten",
        "heartbeat/quiet.py",
        r"{_SPACE}*(?:\n|<br ?/?>)|",
        r"{_SPACE}+|",
        _EDGE,
    ),
    Fault(
        "heartbeat-whether/part-of-a-word-counts",
        "leading",
        '    if gap is None and text[end - 1] not in ">\\n":\n        return 0, 0\n',
        "",
        _TEXT,
    ),
    Fault(
        "heartbeat-whether/code-counts",
        "trailing",
        'or "`" in text[wrapped[1] :]',
        "",
        _TEXT,
    ),
    Fault(
        "heartbeat-whether/quoted-tokens-are-signs",
        "_wrapped",
        "    if not quoted and any(",
        "    if False and any(",
        (*_TEXT, f"{_QUIET}a_quoted_token_in_a_line_of_its_own_is_a_sign_of_beats_alone"),
    ),
    Fault(
        "heartbeat-whether/beats-quote-no-sign",
        "alert",
        "edge(text, beat=True)",
        "edge(text)",
        (f"{_QUIET}a_quoted_token_in_a_line_of_its_own_is_a_sign_of_beats_alone",),
    ),
    Fault(
        "heartbeat-whether/beats-quote-signs-among-words",
        "leading",
        "quoted=beat and alone",
        "quoted=beat",
        _TEXT,
    ),
    Fault(
        "heartbeat-whether/faulty-entry-ends-the-list",
        "read",
        "                mistakes.append(Mistake(*error.args))\n",
        "                mistakes.append(Mistake(*error.args))\n                break\n",
        _FAULTY,
    ),
    Fault(
        "heartbeat-whether/second-of-a-name-replaces-the-first",
        "read",
        "                if task.name in tasks:\n",
        "                if not task.name:\n",
        _FAULTY,
    ),
    Fault(
        "heartbeat-whether/list-of-notes-taken-for-tasks",
        "_end_of_block",
        "(end == at and _ENTRY.match(line))",
        "_ENTRY.match(line)",
        (f"{_CHECKLIST}notes_stand_beside_tasks",),
    ),
    Fault(
        "heartbeat-whether/comments-count",
        "_without_comments",
        'return _COMMENT.sub(lambda found: "\\n" * found[0].count("\\n"), text)',
        "return text",
        (f"{_CHECKLIST}what_holds_nothing_is_empty", *_FORMS),
    ),
    Fault(
        "heartbeat-whether/lines-miscounted-behind-a-comment",
        "_without_comments",
        '"\\n" * found[0].count("\\n")',
        '""',
        (f"{_CHECKLIST}lines_are_counted_as_they_stand_in_the_file",),
    ),
    Fault(
        "heartbeat-whether/nobody-may-ask-outside-the-hours",
        "skip",
        "if not asked and not facts.active_hours",
        "if not facts.active_hours",
        _REASONS,
    ),
    Fault(
        "heartbeat-whether/bot-left-alone-beats-on",
        "skip",
        ">= IDLE_AFTER",
        "> IDLE_AFTER",
        _REASONS,
    ),
    Fault(
        "heartbeat-whether/last-token-spent-twice",
        "skip",
        "facts.spent >= budget.amount",
        "facts.spent > budget.amount",
        _REASONS,
    ),
    Fault(
        "heartbeat-whether/task-a-moment-too-late",
        "due_tasks",
        "< task.interval_ms",
        "<= task.interval_ms",
        (f"{_GATE}tasks_are_waited_for", f"{_GATE}due_tasks"),
    ),
    Fault(
        "heartbeat-whether/event-waits-for-a-full-list",
        "skip",
        'facts.events > 0 or facts.cause == "wake"',
        'facts.cause == "wake"',
        (f"{_GATE}a_waiting_event_makes_up_for_an_empty_list",),
    ),
)
