"""The port: how long and how many may hold it, when it opens, and what it tells to whom."""

from tests.mutants import Fault

_LISTENER = "tests/bot/gateway/test_listener.py::test_"

FAULTS = (
    Fault(
        "gateway/open-before-the-store-is",
        "bot/gateway/server.py",
        'if not self._open and scope["path"] not in HEALTH:',
        "if False:",
        ("tests/bot/cli/test_full_disk.py::test_the_service_waits_red_and_goes_on_by_itself",),
    ),
    Fault(
        "gateway/slow-requests-wait-for-ever",
        "bot/gateway/listener.py",
        "self._deadline = self.loop.call_later(self._request_seconds, self.transport.abort)",
        "pass",
        (f"{_LISTENER}a_request_that_does_not_come_in_time_ends_its_connection[half a body]",),
    ),
    Fault(
        "gateway/the-newest-idle-one-makes-room",
        "bot/gateway/listener.py",
        "oldest = min(idle,",
        "oldest = max(idle,",
        (f"{_LISTENER}the_idle_one_makes_room_and_one_that_is_served_does_not",),
    ),
    Fault(
        "gateway/connections-without-bound",
        "bot/gateway/listener.py",
        "descriptors // 8",
        "descriptors",
        (f"{_LISTENER}the_idle_one_makes_room_and_one_that_is_served_does_not",),
    ),
    Fault(
        "gateway/every-failed-accept-is-a-line",
        "bot/gateway/listener.py",
        "loop.time() - told >= _FAILURE_SECONDS",
        "True",
        (f"{_LISTENER}failed_accepts_are_one_line",),
    ),
    Fault(
        "gateway/people-see-causes-of-runs",
        "bot/gateway/agent_routes.py",
        "if caller(request) is not Caller.PERSON and view.error_message:",
        "if view.error_message:",
        ("tests/bot/gateway/test_agent.py::test_a_failed_run_tells_people_nothing_internal",),
    ),
    Fault(
        "gateway/people-see-causes-in-events",
        "bot/gateway/event_stream.py",
        "body if self.causes else _without_cause(end)",
        "body",
        ("tests/bot/gateway/test_agent.py::test_owners_are_told_why_a_run_failed",),
    ),
)
