"""What becomes of an answer on its way to the platform."""

from tests.mutants import Fault

_TESTS = "tests/bot/test_delivery.py::test_"

FAULTS = (
    Fault(
        "delivery/limit-not-passed-before-a-stored-send",
        "bot/delivery.py",
        "if channel.pass_limit(place) > 0:",
        "if channel.pass_limit(place) < 0:",
        (f"{_TESTS}a_rate_limit_is_passed_before_a_send_is_begun[hello]",),
    ),
    Fault(
        "delivery/limit-not-passed-before-begin",
        "bot/delivery.py",
        "wait = channel.pass_limit(place)",
        "wait = 0.0",
        (f"{_TESTS}a_rate_limit_is_passed_before_a_send_is_begun",),
    ),
    Fault(
        "delivery/max-age-ignored",
        "bot/store/outbox.py",
        "(now, delivery_id, now - max_age)",
        "(now, delivery_id, 0)",
        (f"{_TESTS}what_could_not_be_delivered_for_too_long_is_given_up",),
    ),
    Fault(
        "delivery/max-age-not-configured",
        "bot/wiring.py",
        "int(config.delivery.max_age.total_seconds() * 1000)",
        "86_400_000",
        (f"{_TESTS}what_could_not_be_delivered_for_too_long_is_given_up",),
    ),
    Fault(
        "delivery/not-before-ignored",
        "bot/delivery.py",
        "wait = min(following.not_before - self._clock.now(), following.longest) / 1000",
        "wait = 0.0",
        (f"{_TESTS}a_time_to_wait_that_the_platform_told_holds_after_a_restart",),
    ),
    Fault(
        "delivery/fault-of-an-adapter-taken-for-not-sent",
        "bot/delivery.py",
        "result = Unknown(str(error))",
        "result = NotSent(1.0, str(error))",
        (f"{_TESTS}a_fault_of_an_adapter_is_a_send_of_unknown_outcome",),
    ),
    Fault(
        "delivery/fault-of-an-adapter-waits-for-the-channel",
        "bot/delivery.py",
        "result = Unknown(str(error))",
        "result = NotSent(None, str(error))",
        (f"{_TESTS}a_fault_of_an_adapter_is_a_send_of_unknown_outcome",),
    ),
    Fault(
        "delivery/sweep-removed",
        "bot/service.py",
        """\
                await self.parts.outbox.serve_open()
            except""",
        """\
            except""",
        ("tests/bot/test_sweep.py::test_a_delivery_that_nobody_was_told_of_is_sent",),
    ),
)
