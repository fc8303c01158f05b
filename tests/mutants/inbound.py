"""What comes in: rapid messages, edits and deletions, what the model is told, and the files that come along."""

from tests.mutants import Fault

_DEBOUNCE = "tests/bot/inbound/test_debounce.py::test_"
_EDITS = "tests/bot/inbound/test_edits.py::test_"
_MEDIA = "tests/bot/runs/test_media.py::test_"
_COMPOSE = "tests/bot/test_compose.py::test_"

FAULTS = (
    Fault(
        "inbound/each-message-by-itself",
        "bot/store/claims.py",
        "(gathering and row[3] == gathering)",
        "False",
        (f"{_DEBOUNCE}rapid_messages_get_one_answer_and_keep_their_lines",),
    ),
    Fault(
        "inbound/wait-without-end",
        "bot/persistence/values.py",
        "GATHER_MOST = 5",
        "GATHER_MOST = 50",
        (f"{_DEBOUNCE}who_never_pauses_is_answered_all_the_same",),
    ),
    Fault(
        "inbound/the-wait-of-somebody-else",
        "bot/store/inbox.py",
        "AND conv_id=? AND sender=?",
        "AND conv_id=? AND sender<>-?",
        ("tests/bot/persistence/test_inbox.py::test_what_gathers_is_taken_together_and_ready_at_a_start",),
    ),
    Fault(
        "inbound/a-command-leaves-others-waiting",
        "bot/store/inbox.py",
        "item.session_key if ends else None",
        "None",
        (f"{_DEBOUNCE}media_and_commands_end_the_wait",),
    ),
    Fault(
        "inbound/the-wait-outlives-a-crash",
        "bot/service.py",
        "        await store.recovery.ready()\n",
        "",
        (f"{_DEBOUNCE}a_restart_ends_the_wait",),
    ),
    Fault(
        "inbound/parts-of-a-message-apart",
        "bot/store/claims.py",
        "message.part_of or seq",
        "seq",
        (f"{_DEBOUNCE}the_parts_of_a_message_are_one_also_without_a_window",),
    ),
    Fault(
        "inbound/an-edit-of-what-is-being-answered-is-lost",
        "bot/store/edits.py",
        'edited and state == "taken"',
        "False",
        (f"{_EDITS}an_edit_during_the_answer_is_taken_next_and_said_once",),
    ),
    Fault(
        "inbound/what-was-deleted-is-answered",
        "bot/store/edits.py",
        "SET state='withdrawn', turn_id=NULL",
        "SET turn_id=NULL",
        (f"{_EDITS}what_waits_is_replaced_or_withdrawn_also_from_another_thread",),
    ),
    Fault(
        "inbound/all-edits-are-mentioned",
        "bot/store/edits.py",
        "SET reason='noted' WHERE conv_id=?",
        "SET reason=reason WHERE conv_id=?",
        (f"{_EDITS}what_was_answered_is_mentioned_once_at_the_next_turn",),
    ),
    Fault(
        "inbound/edits-of-an-old-conversation-are-mentioned",
        "bot/store/edits.py",
        "AND transcript_id=?",
        "AND transcript_id<>-?",
        (f"{_EDITS}a_new_conversation_is_not_told_of_the_old_one",),
    ),
    Fault(
        "inbound/link-previews-are-edits",
        "bot/store/edits.py",
        "words.text == message.text",
        "False",
        (f"{_EDITS}an_edit_that_changes_no_word_is_ignored",),
    ),
    Fault(
        "inbound/fences-can-be-left",
        "bot/compose.py",
        'return f"<{tag}{about}>", harmless(text) or',
        'return f"<{tag}{about}>", text or',
        (f"{_COMPOSE}nothing_passes_for_a_head_or_a_fence",),
    ),
    Fault(
        "inbound/names-can-leave-their-marks",
        "bot/compose.py",
        "maketrans('\"<>[]', \"'‹›()\")",
        "maketrans('<>[]', \"‹›()\")",
        (f"{_COMPOSE}a_name_stays_between_its_marks",),
    ),
    Fault(
        "inbound/files-are-told-of-twice",
        "bot/runs/media.py",
        "any(entry.message.mark is Mark.FILES for entry in own)",
        "False",
        (f"{_MEDIA}a_run_that_goes_on_fetches_and_tells_nothing_twice",),
    ),
    Fault(
        "inbound/what-is-there-is-fetched-again",
        "bot/runs/media.py",
        "return await asyncio.to_thread(saved)",
        "pass",
        (f"{_MEDIA}what_was_saved_before_a_crash_is_not_fetched_again",),
    ),
    Fault(
        "inbound/files-without-a-bound",
        "bot/runs/media.py",
        "                break\n    if max(size, len(content)) > MAX_FILE_BYTES:",
        "                pass\n    if size > MAX_FILE_BYTES:",
        (f"{_MEDIA}everything_is_bounded",),
    ),
    Fault(
        "inbound/no-image-is-shown",
        "agent/loop.py",
        "            messages = await self._spec.images.shown(messages)\n",
        "",
        (f"{_MEDIA}files_are_saved_and_shown_as_far_as_they_can_be",),
    ),
    Fault(
        "inbound/a-refused-image-ends-the-conversation",
        "agent/runner.py",
        "error.kind is ErrorKind.INVALID_REQUEST and self._loop.hide_images()",
        "False",
        (f"{_MEDIA}an_image_that_the_provider_refuses_does_not_end_the_conversation",),
    ),
    Fault(
        "inbound/files-are-sent-as-words",
        "bot/runs/messaging.py",
        "action=Action.FILE, file=file",
        "action=Action.SEND, file=file",
        ("tests/bot/runs/test_messaging.py::test_what_actions_become_here",),
    ),
    Fault(
        "inbound/deletions-of-strangers-kept",
        "bot/store/inbox.py",
        "if made.item.reason == edits.UNKNOWN and",
        "if False and",
        ("tests/bot/inbound/test_edits.py::test_a_deletion_of_what_is_not_known_leaves_nothing",),
    ),
)
