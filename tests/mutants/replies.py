"""What is shown of an answer, and besides it."""

from tests.mutants import Fault

_ASIDES = "tests/bot/replies/test_side_messages.py::test_"

FAULTS = (
    Fault(
        "replies/aside-taken-for-words",
        "SideMessages._aside",
        'replace(one, said="", silent=True)',
        "replace(one, silent=True)",
        (f"{_ASIDES}calls_of_a_batch_are_one_message_without_a_sound_before_they_run",),
    ),
    Fault(
        "replies/aside-with-a-sound",
        "SideMessages._aside",
        'replace(one, said="", silent=True)',
        'replace(one, said="")',
        (f"{_ASIDES}calls_of_a_batch_are_one_message_without_a_sound_before_they_run",),
    ),
    Fault(
        "replies/aside-between-two-blocks-parts-them",
        "_pieces",
        " WHERE turn_id=? AND said<>''",
        " WHERE turn_id=?",
        (f"{_ASIDES}reasoning_between_two_blocks_does_not_part_them",),
    ),
    Fault(
        "replies/aside-shown-again",
        "SideMessages._aside",
        "side_message(self._turn_id, self._step, name)",
        'side_message(self._turn_id, self._step, f"{name}{id(self._numbers)}")',
        (f"{_ASIDES}what_was_shown_is_not_shown_again",),
    ),
    Fault(
        "replies/reasoning-of-a-silent-answer",
        "SideMessages.around",
        "before = self.before() if says else ()",
        "before = self.before()",
        (f"{_ASIDES}reasoning_stands_before_the_words_of_its_answer",),
    ),
    Fault(
        "replies/reasoning-of-what-a-tool-has-said",
        "SideMessages.around",
        "any(not block.unless for block in blocks)",
        "bool(blocks)",
        (f"{_ASIDES}what_a_tool_has_said_needs_no_reasoning",),
    ),
    Fault(
        "replies/reasoning-behind-a-preview",
        "RunJournal.__init__",
        "self._words, self._sent_as",
        "self._plan, self._sent_as",
        (f"{_ASIDES}reasoning_stands_before_a_preview",),
    ),
    Fault(
        "replies/anybody-shows-reasoning-in-groups",
        "bot/runs/settings_commands.py",
        "others_read and not call.by_owner",
        "False",
        (f"{_ASIDES}in_groups_owners_decide_about_reasoning",),
    ),
    Fault(
        "replies/arguments-of-calls-for-everybody",
        "RunJournal.__init__",
        "in_full=self._to_owner",
        "in_full=True",
        (f"{_ASIDES}whoever_is_no_owner_sees_names_only",),
    ),
    Fault(
        "replies/secrets-in-calls",
        "subject",
        "mask_text(first.strip()[:1000])",
        "first.strip()[:1000]",
        (f"{_ASIDES}a_call_is_one_line_without_markup_and_secrets",),
    ),
    Fault(
        "replies/a-setting-changes-the-others",
        "Settings.change",
        "json_set(settings, '$.' || ?, ?)",
        "json_object(?, ?)",
        ("tests/bot/persistence/test_commands.py::test_a_setting_is_its_sessions_from_the_next_claim_on_and_set_once",),
    ),
    Fault(
        "replies/settings-unknown-to-the-run",
        "Claims._take",
        "codec.SETTINGS.load(settings, SessionSettings())",
        "SessionSettings()",
        (f"{_ASIDES}what_is_set_is_said_shown_and_kept",),
    ),
    Fault(
        "replies/any-words-are-the-id-of-a-message",
        "Replies._reply_to",
        "(not chosen or re.fullmatch(known, chosen, re.ASCII))",
        "True",
        ("tests/wire/test_replies.py::test_streams_of_all_shapes_are_shown_as_they_should_be[block]",),
    ),
    Fault(
        "replies/rendered-by-the-first-account",
        "TurnRunner.journal",
        "serving or outbox.channel(",
        "outbox.channel(",
        ("tests/wire/test_accounts.py::test_each_account_renders_by_its_own_settings",),
    ),
    Fault(
        "replies/messages-of-tools-rendered-by-the-first-account",
        "MessageTool._blocks",
        "notice(source, text, channel, _buttons",
        "notice(source, text, channel.name, _buttons",
        ("tests/wire/test_accounts.py::test_each_account_renders_by_its_own_settings",),
    ),
    Fault(
        "replies/links-without-their-addresses",
        "Replies.end",
        "self._defined = _defined(words) if self._cites and self._channel is not None else {}",
        "self._defined = {}",
        ("tests/bot/replies/test_replies.py::test_links_find_an_address_that_stands_in_a_later_block",),
    ),
    Fault(
        "replies/links-that-wait-for-nothing",
        "Replies.feed",
        "if not words or self._waits or self._cites:",
        "if not words or self._waits:",
        ("tests/bot/replies/test_replies.py::test_links_find_an_address_that_stands_in_a_later_block",),
    ),
)
