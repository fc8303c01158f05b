"""Where alerts go, whether they are shown there, and what becomes of them when the platform is in trouble."""

from pathlib import Path
from typing import Any

import pytest

from tests.standins.discord_ledger import Rule as DiscordRule
from tests.standins.script import Hang
from tests.standins.slack_ledger import Rule as SlackRule
from tests.standins.telegram_ledger import Rule as TelegramRule
from tests.wire.beats import DAY, HOUR, Days, days
from tests.wire.platforms import SIDES
from tests.wire.quiet import alarm

pytestmark = pytest.mark.xdist_group("wire-heartbeat")
NAMES = ("telegram", "discord", "slack")
every = pytest.mark.parametrize("name", NAMES)
EARLY = {"telegram": TelegramRule.EARLY, "discord": DiscordRule.EARLY, "slack": SlackRule.EARLY}
DRY = "The tomatoes are dry, and it will not rain before Thursday."


async def alert(play: Days, text: str = DRY) -> None:
    """A beat that has this to say."""
    play.answer = text
    await play.beat()


@every
async def test_an_alert_goes_into_the_thread_of_its_session(name: str, tmp_path: Path) -> None:
    async with days(tmp_path, name=name, every=HOUR) as play:
        stage, side = play.stage, play.stage.side
        async with stage.serving():
            said = side.say("start", room=side.room)
            thread = side.thread(said)
            side.say("in here", room=side.room, mention=True, thread=thread)
            await stage.until(lambda: side.posts(side.room, thread) and stage.at_rest(), "an answer in the thread")
        ((key,),) = stage.stored.sessions("session_key")
        assert ":thread:" in key
        stage.changes["heartbeat"]["session"] = key
        async with stage.serving():
            await alert(play)
            assert side.posts(side.room, thread)[-1] == DRY
            assert DRY not in side.posts(side.room)
            assert play.told == []
            side.say("what was that?", room=side.room, mention=True, thread=thread)
            await stage.until(lambda: side.posts(side.room, thread)[-1] == "re: what was that?", "an answer")
            assert DRY in str(stage.model.requests[-1].messages)


@every
async def test_an_alert_goes_where_the_configuration_says(name: str, tmp_path: Path) -> None:
    async with days(tmp_path, name=name, every=HOUR) as play:
        stage, side = play.stage, play.stage.side
        stage.changes["heartbeat"]["target"] = f"{name}:{side.id_of(side.room)}"
        async with stage.serving():
            side.say("here we are", "bob", room=side.room)  # Telegram tells of no chat that nobody has written in
            await play.hello()
            await alert(play)
            assert side.posts(side.room) == [DRY]
            assert play.told == []
            play.answer = "HEARTBEAT_OK"
            await play.beat()
            assert side.posts(side.room) == [DRY]
            side.say("who said that?", "bob", room=side.room, mention=True)
            await stage.until(
                lambda: stage.model.requests[-1].messages[-1].text.endswith("who said that?") and stage.at_rest(),
                "an answer in the room",
            )
            if name != "slack":  # where that is a thread, which is another session
                assert DRY in str(stage.model.requests[-1].messages)


async def test_an_alert_goes_to_another_platform(tmp_path: Path) -> None:
    async with days(tmp_path, name="telegram", every=HOUR) as play, SIDES["slack"](play.stage.time) as slack:
        play.stage.beside = (slack,)
        play.stage.changes["channels"] = {"slack": slack.section()}
        play.stage.changes["heartbeat"]["target"] = f"slack:{slack.room.id}"
        async with play.stage.serving():
            await play.hello()
            await alert(play)
            await play.stage.until(lambda: slack.posts(slack.room) == [DRY], "the alert")
            assert play.told == []


@pytest.mark.parametrize(
    ("heartbeat", "section", "quiet", "loud", "asked"),
    [
        ({}, {}, [], [DRY], 2),
        ({"show_ok": True}, {}, ["HEARTBEAT_OK"], ["HEARTBEAT_OK", DRY], 2),
        ({}, {"show_ok": True}, ["HEARTBEAT_OK"], ["HEARTBEAT_OK", DRY], 2),
        ({"show_ok": True}, {"show_ok": False}, [], [DRY], 2),
        ({"show_alerts": False, "show_ok": True}, {}, ["HEARTBEAT_OK"], ["HEARTBEAT_OK"], 2),
        ({"show_alerts": False}, {"show_alerts": True}, [], [DRY], 2),
        ({}, {"show_alerts": False}, [], [], 0),
        ({}, {"direct": "block"}, [], [], 0),
    ],
)
async def test_a_channel_shows_what_it_is_told_to(
    heartbeat: Any, section: Any, quiet: Any, loud: Any, asked: int, tmp_path: Path
) -> None:
    async with days(tmp_path, every=HOUR, section={"heartbeat": section}, **heartbeat) as play, play.stage.serving():
        play.stage.side.may_double("HEARTBEAT_OK")
        await play.hello()
        await play.beat()
        assert play.told == quiet
        await alert(play)
        assert play.told == loud
        assert len(play.asked) == asked


async def test_a_named_group_gets_alerts_where_direct_messages_are_blocked(tmp_path: Path) -> None:
    async with days(tmp_path, every=HOUR, section={"heartbeat": {"direct": "block"}}) as play:
        side = play.stage.side
        play.stage.changes["heartbeat"]["target"] = f"telegram:{side.id_of(side.room)}"
        async with play.stage.serving():
            side.say("here we are", "bob", room=side.room)
            await play.hello()
            await alert(play)
            assert (side.posts(side.room), play.told) == ([DRY], [])


@every
async def test_an_alert_survives_trouble_and_is_said_once(name: str, tmp_path: Path) -> None:
    async with days(tmp_path, name=name, every=HOUR) as play:
        stage, side = play.stage, play.stage.side
        async with stage.serving():
            await play.hello()
            for number, applied in enumerate((False, True)):
                doubled = applied and not side.knows_sends
                text = alarm(f"trouble {number}")
                if doubled:
                    side.may_double(text)
                side.fail_send(applied=applied)
                play.answer = text
                play.stage.time.advance(HOUR)
                await stage.service.parts.dispatcher.tick()  # type: ignore[union-attr]
                await stage.passing(lambda: text in side.posts() and stage.at_rest(), "the alert")  # noqa: B023
                assert side.posts().count(text) == 1 + doubled
            play.note("# Nothing")
            await play.beat()
            await play.beat()
        assert len(play.told) == 2 + (not side.knows_sends)


@every
async def test_an_alert_that_was_planned_goes_out_after_a_crash(name: str, tmp_path: Path) -> None:
    async with days(tmp_path, name=name, every=HOUR) as play:
        stage, side = play.stage, play.stage.side
        async with stage.serving():
            await play.hello()
            side.flood("alice")
            side.server.tolerate(EARLY[name])  # nobody remembers a pause after a crash
            play.answer = DRY
            stage.time.advance(HOUR)
            await stage.service.parts.dispatcher.tick()  # type: ignore[union-attr]
            await stage.until(lambda: stage.stored.firings("turn_id", outcome="said"), "the end of the beat")
            stage.dead = True
        play.answer = "HEARTBEAT_OK"
        async with stage.serving():
            await stage.passing(lambda: side.posts().count(DRY) == 1 and stage.at_rest(), "the alert")
        assert (play.told, len(play.asked)) == ([DRY], 1)


async def test_a_beat_that_was_cut_is_dropped_and_its_receipt_says_so(tmp_path: Path) -> None:
    async with days(tmp_path, every=HOUR) as play:
        stage = play.stage
        hang = Hang()
        async with stage.serving():
            await play.hello()
            play.answer = [hang]
            stage.time.advance(HOUR)
            await stage.service.parts.dispatcher.tick()  # type: ignore[union-attr]
            await stage.until(lambda: play.asked, "the beat")
            stage.dead = True
        play.answer = "HEARTBEAT_OK"
        async with stage.serving():
            await stage.until(play.over, "the end of the beat")
            assert len(play.asked) == 1
            assert play.receipts()[0][2] not in ("said", "quiet", "")
            await play.beat()
            assert (len(play.asked), play.receipts()[-1]) == (2, ("due", "", "quiet"))
            await play.hello("and now?")
        assert play.told == []


async def test_what_the_platform_refused_is_said_at_the_next_chance(tmp_path: Path) -> None:
    async with days(tmp_path, every=HOUR) as play, play.stage.serving():
        side = play.stage.side
        await play.hello()
        side.server.fail_next("sendMessage", status=403, description="Forbidden: bot was blocked by the user", times=1)
        side.may_double(DRY)
        await alert(play)
        assert DRY not in play.told
        play.answer = "HEARTBEAT_OK"
        await play.beat()
        assert len([text for text in play.told if DRY in text]) == 1
        await play.beat()
        await play.beat()
        assert len([text for text in play.told if DRY in text]) == 1


async def test_the_same_alert_is_not_said_twice_in_a_day_unless_it_changed(tmp_path: Path) -> None:
    disk = "The disk of the server is 91% full, and the logs grow by two gigabytes a day."
    rows = [
        (disk, True),
        (disk, False),
        (f"**{disk}**", False),
        (f"Hello, {disk}", False),
        (f"{disk} 🎉", True),
        (disk, True),
        (f"HEARTBEAT_OK {disk} {alarm('more', 300)}", True),
        (disk.replace("91%", "97%"), True),
        (f"{disk} Nobody has looked after it since Monday.", True),
        ("The mail server does not answer.", True),
        (disk, True),
        (disk, False),
    ]
    async with days(tmp_path, every=HOUR) as play:
        side = play.stage.side
        async with play.stage.serving():
            await play.hello()
            for number, (text, said) in enumerate(rows):
                before = len(play.told)
                await alert(play, text)
                assert len(play.told) - before == said, (number, text)
        async with play.stage.serving():
            before = len(play.told)
            await alert(play, disk)
            assert len(play.told) == before
            side.may_double(disk)
            play.answer = "HEARTBEAT_OK"
            await play.after(DAY)
            await alert(play, disk)
            assert len(play.told) == before + 1
