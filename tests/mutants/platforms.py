"""What is promised of every platform, broken in the whole service."""

from tests.mutants import Fault

_ALL = "tests/wire/test_platforms.py::test_"
_MISSED = "tests/wire/test_platforms_missed.py::test_"
_PEOPLE = "tests/wire/test_platforms_people.py::test_"

FAULTS = (
    Fault(
        "platforms/slack-acknowledges-what-is-not-stored",
        "_Before.async_process",
        "status=200 if await self._accept(req.body) else 500",
        "status=200 if await self._accept(req.body) else 200",
        (f"{_ALL}it_is_stored_before_it_is_acknowledged_and_answered_once[slack-http]",),
    ),
    Fault(
        "platforms/telegram-polls-on-before-the-store",
        "TelegramReceiver._receive",
        "            await self._take(updates, None if offset is None else Mark(",
        "            self._offset = offset\n            await self._take(updates, None if offset is None else Mark(",
        (f"{_ALL}it_is_stored_before_it_is_acknowledged_and_answered_once[telegram]",),
    ),
    Fault(
        "platforms/a-new-session-is-no-gap",
        "DiscordReceiver._gap_known",
        "        self._sink.missed(self._name, self.world.me, self._reached)\n",
        "",
        (
            f"{_MISSED}connections_that_end_lose_and_double_nothing[discord]",
            f"{_MISSED}what_was_said_meanwhile_is_answered_once_oldest_first[discord]",
        ),
    ),
    Fault(
        "platforms/what-is-live-does-not-wait",
        "CatchUp._behind",
        "return [replace(item, behind=True, delay=0, gathers=gap.patience > 0)]",
        "return [item]",
        (f"{_MISSED}what_comes_while_the_history_is_read_comes_behind_it",),
    ),
    Fault(
        "platforms/age-does-not-matter",
        "Pipeline._decide",
        "return self._catch_up.aged(self.routing.decide(unsecret(item, self.clean)))",
        "return self.routing.decide(unsecret(item, self.clean))",
        (f"{_MISSED}what_is_too_old_is_passed_over_with_one_line[telegram]",),
    ),
    Fault(
        "platforms/an-unknown-send-is-made-again",
        "find",
        "        if is_it(message, delivery.nonce):",
        "        if False:",
        (f"{_ALL}a_send_that_nobody_answers_is_not_lost_and_not_doubled_where_that_can_be_known[slack-True]",),
    ),
    Fault(
        "platforms/an-unknown-send-has-another-nonce",
        "post",
        '{"nonce": str(delivery.nonce), ',
        '{"nonce": str(id(delivery)), ',
        (f"{_ALL}a_send_that_nobody_answers_is_not_lost_and_not_doubled_where_that_can_be_known[discord-True]",),
    ),
    Fault(
        "platforms/a-mention-is-answered-beside-it",
        "SlackAccount.opens_thread",
        'return in_channel and message.mentioned and self.reply_in == "thread"',
        "return False",
        (f"{_PEOPLE}in_a_group_it_answers_what_is_for_it_where_it_was_said[slack]",),
    ),
    Fault(
        "platforms/links-show-previews",
        "_body",
        '"unfurl_links": False',
        '"unfurl_links": True',
        (f"{_PEOPLE}what_the_model_writes_pings_nobody_and_shows_no_preview[slack]",),
    ),
)
