"""What comes in: rapid messages, edits and deletions, what the model is told, and the files that come along."""

from tests.mutants import Fault

_DEBOUNCE = "tests/bot/inbound/test_debounce.py::test_"
_EDITS = "tests/bot/inbound/test_edits.py::test_"
_MEDIA = "tests/bot/runs/test_media.py::test_"
_COMPOSE = "tests/bot/test_compose.py::test_"

FAULTS = (
    Fault(
        "inbound/each-message-by-itself",
        "_together",
        "if gathering and row[3] == gathering",
        "if False",
        (f"{_DEBOUNCE}rapid_messages_get_one_answer_and_keep_their_lines",),
    ),
    Fault(
        "inbound/wait-without-end",
        "bot/persistence/inbox.py",
        "GATHER_MOST = 5",
        "GATHER_MOST = 50",
        (f"{_DEBOUNCE}who_never_pauses_is_answered_all_the_same",),
    ),
    Fault(
        "inbound/the-wait-of-somebody-else",
        "_gathered",
        "AND conv_id=? AND sender=?",
        "AND conv_id=? AND sender<>-?",
        ("tests/bot/persistence/test_inbox.py::test_what_gathers_is_taken_together_and_ready_at_a_start",),
    ),
    Fault(
        "inbound/a-command-leaves-others-waiting",
        "_gathered",
        "item.session_key if ends else None",
        "None",
        (f"{_DEBOUNCE}media_and_commands_end_the_wait",),
    ),
    Fault(
        "inbound/the-wait-outlives-a-crash",
        "Service._recover",
        "        await store.recovery.ready()\n",
        "",
        (f"{_DEBOUNCE}a_restart_ends_the_wait",),
    ),
    Fault(
        "inbound/parts-of-a-message-apart",
        "_part",
        "message.part_of or seq",
        "seq",
        (f"{_DEBOUNCE}the_parts_of_a_message_are_one_also_without_a_window",),
    ),
    Fault(
        "inbound/an-edit-of-what-is-being-answered-is-lost",
        "change",
        'edited and state == "taken"',
        "False",
        (f"{_EDITS}an_edit_during_the_answer_is_taken_next_and_said_once",),
    ),
    Fault(
        "inbound/what-was-deleted-is-answered",
        "change",
        "SET state='withdrawn', turn_id=NULL",
        "SET turn_id=NULL",
        (f"{_EDITS}what_waits_is_replaced_or_withdrawn_also_from_another_thread",),
    ),
    Fault(
        "inbound/all-edits-are-mentioned",
        "change",
        "SET reason='{Cause.NOTED}' WHERE conv_id=?",
        "SET reason=reason WHERE conv_id=?",
        (f"{_EDITS}what_was_answered_is_mentioned_once_at_the_next_turn",),
    ),
    Fault(
        "inbound/edits-of-an-old-conversation-are-mentioned",
        "noted",
        "WHERE transcript_id=? AND turn_id",
        "WHERE transcript_id<>-? AND turn_id",
        (f"{_EDITS}a_new_conversation_is_not_told_of_the_old_one",),
    ),
    Fault(
        "inbound/link-previews-are-edits",
        "change",
        "words.text == message.text",
        "False",
        (f"{_EDITS}an_edit_that_changes_no_word_is_ignored",),
    ),
    Fault(
        "inbound/fences-can-be-left",
        "fenced",
        'return f"<{tag}{about}>", harmless(text) or',
        'return f"<{tag}{about}>", text or',
        (f"{_COMPOSE}nothing_passes_for_a_head_or_a_fence",),
    ),
    Fault(
        "inbound/names-can-leave-their-marks",
        "bot/compose.py",
        "dict.fromkeys('\"“”„‟″＂', \"'\")",
        "dict.fromkeys('“”', \"'\")",
        (f"{_COMPOSE}a_name_stays_between_its_marks",),
    ),
    Fault(
        "inbound/files-are-told-of-twice",
        "Media.of",
        "any(entry.message.mark is Mark.FILES for entry in own)",
        "False",
        (f"{_MEDIA}a_run_that_goes_on_fetches_and_tells_nothing_twice",),
    ),
    Fault(
        "inbound/what-is-there-is-fetched-again",
        "_fetched",
        "return await asyncio.to_thread(saved)",
        "pass",
        (f"{_MEDIA}what_was_saved_before_a_crash_is_not_fetched_again",),
    ),
    Fault(
        "inbound/files-without-a-bound",
        "_downloaded",
        "                break\n    if max(size, len(content)) > MAX_FILE_BYTES:",
        "                pass\n    if size > MAX_FILE_BYTES:",
        (f"{_MEDIA}everything_is_bounded",),
    ),
    Fault(
        "inbound/no-image-is-shown",
        "Loop._messages",
        "            messages = await self._spec.images.loaded(messages)\n",
        "",
        (f"{_MEDIA}files_are_saved_and_shown_as_far_as_they_can_be",),
    ),
    Fault(
        "inbound/a-refused-image-ends-the-conversation",
        "agent/runner.py",
        "ErrorKind.INVALID_REQUEST: (A.NO_IMAGES, A.NEXT_MODEL)",
        "ErrorKind.INVALID_REQUEST: (A.NEXT_MODEL,)",
        (f"{_MEDIA}an_image_that_the_provider_refuses_does_not_end_the_conversation",),
    ),
    Fault(
        "inbound/files-are-sent-as-words",
        "MessageTool._blocks",
        "action=Action.FILE, file=file",
        "action=Action.SEND, file=file",
        ("tests/bot/runs/test_messaging.py::test_what_actions_become_here",),
    ),
    Fault(
        "inbound/deletions-of-strangers-kept",
        "Inbox._change",
        "if made.item.reason is Cause.TOO_LATE and",
        "if False and",
        ("tests/bot/inbound/test_edits.py::test_a_deletion_of_what_is_not_known_leaves_nothing",),
    ),
)
