"""Voice messages, spoken answers and documents."""

from tests.mutants import Fault

_HEARD = "tests/bot/voice/test_transcription.py"
_SAID = "tests/bot/voice/test_speech.py"
_DOCUMENTS = "tests/bot/runs/test_documents.py"

FAULTS = (
    Fault(
        "voice/written-down-again",
        "_kept",
        'await workspace.write(path, words.encode(errors="replace"), "create")',
        "pass",
        (f"{_HEARD}::test_it_is_written_down_and_told_once_whatever_crashes",),
    ),
    Fault(
        "voice/own-words-are-a-file",
        "_origins",
        "for one in message.attachments if not one.spoken",
        "for one in message.attachments",
        (f"{_HEARD}::test_it_bears_the_origin_of_its_sender_alone",),
    ),
    Fault(
        "voice/video-messages-are-not-heard",
        "Media.of",
        "(file.spoken or file.kind",
        "(file.kind",
        (f"{_HEARD}::test_what_is_said_in_a_video_message_is_the_persons_words_too",),
    ),
    Fault(
        "voice/words-passed-on-are-own",
        "said_aloud",
        "if message.forwarded is None:",
        "if True:",
        (f"{_HEARD}::test_a_recording_that_is_passed_on_is_somebody_elses_words",),
    ),
    Fault(
        "voice/secrets-for-the-program",
        "Transcriber._run",
        "env = scrubbed(os.environ)",
        "env = os.environ",
        (f"{_HEARD}::test_a_program_hears_without_the_secrets_of_the_service",),
    ),
    Fault(
        "voice/imitates-a-request",
        "Media._heard",
        "spoken(f",
        "str(f",
        (f"{_HEARD}::test_nobody_imitates_the_mark_of_spoken_words",),
    ),
    Fault(
        "voice/code-said-aloud",
        "speakable",
        "if one.style.type is EntityType.PRE:",
        "if False:",
        (f"{_SAID}::test_code_is_left_out_and_of_long_answers_the_beginning_is_said",),
    ),
    Fault(
        "voice/sending-while-it-is-made",
        "Outbox.planning",
        " and not (blocks[0].file and blocks[0].file.says)",
        "",
        (f"{_SAID}::test_what_is_still_to_be_made_is_not_sending_when_it_is_planned",),
    ),
    Fault(
        "documents/bomb",
        "read",
        "if sum(one.file_size for one in packed.infolist()) > MAX_UNPACKED:",
        "if False:",
        (f"{_DOCUMENTS}::test_what_is_damaged_locked_or_a_bomb_is_refused",),
    ),
    Fault(
        "documents/known-by-name",
        "is_document",
        "any(part in content for part in _PARTS)",
        "_PARTS[0] in content[:64]",
        (f"{_DOCUMENTS}::test_it_is_known_by_what_is_in_it_whatever_its_name_is",),
    ),
    Fault(
        "documents/a-long-sheet-is-not-read",
        "read",
        " or time.monotonic() > until",
        "",
        (f"{_DOCUMENTS}::test_of_a_sheet_that_is_too_long_the_first_pages_are_read",),
    ),
    Fault(
        "voice/said-to-the-endpoint-unasked",
        "Outbox._carry_out_next",
        "None if forbidden or not delivery.file or",
        "None if not delivery.file or",
        (f"{_SAID}::test_a_guard_is_asked_about_the_words_before_the_sound_is_made",),
    ),
    Fault(
        "voice/a-plain-file-in-discord",
        "post",
        "if delivery.file and delivery.file.says else {}",
        "if False else {}",
        ("tests/wire/test_discord_channel.py::test_a_spoken_answer_is_a_voice_message",),
    ),
)
