"""What becomes of an answer on its way to the platform."""

from tests.mutants import Fault

_TESTS = "tests/bot/test_delivery.py::test_"

FAULTS = (
    Fault(
        "delivery/limit-not-passed-before-a-stored-send",
        "bot/outbox.py",
        "or channel.pass_limit(place) > 0:",
        "or channel.pass_limit(place) < 0:",
        (f"{_TESTS}a_rate_limit_is_passed_before_a_send_is_begun[hello]",),
    ),
    Fault(
        "delivery/limit-not-passed-before-begin",
        "bot/outbox.py",
        "wait = conversation.channel.pass_limit(following.place)",
        "wait = 0.0",
        (f"{_TESTS}a_rate_limit_is_passed_before_a_send_is_begun[/help]",),
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
        "bot/outbox.py",
        "wait = min(following.not_before - self._clock.now(), following.longest) / 1000",
        "wait = 0.0",
        (f"{_TESTS}a_time_to_wait_that_the_platform_told_holds_after_a_restart",),
    ),
    Fault(
        "delivery/fault-of-an-adapter-taken-for-not-sent",
        "bot/outbox.py",
        "result = Unknown(str(error) or type(error).__name__)",
        "result = NotSent(1.0, str(error))",
        (f"{_TESTS}a_fault_of_an_adapter_is_a_send_of_unknown_outcome",),
    ),
    Fault(
        "delivery/fault-of-an-adapter-waits-for-the-channel",
        "bot/outbox.py",
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
        "bot/outbox.py",
        "early, self._early = self._early, {}",
        "early = {}",
        ("tests/bot/test_accounts.py::test_what_one_account_owes_waits_until_it_is_known",),
    ),
    Fault(
        "delivery/owner-not-told-of-a-refusal",
        "bot/store/outbox.py",
        "rows.tell_owner(db, notice, now, besides=delivery.conv_id)",
        "pass",
        ("tests/bot/test_refused.py::test_an_owner_who_cannot_be_reached_is_told_in_the_terminal_once",),
    ),
    Fault(
        "delivery/refused-notices-told-of",
        "bot/store/outbox.py",
        " and not delivery.source.startswith(REFUSED)",
        "",
        ("tests/bot/test_refused.py::test_a_refused_notice_is_told_to_nobody",),
    ),
    Fault(
        "delivery/refused-counts-as-said",
        "bot/store/rows.py",
        "state NOT IN ('failed','expired')",
        "state NOT IN ('expired')",
        ("tests/bot/test_refused.py::test_after_a_cut_a_refused_block_is_not_said_to_have_been_delivered",),
    ),
    Fault(
        "delivery/a-doubtful-one-expires",
        "bot/store/rows.py",
        "CASE attempts WHEN 0 THEN 'expired' ELSE 'uncertain' END",
        "'expired'",
        ("tests/bot/test_refused.py::test_what_grew_old_while_its_outcome_was_unknown_is_uncertain",),
    ),
    Fault(
        "delivery/planned-where-the-chat-was",
        "bot/store/rows.py",
        "conv_id = moved_to or where.conv_id",
        "conv_id = where.conv_id",
        ("tests/bot/test_moved.py::test_words_of_a_run_follow_a_chat_that_moves_meanwhile[an event tells it]",),
    ),
    Fault(
        "delivery/begun-where-the-chat-was",
        "bot/store/outbox.py",
        "AND conv_id=? AND state='planned' RETURNING",
        "AND ?>0 AND state='planned' RETURNING",
        ("tests/bot/test_moved.py::test_a_delivery_is_begun_only_where_it_is",),
    ),
    Fault(
        "delivery/sent-by-two-workers-after-a-move",
        "bot/outbox.py",
        "if following.state is DeliveryState.SENDING:",
        "if False:",
        ("tests/bot/test_moved.py::test_words_on_their_way_are_not_sent_again_where_the_chat_goes_meanwhile",),
    ),
    Fault(
        "delivery/owner-not-told-of-a-salvage",
        "bot/service.py",
        'await self.parts.outbox.tell_owner(f"salvage:{found.at}", wording.salvaged(found))',
        "pass",
        ("tests/bot/test_health.py::test_an_owner_is_told_of_a_salvage_once",),
    ),
)
