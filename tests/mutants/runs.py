"""How turns begin, what they keep in memory, and what a crash leaves of them."""

from tests.mutants import Fault

FAULTS = (
    Fault(
        "runs/sweep-removed",
        "bot/service.py",
        "                await self.parts.lanes.sweep()\n",
        "",
        ("tests/bot/test_sweep.py::test_a_message_that_nobody_was_told_of_is_answered",),
    ),
    Fault(
        "runs/contexts-without-bound",
        "bot/contexts.py",
        "while self._tokens > self._max_tokens and self._cached:",
        "while False:",
        ("tests/bot/test_contexts.py::test_long_conversations_of_many_people_do_not_stay_in_memory",),
    ),
    Fault(
        "runs/contexts-not-counted",
        "bot/contexts.py",
        "self._tokens += context.tokens",
        "self._tokens += 1",
        ("tests/bot/test_contexts.py::test_long_conversations_of_many_people_do_not_stay_in_memory",),
    ),
    Fault(
        "runs/contexts-not-kept",
        "bot/contexts.py",
        "self._cached[transcript_id] = context",
        "return",
        ("tests/bot/test_contexts.py::test_long_conversations_of_many_people_do_not_stay_in_memory",),
    ),
    Fault(
        "runs/leftovers-not-ended",
        "agent/tools/leftovers.py",
        "def end_leftover(pid: int, pid_started: str) -> bool:\n",
        """\
def end_leftover(pid: int, pid_started: str) -> bool:
    return False


def never_called(pid: int, pid_started: str) -> bool:
""",
        ("tests/crash/test_leftovers.py::test_a_command_does_not_outlive_a_crash_and_the_next_start",),
    ),
    Fault(
        "runs/leftovers-not-remembered",
        "agent/tools/exec.py",
        'await context.started(process.pid, started or "")',
        "pass",
        ("tests/crash/test_leftovers.py::test_a_command_does_not_outlive_a_crash_and_the_next_start",),
    ),
)
