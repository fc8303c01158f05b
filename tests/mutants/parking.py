"""Turns that wait for a person, and what tools are made of."""

from tests.mutants import Fault

_PARKING = "tests/bot/approvals/test_parking.py::test_"
_MESSAGES = "tests/bot/runs/test_tool_messages.py::test_"
_SPECS = "tests/bot/runs/test_specs.py::test_"
_EXPLORER = "tests/crash/test_explorer.py::test_every_commit"

FAULTS = (
    Fault(
        "parking/decided-twice",
        "decide",
        "WHERE approval_id=? AND approval.state='open' AND (expires_at > ? OR ?='expired')",
        "WHERE approval_id=? AND (expires_at > ? OR ?='expired')",
        (f"{_PARKING}of_two_decisions_at_once_one_wins",),
    ),
    Fault(
        "parking/decided-too-late",
        "decide",
        "AND (expires_at > ? OR ?='expired')",
        "AND (?+1 OR ?='expired')",
        (f"{_PARKING}nobody_decides_in_time",),
    ),
    Fault(
        "parking/never-expires",
        "still_waits",
        "(expires_at is not None and expires_at > now)",
        "expires_at is not None",
        ("tests/bot/persistence/test_turns.py::test_a_turn_goes_on_without_a_decision_once_its_time_is_over",),
    ),
    Fault(
        "parking/decision-not-used-up",
        "Turns.start_calls",
        "used_at=iif(state='waiting', ?, NULL)",
        "used_at=iif(state='nothing', ?, NULL)",
        (f"{_PARKING}a_call_that_is_allowed_runs_once", f"{_EXPLORER}[typed]"),
    ),
    Fault(
        "parking/started-twice",
        "Turns.start_calls",
        "AND state IN ('asked','waiting')\"",
        "AND state='asked'\"",
        (f"{_EXPLORER}[typed]",),
    ),
    Fault(
        "parking/counts-for-anything",
        "Decision.allows",
        "return allowed and self.digest == ask.digest",
        "return allowed",
        (f"{_PARKING}a_decision_counts_for_what_was_shown",),
    ),
    Fault(
        "parking/denied-runs",
        "Pipeline._prepare",
        'if decision is not None and decision.state == "denied":',
        "if False:",
        (f"{_PARKING}a_call_that_is_not_allowed",),
    ),
    Fault(
        "parking/taken-for-the-end",
        "AgentEnd._ordinal",
        'return "end" if self.is_last else f"end.{self.run.attempt}"',
        'return "end"',
        (
            f"{_PARKING}parking_is_told_and_is_no_end",
            "tests/bot/gateway/test_approvals.py::test_a_stream_goes_on_behind_the_parking",
        ),
    ),
    Fault(
        "parking/goes-on-without-a-start",
        "Claims._take",
        "if epoch == 1 or outcome is not None:",
        "if epoch == 1:",
        (f"{_PARKING}parking_is_told_and_is_no_end",),
    ),
    Fault(
        "parking/started-anew-after-a-drain",
        "Claims._take",
        'db.execute("UPDATE turn SET outcome=NULL WHERE turn_id=?", (turn_id,))',
        "pass",
        (f"{_PARKING}what_was_decided_while_nobody_could_tell_the_lanes",),
    ),
    Fault(
        "parking/wait-ends",
        "bot/gateway/agent_api.py",
        "OPEN = (TurnState.QUEUED, TurnState.RUNNING, TurnState.PARKED)",
        "OPEN = (TurnState.QUEUED, TurnState.RUNNING)",
        ("tests/bot/gateway/test_approvals.py::test_a_wait_goes_on_while_the_run_is_parked",),
    ),
    Fault(
        "parking/stream-ends",
        "EventStream._kept",
        'self._over = self.run_id is not None and end["outcome"] != Outcome.PARKED',
        "self._over = self.run_id is not None",
        ("tests/bot/gateway/test_approvals.py::test_a_stream_goes_on_behind_the_parking",),
    ),
    Fault(
        "parking/clock-runs-on",
        "Approvals.park",
        "parked_on=?, {rows.STOP_CLOCK} WHERE turn_id=?",
        "parked_on=?, started_at=coalesce(started_at, ?) WHERE turn_id=?",
        (f"{_PARKING}only_running_time_counts",),
    ),
    Fault(
        "parking/stopped-and-still-waiting",
        "close_calls",
        '("running", "asked", "waiting") if asked',
        '("running", "asked") if asked',
        (f"{_PARKING}stopping_a_parked_turn",),
    ),
    Fault(
        "parking/stopped-and-still-to-be-decided",
        "close_run",
        "    approvals.give_up(db, turn_id, now)\n",
        "",
        (f"{_PARKING}stopping_a_parked_turn",),
    ),
    Fault(
        "parking/nobody-told-who-waited-behind-it",
        "CommandRunner._follow",
        "for session_key in {*kept.stopped.sessions} - at_work:",
        "for session_key in {*kept.stopped.sessions} & at_work:",
        (f"{_PARKING}what_waited_behind_a_turn_that_was_parked_and_stopped[/stop]",),
    ),
    Fault(
        "parking/nobody-told-who-waited-behind-an-abort",
        "AgentApi.abort",
        "if view.state is TurnState.PARKED:",
        "if view.state is TurnState.QUEUED:",
        (f"{_PARKING}what_waited_behind_a_turn_that_was_parked_and_stopped[abort]",),
    ),
    Fault(
        "tools/messages-not-asked-about",
        "close_calls",
        "tool_messages.of_call(db, turn_id, call_id) or (INTERRUPTED, True)",
        "(INTERRUPTED, True)",
        (f"{_MESSAGES}a_cut_call_is_told_what_became_of_its_messages", f"{_EXPLORER}[sends]"),
    ),
    Fault(
        "tools/never-closed",
        "Toolbox.open",
        "await made.enter_async_context(make(run))",
        "await make(run).__aenter__()",
        (f"{_SPECS}tools_are_closed_however_the_run_ends",),
    ),
    Fault(
        "tools/arguments-not-checked",
        "parse_arguments",
        'tool.parameters.model_validate_json(json_text.strip() or "{}")',
        'tool.parameters.model_construct(**json.loads(json_text.strip() or "{}"))',
        ("tests/agent/tools/test_schema.py::test_mistakes_are_explained",),
    ),
    Fault(
        "parking/what-is-allowed-for-always-is-known-too-late",
        "TurnRunner._execute",
        'if any(one.state == "always" for one in turn.decisions.values()):',
        "if False:",
        (
            "tests/agent/calls/test_pipeline.py"
            "::test_what_is_allowed_for_always_holds_for_the_turn_that_asked_however_soon_it_goes_on",
        ),
    ),
)
