"""Faults in choices, in what an answer looks like, and in where it goes."""

from tests.mutants import Fault

CHOICES = "tests/bot/test_choices.py"
REPLIES = "tests/bot/replies/test_replies.py"
DELIVERIES = "tests/bot/persistence/test_deliveries.py"

FAULTS = (
    Fault(
        "choices/second-press-counts",
        "begin",
        "if edited or not chosen else None",
        "if edited or not chosen or seq else None",
        (CHOICES + "::test_only_the_first_press_counts_and_the_same_click_is_one",),
    ),
    Fault(
        "choices/not-understood-takes-the-buttons",
        "Say.persist",
        "() if self.mistake else await answer.chosen()",
        "await answer.chosen()",
        (CHOICES + "::test_a_button_that_is_not_understood_keeps_its_message",),
    ),
    Fault(
        "choices/choice-is-not-shown",
        "CommandRunner._chosen",
        "action=Action.EDIT, target=message.reply_to,",
        "target=message.reply_to,",
        (CHOICES + "::test_a_choice_is_offered_made_and_shown",),
    ),
    Fault(
        "choices/native-command-is-answered-elsewhere",
        "Answer.blocks",
        "if message.respond and (private or message.kind is InboundKind.COMMAND):",
        "if message.kind is InboundKind.BUTTON and message.respond:",
        (CHOICES + "::test_a_native_command_is_answered_by_its_handle",),
    ),
    Fault(
        "choices/every-message-makes-a-sound",
        "Replies._in_answer",
        "silent=not first,",
        "silent=False,",
        (REPLIES + "::test_only_the_first_message_of_an_answer_makes_a_sound",),
    ),
    Fault(
        "choices/sound-again-after-a-restart",
        "Replies.__init__",
        "self._spoken = any(said.step is not None for said in turn.said)",
        "self._spoken = False",
        (REPLIES + "::test_what_goes_on_after_a_restart_makes_no_sound",),
    ),
    Fault(
        "choices/private-words-in-another-chat",
        "plan",
        "and answers_in != conv_id\n",
        "and False\n",
        (DELIVERIES + "::test_a_turn_speaks_only_where_it_answers",),
    ),
    Fault(
        "choices/the-reaction-stays",
        "end_turn",
        '    take_acknowledgements_away(db, "inbox.turn_id=?", turn_id, now)\n',
        "",
        ("tests/bot/inbound/test_acknowledge.py::test_it_goes_after_a_restart",),
    ),
    Fault(
        "choices/the-reaction-stays-on-what-is-stopped",
        "_stop_one",
        '        endings.take_acknowledgements_away(db, "seq=?", seq, now)\n',
        "        pass\n",
        ("tests/bot/inbound/test_acknowledge.py::test_it_goes_with_what_is_stopped",),
    ),
    Fault(
        "choices/the-reaction-stays-on-a-reply-that-decides",
        "finish",
        "    endings.take_acknowledgements_away(db, \"seq=? AND inbox.state='done'\", begun.seq, begun.now)",
        "    pass",
        ("tests/bot/inbound/test_acknowledge.py::test_it_goes_with_a_reply_that_decides",),
    ),
    Fault(
        "choices/everybody-reads-what-is-wrong-with-the-service",
        "failure",
        "return _MODEL_ERRORS[found] if found in _FOR_EVERYBODY else OUT_OF_ORDER",
        "return _MODEL_ERRORS[found]",
        (
            "tests/agent/test_model_errors.py::"
            "test_an_owner_sees_the_cause_and_others_a_sentence_that_says_nothing_of_the_service",
        ),
    ),
)
