"""What people command."""

from tests.mutants import Fault

FAULTS = (
    Fault(
        "commands/stop-drops-what-came-later",
        "_stop",
        "AND seq < ? AND {_SAID_AT} <= ? RETURNING",
        "AND seq <> ? AND {_SAID_AT} <= ? RETURNING",
        ("tests/bot/store/test_commands.py::test_what_is_written_after_a_stop_is_not_dropped_by_it",),
    ),
    Fault(
        "commands/carried-out-twice",
        "begin",
        'if state != "waiting":',
        "if False:",
        ("tests/bot/store/test_commands.py::test_a_command_has_its_effect_once",),
    ),
    Fault(
        "commands/stop-still-says-what-was-planned",
        "stop_turn",
        "turn_id=? AND state IN ('planned','unknown')",
        "turn_id=? AND state='unknown'",
        ("tests/bot/inbound/test_commands.py::test_stop_takes_back_what_was_not_sent_yet",),
    ),
    Fault(
        "commands/not-carried-out-after-a-restart",
        "Service.start",
        "await self._once_possible(parts.commands.recover)",
        "pass",
        (
            "tests/bot/inbound/test_commands.py::test_a_command_that_was_accepted_before_the_end_is_carried_out_after_the_start",
        ),
    ),
    Fault(
        "commands/stop-forgets-what-is-in-doubt",
        "stop_turn",
        "turn_id=? AND state IN ('planned','unknown')",
        "turn_id=? AND state='planned'",
        ("tests/bot/test_refused.py::test_what_is_stopped_while_its_outcome_is_unknown_stays_uncertain",),
    ),
)
