"""What is shown of an answer while it is written, and what is left out of it."""

from tests.mutants import Fault

_TWICE = "tests/bot/test_shown_twice.py::test_"
_SHOWING = "tests/bot/replies/test_showing.py::test_"

_REACTIONS = "tests/bot/replies/test_side_messages.py::test_"
_TASKS = "tests/bot/runs/test_tool_messages.py::test_"

FAULTS = (
    Fault(
        "showing/a-tool-is-not-seen",
        "RunJournal.start_calls",
        '        self.typing.state("tool")\n',
        "",
        (f"{_REACTIONS}it_follows_the_run",),
    ),
    Fault(
        "showing/what-waits-for-a-person-looks-as-before",
        "Typing.waits",
        '            await self.reaction.stay("waiting")\n',
        "            pass\n",
        (f"{_REACTIONS}it_says_that_a_person_is_awaited",),
    ),
    Fault(
        "showing/each-call-shows-a-list-of-its-own",
        "TaskListTool.run",
        "        if fate.ids:\n            source = shown",
        "        if False:\n            source = shown",
        (f"{_TASKS}it_is_sent_once_and_then_edited",),
    ),
    Fault(
        "showing/all-previews-follow-a-cut",
        "close_cut_answer",
        " AND answer=?",
        " AND ? >= 0",
        (f"{_TWICE}previews_of_two_broken_answers_do_not_meet",),
    ),
    Fault(
        "showing/waiting-preview-edited-again",
        "_goes_on",
        "if lost or (state is DeliveryState.PLANNED and delivery.action is Action.SEND):",
        "if lost:",
        (f"{_TWICE}a_preview_that_waits_is_sent_as_the_whole_answer",),
    ),
    Fault(
        "showing/refused-edit-is-the-end",
        "_settle",
        "lost = state in (DeliveryState.FAILED, DeliveryState.UNCERTAIN)",
        "lost = False",
        (f"{_SHOWING}a_preview_that_somebody_has_deleted_is_a_message_again",),
    ),
    Fault(
        "showing/preview-of-repetition-stays",
        "Deliveries.begin",
        "if not endings.take_away(",
        "if 1 or not rows.take_away(",
        (f"{_TWICE}a_preview_of_what_a_tool_has_said_goes_away",),
    ),
    Fault(
        "showing/preview-stays-where-the-chat-was",
        "bot/store/rows.py",
        " conv_id=excluded.conv_id,",
        "",
        (f"{_TWICE}a_preview_follows_a_chat_that_moved",),
    ),
    Fault(
        "showing/stop-leaves-half-a-preview",
        "stop_turn",
        " AND NOT ({begun})",
        "",
        (f"{_TWICE}a_stop_lets_what_was_said_end_its_preview",),
    ),
    Fault(
        "showing/files-of-a-cut-answer-forgotten",
        "Directives.__init__",
        "self.reply_to, self._out = None, 0",
        "self.reply_to, self._out, self.files = None, 0, []",
        (f"{_TWICE}a_file_named_before_a_break_is_sent_once",),
    ),
    Fault(
        "showing/tags-in-code-spans-taken",
        "Directives._without_tags",
        'if self._in_span ^ (line.count("`", 0, tag.start()) % 2 == 1):',
        "if False:",
        ("tests/bot/replies/test_replies.py::test_every_cut_gives_the_same",),
    ),
    Fault(
        "showing/a-file-twice",
        "Replies.file",
        "        if not same:\n            self.sent(",
        "        if False:\n            self.sent(",
        (f"{_TWICE}a_file_named_before_a_break_is_sent_once",),
    ),
    Fault(
        "showing/rest-taken-for-a-repetition",
        "Replies.begin",
        "self._shown = bool(after)",
        "self._shown = False",
        (f"{_TWICE}the_rest_of_a_cut_answer_is_no_repetition",),
    ),
    Fault(
        "showing/left-out-of-the-transcript",
        "close_cut_answer",
        " OR cause='{Cause.SAID_ALREADY}'",
        "",
        (f"{_TWICE}what_is_left_out_of_a_cut_answer_is_part_of_it",),
    ),
    Fault(
        "showing/programs-read-it-twice",
        "plan",
        '"expired" if again else begin',
        "begin",
        (f"{_TWICE}programs_read_no_directives_and_nothing_twice",),
    ),
    Fault(
        "showing/failed-message-counts",
        "Deliveries.begin",
        'tool_messages.fate(db, unless).state == "sent"',
        'tool_messages.fate(db, unless).state != ""',
        (f"{_SHOWING}what_a_tool_failed_to_say_is_said",),
    ),
    Fault(
        "showing/preview-of-nothing-stays",
        "end_turn",
        "    if is_shown:",
        "    if False:",
        (f"{_SHOWING}a_preview_of_what_is_never_said_goes_away",),
    ),
)
