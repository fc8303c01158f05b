"""Faults in what keeps the model's words, and people's names, from looking like what the service says."""

from tests.mutants import Fault

_SPEECH = "tests/bot/test_speech.py::test_"
_GUESTS = "tests/bot/runs/test_guests.py::test_"
_QUOTING = "tests/channels/markdown/test_platforms.py::test_"

FAULTS = (
    Fault(
        "speech/markup-hides-a-command",
        "quoted",
        'looks("\\n".join(_said(tokens)))',
        'looks("\\n".join(lines[first:last]))',
        (f"{_QUOTING}what_shows_the_word_is_quoted", f"{_SPEECH}what_decides_is_quoted"),
    ),
    Fault(
        "speech/targets-of-links-are-not-looked-at",
        "_said",
        "            yield from map(_target, token.children or ())\n",
        "",
        (f"{_QUOTING}what_shows_the_word_is_quoted",),
    ),
    Fault(
        "speech/disguised-characters",
        "_is_like_a_request",
        '_UNSEEN.sub("", unicodedata.normalize("NFKD", _UNSEEN.sub("", words))).casefold()',
        "words.casefold()",
        (f"{_SPEECH}what_decides_is_quoted",),
    ),
    Fault(
        "speech/letters-of-other-scripts",
        "_like",
        'rf"[{letter}[^\\x00-\\x7f]]"',
        'rf"[{letter}]"',
        (f"{_SPEECH}what_decides_is_quoted",),
    ),
    Fault(
        "speech/the-sign-of-requests",
        "spoken",
        "    if text.translate(_LOCKS) != text:\n",
        "    if False:\n",
        (f"{_SPEECH}the_sign_of_requests_is_not_the_models",),
    ),
    Fault(
        "speech/code-is-changed",
        "spoken",
        "text = outside_code(text, lambda line: line.translate(_LOCKS))",
        "text = text.translate(_LOCKS)",
        (f"{_SPEECH}the_sign_of_requests_is_not_the_models",),
    ),
    Fault(
        "speech/answers-as-they-are",
        "Replies.__init__",
        "channel.render(spoken(text))",
        "channel.render(text)",
        (f"{_SPEECH}however_an_answer_is_streamed_it_is_quoted", f"{_SPEECH}a_preview_shows_it_as_the_answer_does"),
    ),
    Fault(
        "speech/messages-as-they-are",
        "MessageTool._blocks",
        "(wish, spoken(asked.text))",
        "(wish, asked.text)",
        (f"{_SPEECH}wherever_the_model_speaks",),
    ),
    Fault(
        "speech/questions-as-they-are",
        "_body",
        "speech.spoken(ask.subject.strip())",
        "ask.subject.strip()",
        (f"{_SPEECH}wherever_the_model_speaks",),
    ),
    Fault(
        "speech/thoughts-leave-their-quotation",
        "SideMessages._quoted",
        "spoken(quote))",
        "quote)",
        (f"{_SPEECH}what_is_thought_does_not_leave_its_quotation",),
    ),
    Fault(
        "speech/options-look-like-decisions",
        "buttons",
        'speech.button(option, f"/answer {ident} #{number}")',
        'Button(option, f"/answer {ident} #{number}")',
        (f"{_SPEECH}wherever_the_model_speaks",),
    ),
    Fault(
        "speech/buttons-look-like-decisions",
        "_buttons",
        "return tuple(button(label, label) for label in labels)",
        "return tuple(Button(label, label) for label in labels)",
        (f"{_SPEECH}wherever_the_model_speaks",),
    ),
    Fault(
        "speech/presses-write-into-messages",
        "CommandRunner._chosen",
        "        if not label:  # no button",
        "        label = label or message.text\n        if not label:  # no button",
        (f"{_SPEECH}a_choice_that_no_button_offers_is_not_written_into_its_message",),
    ),
    Fault(
        "speech/names-are-markup",
        "called",
        '"".join(_IN_NAMES.findall(unicodedata.normalize("NFC", " ".join(name.split()))))',
        'unicodedata.normalize("NFC", name)',
        (f"{_SPEECH}names_are_names",),
    ),
    Fault(
        "speech/nobody-is-named",
        "MessageTool.run",
        "on_wish(guests) if guests else",
        "on_wish(guests) if False else",
        (f"{_GUESTS}it_says_on_whose_wish",),
    ),
    Fault(
        "speech/owners-are-named",
        "MessageTool._wishing",
        "if not self._given.conversations.people.is_owner(one)]",
        "if one]",
        (f"{_GUESTS}owners_alone_are_not_named_and_not_counted",),
    ),
    Fault(
        "speech/as-many-as-they-like",
        "Turns.plan_elsewhere",
        "if most and tool_messages.elsewhere(db, run.turn_id) + len(blocks) > most:",
        "if most and len(blocks) > most:",
        (
            f"{_GUESTS}only_three_and_each_of_them_one_message",
            f"{_GUESTS}the_count_holds_while_a_turn_is_parked_and_over_a_restart",
        ),
    ),
    Fault(
        "speech/what-follows-names-nobody",
        "MessageTool._blocks",
        "        if wish and more:\n",
        "        if wish and not first:\n",
        (f"{_GUESTS}only_three_and_each_of_them_one_message",),
    ),
    Fault(
        "speech/edits-elsewhere",
        "MessageTool._target",
        "(private or action.name not in LOOKS) and self._wishing(place)",
        "private and self._wishing(place)",
        (f"{_GUESTS}what_cannot_say_so_is_not_done_elsewhere",),
    ),
    Fault(
        "speech/others-are-asked-all-the-time",
        "Requests._not_asked",
        'return words.ENOUGH if asked >= FOR_GUESTS else ""',
        'return ""',
        (f"{_GUESTS}somebody_else_is_not_asked_again_and_again",),
    ),
    Fault(
        "speech/questions-of-nobody",
        "asked_in",
        'by = f" by {speech.who(channel, origin.sender, origin.sender_name)}" if origin.sender_name else ""',
        'by = ""',
        (f"{_GUESTS}what_a_guest_asks_somebody_else_says_who_asks",),
    ),
)
