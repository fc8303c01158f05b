"""Acts: whom the words of a conversation are shown to, whose words decide, and what is asked about."""

from tests.mutants import Fault, code, fault

_READ = "tests/attacks/test_what_commands_read.py::test_"
_CHOICE = "tests/attacks/test_choice_of_addresses.py::test_"
_SEEN = "tests/bot/runs/test_rooms.py::test_"
_OTHERS = "tests/attacks/test_others_words.py::test_"

FAULTS: tuple[Fault, ...] = (
    fault(
        "acts/a-group-reads-direct-messages",
        "Room.sees_all",
        code("by_owners and self.owned and A", "by_owners and self.owned"),
        f"{_SEEN}everything_is_seen_only_where_owners_alone_read",
    ),
    fault(
        "acts/an-owner-in-a-group-reads-direct-messages",
        "Room.sees_all",
        code("by_owners and self.owned and A", "by_owners"),
        f"{_OTHERS}a_group_reads_only_itself_on_the_platform",
        f"{_OTHERS}a_group_finds_only_its_own_words",
        f"{_OTHERS}a_group_sees_the_jobs_of_itself_alone",
    ),
    fault(
        "acts/a-guest-reads-other-conversations",
        "Room.sees_all",
        code("by_owners and self.owned and A", "self.owned and A"),
        f"{_SEEN}everything_is_seen_only_where_owners_alone_read",
    ),
    fault(
        "acts/a-job-in-a-group-has-the-memory-of-owners",
        "Dispatcher._run",
        code("job_key(job.job_id, A)", "job_key(job.job_id)"),
        f"{_OTHERS}a_job_that_answers_in_a_group_sees_no_other_conversation",
    ),
    fault(
        "acts/a-group-resumes-any-transcript",
        "SessionCommands.build",
        code("Resume(self, session, transcript) if A else B", "Resume(self, session, transcript)"),
        f"{_OTHERS}a_group_goes_on_with_no_transcript_of_others",
    ),
    fault(
        "acts/programs-decide-by-words",
        "InboundMessage.by_hand",
        code("self.typed or A", "True"),
        "tests/bot/approvals/test_plain_words.py::"
        "test_what_a_program_says_in_the_session_of_the_terminal_decides_nothing",
    ),
    fault(
        "acts/any-caller-says-that-a-person-typed-it",
        "AgentRoutes.submit",
        code("body.typed and place is CONSOLE", "body.typed"),
        "tests/wire/test_approvals_programs.py::"
        "test_a_run_that_waits_is_decided_by_programs_the_command_line_and_the_terminal",
    ),
    fault(
        "acts/any-output-is-covered-by-a-rule",
        "ExecTool.covers",
        code("verdict.by_operator and A", "verdict.by_operator"),
        f"{_READ}an_order_in_a_file_from_outside_acts_nowhere",
    ),
    fault(
        "acts/output-of-one-command-covers-another",
        "ExecTool.covers",
        code("origin.sender == A", "True"),
        f"{_READ}no_command_asks_again_because_of_what_it_has_printed",
    ),
    fault(
        "acts/output-of-a-command-covers-it-at-any-level",
        "_same",
        code("[parameters.command, A, B, C]", "[parameters.command]"),
        f"{_READ}what_a_command_has_printed_gives_it_no_more_than_it_had",
    ),
    fault(
        "acts/a-known-path-is-a-known-content",
        "KnownFiles._has_unknown",
        code("(path, A) not in known", "False"),
        f"{_READ}what_the_model_and_its_commands_have_made_is_known",
    ),
    fault(
        "acts/input-to-any-command-is-work",
        "ProcessTool.sink",
        code("SINKS[A]", "'work'"),
        "tests/attacks/test_ways_around.py::test_who_may_work_feeds_no_shell_with_the_network",
    ),
    fault(
        "acts/a-folder-of-a-guest-is-a-room-of-others",
        "sink_of",
        code("room is None or not room.whole(())", "True"),
        "tests/attacks/test_ways_around.py::test_a_guest_puts_no_request_into_the_chat_of_an_owner",
    ),
    fault(
        "acts/a-guest-lets-an-owner-be-asked",
        "Pipeline._guarded",
        code("context.as_guest", "False"),
        "tests/attacks/test_ways_around.py::test_what_a_guest_may_not_do_is_refused_not_asked",
    ),
    fault(
        "acts/the-choice-of-addresses-is-free",
        "Turns.start_calls",
        code("db.executemany(A, counted)", "pass"),
        f"{_CHOICE}a_word_is_not_spelled_by_addresses",
        f"{_CHOICE}it_is_counted_over_turns_restarts_and_until_new",
    ),
    fault(
        "acts/calls-beside-each-other-are-not-counted",
        "Pipeline._followed",
        code("A + self._follows", "A"),
        f"{_CHOICE}a_word_is_not_spelled_by_addresses",
    ),
    fault(
        "acts/sub-agents-begin-to-count-anew",
        "_task_of",
        code("root_of(session_key)", "session_key"),
        f"{_CHOICE}sub_agents_count_with_the_conversation_that_started_them",
    ),
    fault(
        "acts/what-was-passed-on-counts-as-named-by-a-person",
        "Pipeline._trusted_texts",
        code("entry.kind == 'user' and A", "entry.kind == 'user'"),
        f"{_CHOICE}what_was_passed_on_is_no_word_of_a_person",
    ),
)
