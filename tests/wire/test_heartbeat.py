"""The heartbeat as an owner sees it: its days on each platform, where alerts go, what stays quiet, what it costs."""

from pathlib import Path

import pytest

from tests.standins.discord_ledger import Rule as DiscordRule
from tests.standins.slack_ledger import Rule as SlackRule
from tests.standins.telegram_ledger import Rule as TelegramRule
from tests.wire.answers import PLATFORMS
from tests.wire.heartbeats import HOUR, days

pytestmark = pytest.mark.xdist_group("wire-heartbeat")
every = pytest.mark.parametrize("name", PLATFORMS)
EARLY = {"telegram": TelegramRule.EARLY, "discord": DiscordRule.EARLY, "slack": SlackRule.EARLY}
OK = "HEARTBEAT_OK"
DRY = "The tomatoes are dry, and it will not rain before Thursday."
OPEN = "The door of the greenhouse stands open, and a storm is on its way."
FULL = "The barrel is full, and the gutter above it drips."


@every
async def test_days_with_trouble_a_crash_and_a_pause(name: str, tmp_path: Path) -> None:
    hours = {"start": "09:00", "end": "17:00", "timezone": "Europe/Berlin"}
    sign = "/" if name == "telegram" else "!"
    async with days(tmp_path, "2026-05-04T08:10+02:00", name=name, active_hours=hours) as play:
        stage, side = play.stage, play.stage.side
        async with stage.serving():
            await play.hello()
            await play.turn()
            assert (len(play.asked), play.told) == (1, []), "09:10, all is well"
            expected = []
            for text, applied in ((DRY, False), (OPEN, True)):  # the connection breaks before or after it is posted
                doubled = applied and not side.knows_sends
                side.may_double(*[text] * doubled)
                fault = side.fail_send(applied=applied)
                play.answer = text
                stage.time.advance(HOUR)
                await play.tick()
                await stage.passing(lambda text=text: text in side.posts() and stage.at_rest(), "the alert")
                expected += [text] * (1 + doubled)
                assert (fault.fired, play.told) == (1, expected)
            await play.turn()
            assert (len(play.asked), play.told) == (4, expected), "12:10, the same alert is not sent again"
            play.answer = FULL
            flooded = side.flood("alice")
            side.server.tolerate(EARLY[name])  # nobody remembers a pause after a crash
            stage.time.advance(HOUR)
            await play.tick()
            await stage.until(lambda: len(stage.stored.firings("turn_id", outcome="said")) == 3, "the end of the turn")
            await stage.until(lambda: flooded.fired, "the refusal")
            stage.dead = True
        play.answer = OK
        async with stage.serving():
            await stage.passing(lambda: FULL in side.posts() and stage.at_rest(), "the alert of 13:10")
            assert (len(play.asked), play.told) == (5, [*expected, FULL])
        stage.time.advance(2.5 * HOUR)
        async with stage.serving():
            await play.due()
            assert (len(play.asked), "was due" in play.asked[-1][1]) == (6, True), "15:10, late"
            await play.next()
            await play.days(0.5)
            assert (len(play.asked), "was due" in play.asked[-1][1]) == (7, False), "16:10, the last of the day"
            reasons = {("due", ""), ("late", ""), ("late", "missed"), ("due", "quiet-hours")}
            assert {receipt[:2] for receipt in play.receipts()} == reasons
            assert "off" in await play.says(f"{sign}heartbeat off")
            await play.days(0.25)
        async with stage.serving():
            await play.turn()
            assert len(play.asked) == 7, "a pause outlasts a restart"
            await play.says(f"{sign}heartbeat now")
            await stage.until(lambda: len(play.asked) == 8 and play.over(), "a heartbeat turn by hand")
            await play.says(f"{sign}heartbeat on")
            await play.turn()
            assert (len(play.asked), play.receipts()[-1]) == (9, ("due", "", "quiet"))
            assert "quiet" in await play.says(f"{sign}heartbeat")
        assert len(set(stage.stored.firings("due_at", reason=""))) == 9


async def test_what_the_platform_refused_is_sent_once_at_the_next_chance(tmp_path: Path) -> None:
    async with days(tmp_path) as play, play.stage.serving():
        side = play.stage.side
        await play.hello()
        side.server.fail_next("sendMessage", status=403, description="Forbidden: bot was blocked by the user", times=1)
        play.answer = DRY
        await play.turn()
        assert play.told == []
        play.answer = OK
        await play.turn()
        await play.turn()
        (text,) = play.told
        assert text.endswith(DRY)
