"""What becomes of an answer on its way to the platform."""

from tests.mutants import Fault

_TESTS = "tests/bot/test_delivery.py::test_"

FAULTS = (
    Fault(
        "delivery/limit-not-passed-before-a-stored-send",
        "bot/delivery.py",
        "or channel.pass_limit(place) > 0:",
        "or channel.pass_limit(place) < 0:",
        (f"{_TESTS}a_rate_limit_is_passed_before_a_send_is_begun[hello]",),
    ),
    Fault(
        "delivery/limit-not-passed-before-begin",
        "bot/delivery.py",
        "wait = conversation.channel.pass_limit(conversation.place)",
        "wait = 0.0",
        (f"{_TESTS}a_rate_limit_is_passed_before_a_send_is_begun",),
    ),
    Fault(
        "delivery/max-age-ignored",
        "bot/store/outbox.py",
        "(delivery_id, now - max_age)",
        "(delivery_id, 0)",
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
        "result = Unknown(str(error) or type(error).__name__)",
        "result = NotSent(1.0, str(error))",
        (f"{_TESTS}a_fault_of_an_adapter_is_a_send_of_unknown_outcome",),
    ),
    Fault(
        "delivery/fault-of-an-adapter-waits-for-the-channel",
        "bot/delivery.py",
        "result = Unknown(str(error) or type(error).__name__)",
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
    Fault(
        "delivery/newest-first",
        "bot/store/outbox.py",
        "ORDER BY delivery_id LIMIT 1",
        "ORDER BY delivery_id DESC LIMIT 1",
        ("tests/bot/test_replies.py::test_a_stream_that_breaks_at_any_delta_is_delivered_whole",),
    ),
    Fault(
        "delivery/begun-before-what-is-older",
        "bot/store/rows.py",
        'begin = "planned" if db.execute(older, (conv_id,)).fetchone() else "sending"',
        'begin = "sending"',
        ("tests/bot/test_delivery.py::test_what_is_planned_behind_something_open_is_not_begun_before_it",),
    ),
    Fault(
        "delivery/expired-counts-as-said",
        "bot/store/rows.py",
        "state NOT IN ('failed','expired')",
        "state NOT IN ('failed')",
        ("tests/bot/test_commands.py::test_stop_takes_back_what_was_not_sent_yet",),
    ),
    Fault(
        "delivery/by-any-account",
        "bot/accounts.py",
        "(channel.name, channel.account) == (place.channel, place.account)",
        "channel.name == place.channel",
        ("tests/bot/test_accounts.py::test_what_one_account_owes_waits_until_it_is_known",),
    ),
    Fault(
        "delivery/forgotten-before-its-account-is-known",
        "bot/delivery.py",
        "early, self._early = self._early, {}",
        "early = {}",
        ("tests/bot/test_accounts.py::test_what_one_account_owes_waits_until_it_is_known",),
    ),
)
