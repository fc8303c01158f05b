"""Origins of text: what others wrote stays theirs, in its fence."""

from tests.mutants import Fault, code, fault, text

_WAYS_AROUND = "tests/attacks/test_ways_around.py::test_"
_FILE_ORIGINS = "tests/bot/runs/test_file_origins.py::test_"
_SPEECH = "tests/bot/test_speech.py::test_"

FAULTS: tuple[Fault, ...] = (
    fault(
        "origins/nobody-is-asked",
        "Pipeline._guarded",
        code("for_task(A, B, C, D)", "ask if ask is None else for_task(A, B, C, D)"),
        "tests/bot/runs/test_origins.py::test_what_stands_in_a_file_plans_nothing_without_a_question",
    ),
    fault(
        "origins/a-summary-washes-clean",
        "compose",
        code("merged(A)", "()"),
        "tests/bot/runs/test_origins.py::test_a_summary_bears_what_it_stands_for",
    ),
    fault(
        "origins/news-of-commands-are-of-people",
        "Pipeline._texts",
        code("of_others(A.message.text, labelled=bool(A.message.origins))", "A.message.text"),
        f"{_WAYS_AROUND}an_address_in_the_news_of_a_command",
    ),
    fault(
        "origins/rooms-of-others-are-ones-own",
        "sink_of",
        text("send", "room"),
        f"{_WAYS_AROUND}a_file_in_the_room_of_others[groups/telegram--7/leak.txt]",
    ),
    fault(
        "origins/commands-remember",
        "kept_of",
        code("(*KEPT_FOLDERS, _MEMORY)", "KEPT_FOLDERS"),
        "tests/agent/sandbox/test_kept.py::test_what_is_missing_is_made_so_that_nobody_else_can",
    ),
    fault(
        "origins/files-bear-nothing",
        "FileTool._noted",
        code("A.bears()", "()"),
        f"{_FILE_ORIGINS}a_file_bears_what_it_was_made_from_in_later_conversations",
    ),
    fault(
        "origins/edits-wash-clean",
        "FileOrigins.rewrite",
        code("merged((*A, *B))", "tuple(A)"),
        f"{_FILE_ORIGINS}each_way_into_a_file_keeps_what_the_rest_was_made_from",
    ),
    fault(
        "origins/any-content-of-a-path",
        "_of",
        text("digest=?", "digest<>?||''"),
        f"{_FILE_ORIGINS}what_somebody_has_changed_outside_is_a_file_again",
    ),
    fault(
        "origins/commands-show-clean",
        "ExecTool._run",
        code("merged((*before, *after))", "()"),
        f"{_FILE_ORIGINS}a_command_shows_what_lies_in_its_room",
    ),
    fault(
        "origins/times-that-programs-set",
        "KnownFiles._changed",
        code("A.st_ctime_ns", "A.st_mtime_ns"),
        f"{_FILE_ORIGINS}what_a_command_with_network_has_written_is_not_trusted",
    ),
    fault(
        "origins/news-bear-nothing",
        "Dispatcher.command_over",
        code(
            "Leftover(A.process.pid, A.started, A.session_key, A.key, told=B, origins=C)",
            "Leftover(A.process.pid, A.started, A.session_key, A.key, told=B, origins=())",
        ),
        f"{_FILE_ORIGINS}what_one_in_the_background_writes_is_not_trusted_while_it_runs_and_after",
    ),
    fault(
        "origins/known-contents-are-tainted",
        "FileOrigins.settle",
        text("NOTHING", "UPDATE SET origins=excluded.origins"),
        f"{_FILE_ORIGINS}a_content_that_was_known_stays_what_it_was",
    ),
    fault(
        "origins/jobs-start-clean",
        "Dispatcher._run",
        code("A.origins", "()"),
        f"{_FILE_ORIGINS}what_is_planned_bears_what_it_was_made_from",
    ),
    fault(
        "origins/beats-start-clean",
        "Beats._start",
        code("A.origins", "()"),
        f"{_FILE_ORIGINS}a_beat_bears_what_its_file_was_made_from",
    ),
    fault(
        "origins/damage-is-trusted",
        "origins",
        code("UNREADABLE if A else ()", "()"),
        f"{_FILE_ORIGINS}damaged_rows_are_not_trusted",
    ),
    fault(
        "origins/notes-wash-clean",
        "flush",
        code("merged((*A.origins, *B.all_origins))", "A.origins"),
        "tests/bot/runs/test_compaction.py::test_notes_are_not_made_from_files_of_others",
    ),
    fault(
        "origins/commands-of-the-host-only-look",
        "SINKS",
        code(
            "{'look': 'look', 'work': 'work', 'network': 'network', 'host': 'open'}",
            "{'look': 'look', 'work': 'work', 'network': 'network', 'host': 'look'}",
        ),
        "tests/attacks/test_attacks.py::test_an_order_is_asked_about_and_denied_it_has_no_effect[a document]",
    ),
    fault(
        "origins/messages-to-others-only-look",
        "MessageTool.sink",
        text("send", "look"),
        "tests/attacks/test_attacks.py::test_an_order_is_asked_about_and_denied_it_has_no_effect[a document]",
    ),
    fault(
        "origins/what-the-bot-wrote-here-is-clean",
        "MessageTool.run",
        code("A.bears()", "()"),
        f"{_WAYS_AROUND}what_the_bot_wrote_from_another_conversation",
    ),
    fault(
        "inbound/what-was-deleted-is-answered",
        "change",
        text("state='withdrawn', turn_id=NULL", "turn_id=NULL"),
        "tests/bot/inbound/test_edits.py::test_what_waits_is_replaced_or_withdrawn_also_from_another_thread",
    ),
    fault(
        "inbound/fences-can-be-left",
        "fenced",
        code("harmless(A) or '(no text)'", "A or '(no text)'"),
        "tests/bot/test_compose.py::test_nothing_passes_for_a_head_or_a_fence",
    ),
    fault(
        "inbound/names-can-leave-their-marks",
        "_IN_NAMES",
        text('"“”„‟″＂', "“”"),
        "tests/bot/test_compose.py::test_a_name_stays_between_its_marks",
    ),
    fault(
        "speech/disguised-characters",
        "_is_like_a_request",
        code("_UNSEEN.sub('', unicodedata.normalize('NFKD', _UNSEEN.sub('', A)))", "A"),
        f"{_SPEECH}what_decides_is_quoted",
    ),
    fault(
        "speech/answers-as-they-are",
        "Replies.__init__",
        code("spoken(A)", "A"),
        f"{_SPEECH}however_an_answer_is_streamed_it_is_quoted",
        f"{_SPEECH}a_preview_shows_it_as_the_answer_does",
    ),
    fault(
        "speech/messages-as-they-are",
        "MessageTool._blocks",
        code("spoken(A.text)", "A.text"),
        f"{_SPEECH}wherever_the_model_speaks",
    ),
    fault(
        "memory-write/what-is-kept-loses-its-sources",
        "Filing._file.change",
        code("A(B, C, D, E, keeps=not F, otherwise=())", "A(B, C, D, (), keeps=not F, otherwise=())"),
        "tests/bot/memory/test_memory_write.py::test_a_kept_memory_bears_its_sources_when_it_is_read_again",
    ),
    fault(
        "memory-write/commands-see-rooms",
        "Confinement.launch",
        code("(*self.hidden, *_rooms_in(A))", "self.hidden"),
        "tests/attacks/test_scopes.py::test_no_way_leads_into_another_scope[1]",
    ),
    fault(
        "prompt/a-guest-writes-instructions",
        "_instructions",
        code("A[:-1]", "A"),
        "tests/agent/test_workspace_files.py::test_instructions_are_read_from_the_workspace_down_to_above_the_room",
    ),
    fault(
        "sessions/what-is-typed-is-syntax",
        "query",
        code("'\"{}\"*'.format(A.replace('\"', '\"\"'))", "A"),
        "tests/bot/store/test_search.py::test_nothing_that_is_typed_is_syntax",
    ),
    fault(
        "sessions/words-of-a-guest-are-the-owner-s",
        "Sessions.copy",
        code("merged((A, *B.origins))", "B.origins"),
        "tests/bot/sessions/test_sessions.py::test_what_was_said_elsewhere_is_copied_and_bears_who_said_it",
    ),
    fault(
        "sessions/exports-show-secrets",
        "Sessions.export.make",
        code("self.clean(A)", "A"),
        "tests/bot/sessions/test_sessions.py::test_secrets_stay_masked",
    ),
    fault(
        "sessions/a-file-is-trusted",
        "_from",
        code("replace(A, parts=B, origins=C)", "A"),
        "tests/bot/sessions/test_foreign.py::test_nothing_in_it_is_trusted",
    ),
    fault(
        "sessions/the-log-stays",
        "_wipe",
        text("wal_checkpoint(TRUNCATE)", "wal_checkpoint(PASSIVE)"),
        "tests/bot/sessions/test_forgetting.py::test_no_byte_of_somebody_is_left",
    ),
    fault(
        "extensions/an-unknown-effect-is-harmless",
        "Pipeline._guarded",
        code("A if A in get_args(Sink) else 'open'", "A"),
        "tests/bot/config/test_extensions.py::test_what_a_tool_does_wrong_is_an_error_of_its_call",
    ),
)
