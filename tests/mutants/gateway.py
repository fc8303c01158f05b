"""The port: how long and how many may hold it, when it opens, and what it tells to whom."""

from tests.mutants import Fault

_LISTENER = "tests/bot/gateway/test_listener.py::test_"

FAULTS = (
    Fault(
        "gateway/open-before-the-store-is",
        "Gateway._once_open",
        'if not self._open and scope["path"] not in HEALTH:',
        "if False:",
        ("tests/bot/cli/test_full_disk.py::test_the_service_waits_red_and_goes_on_by_itself",),
    ),
    Fault(
        "gateway/every-failed-accept-is-a-line",
        "tell_failures.tell",
        "loop.time() - told >= _FAILURE_SECONDS",
        "True",
        (f"{_LISTENER}failed_accepts_are_one_line",),
    ),
    Fault(
        "gateway/lasting-answers-without-bound",
        "let_last",
        "if not connection.lasts():",
        "if connection.lasts() is None:",
        (f"{_LISTENER}answers_that_last_are_bounded_and_give_their_places_back",),
    ),
    Fault(
        "gateway/waits-outlive-their-clients",
        "unless_left",
        "(working, leaving)",
        "(working,)",
        (f"{_LISTENER}answers_that_last_are_bounded_and_give_their_places_back[/v1/agent/{{run}}?wait=3600]",),
    ),
    Fault(
        "gateway/a-command-that-asks-ends-its-run",
        "become_message",
        "replace(begun, turn_id=None)",
        "begun",
        ("tests/bot/gateway/test_agent_api.py::test_words_behind_a_level_of_thinking_are_answered_by_that_run",),
    ),
    Fault(
        "gateway/no-health-in-spare-places",
        "Gateway._health",
        'self._app if scope["path"] in HEALTH else _BUSY.response()',
        "_BUSY.response()",
        (f"{_LISTENER}health_is_answered_when_every_place_is_taken",),
    ),
    Fault(
        "gateway/people-see-causes-of-runs",
        "_run_view",
        "if caller(request) is not Caller.PERSON and view.error_message:",
        "if view.error_message:",
        ("tests/bot/gateway/test_agent.py::test_a_failed_run_tells_people_nothing_internal",),
    ),
    Fault(
        "gateway/people-see-causes-in-events",
        "EventStream._kept",
        "body if self.causes else _without_cause(end)",
        "body",
        ("tests/bot/gateway/test_agent.py::test_owners_are_told_why_a_run_failed",),
    ),
)
