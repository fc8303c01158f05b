"""Acts: whom the words of a conversation are shown to, whose words decide, and what is asked about."""

from tests.mutants import Fault, code, fault

_OTHERS = "tests/attacks/test_others_words.py::test_"

FAULTS: tuple[Fault, ...] = (
    fault(
        "acts/a-group-reads-direct-messages",
        "Room.sees_all",
        code("by_owners and self.owned and A", "by_owners and self.owned"),
        f"{_OTHERS}a_job_that_answers_in_a_group_sees_no_other_conversation",
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
        "MessageTool._sees",
        code("not self._wishing(place)", "True"),
        "tests/bot/runs/test_guests.py::test_what_cannot_say_so_is_not_done_elsewhere",
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
)
