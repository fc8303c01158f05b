"""What was said while nobody listened: read once, oldest first, and what comes live waits behind it."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.inbound.catch_up import OWN
from bot.persistence.errors import StoreUnavailable
from bot.persistence.inbox import Accepted, AcceptedMessage
from bot.wording import UNREAD
from channels.base import Mark, NotAccepted, NotReadable
from channels.message import ChatKind, InboundMessage, Origin, Place
from tests.history import HOUR, START, Past, RememberingChannel, caught_up, heard, remembering
from tests.service import Hark, running
from tests.standins.script import Hang
from tests.stored import disk_full


async def live(hark: Hark, *messages: InboundMessage) -> None:
    """The platform tells of messages, one by one."""
    for message in messages:
        await hark.accept(message)


def reconnect(hark: Hark) -> None:
    """The connection was lost, and is there again."""
    assert isinstance(hark.channel, RememberingChannel)
    hark.channel.reconnect()


async def begun(tmp_path: Path, past: Past, *chats: str) -> None:
    """A first life, in which each of these people was answered once."""
    async with remembering(tmp_path, past) as hark:
        await caught_up()
        for chat in chats or ("1",):
            await live(hark, past.say("hello", START, chat))
        await hark.until(lambda: len(hark.channel.sent) == len(chats or ("1",)))
    past.asked.clear()


def cursor(hark: Hark, chat: str = "1") -> str:
    ((found,),) = hark.stored.conversations("cursor", chat=chat)
    return str(found)


async def test_the_first_start_ever_begins_at_the_newest(tmp_path: Path) -> None:
    past = Past(reached=True)
    old = past.say("before the bot was there", START - HOUR)
    async with remembering(tmp_path, past) as hark:
        await caught_up()
        await hark.until(lambda: hark.stored.conversations())
        assert cursor(hark) == old.origin.message_id
        await live(hark, past.say("hello", START))
        await hark.until_texts(1)
        assert heard(hark) == ["hello"]
    async with remembering(tmp_path, past, hours=1) as hark:
        await caught_up()
        assert (past.asked, hark.model.requests) == ([], [])


async def test_what_was_missed_is_answered_once_oldest_first_and_in_one_turn(tmp_path: Path) -> None:
    past = Past()
    await begun(tmp_path, past)
    for text in ("two", "three", "four", "an answer"):
        last = past.say(text, START + HOUR)
    past.own.add(last.origin.message_id)
    async with remembering(tmp_path, past, hours=2) as hark:
        await hark.until_texts(1)
        assert heard(hark) == ["hello", "two", "three", "four"]
        assert len(hark.model.requests) == 1
        assert [asked.most for asked in past.asked] == [100, 100]
        await caught_up()
        assert cursor(hark) == last.origin.message_id
        await live(hark, past.said[3], past.said[0])
    async with remembering(tmp_path, past, hours=3) as hark:
        await caught_up()
        assert [(asked.after, asked.chat) for asked in past.asked[2:]] == [(last.origin.message_id, "1")]
        assert hark.model.requests == []


async def test_what_comes_live_waits_behind_what_was_missed_and_commands_do_not(tmp_path: Path) -> None:
    past = Past(page=1)
    await begun(tmp_path, past)
    past.say("two", START + HOUR)
    going_on = asyncio.Event()

    async def wait(chat: str) -> None:
        await going_on.wait()

    past.on_history = wait
    async with remembering(tmp_path, past, hours=2) as hark:
        await live(hark, past.say("three", START + 2 * HOUR))
        await hark.until(lambda: past.asked)
        await live(hark, past.say("four", START + 2 * HOUR), past.say("/status", START + 2 * HOUR))
        await hark.until_texts(1)
        assert "3 waiting" not in hark.channel.texts()[0]
        assert hark.stored.messages("state", "reason", kind="message", turn_id=None) == [("held", "catch-up")] * 2
        await hark.service.parts.lanes.sweep()
        assert hark.model.requests == []
        going_on.set()
        await hark.until_texts(2)
        assert heard(hark) == ["hello", "two", "three", "four"]
        await caught_up()
        await live(hark, past.say("five", START + 2 * HOUR))
        await hark.until_texts(3)
        assert [state for (state,) in hark.stored.messages("state")] == ["done"] * 6


async def test_what_waits_is_released_in_its_order_at_the_end(tmp_path: Path) -> None:
    past = Past()
    await begun(tmp_path, past)
    past.say("two", START + HOUR)
    came: list[InboundMessage] = []

    async def meanwhile(chat: str) -> None:
        """Two more are told, the later one first, when the page is made and before it arrives."""
        if not came:
            came.extend(past.say(text, START + 2 * HOUR) for text in ("three", "four"))
            await live(hark, *reversed(came))

    past.on_history = meanwhile
    async with remembering(tmp_path, past, hours=2) as hark:
        await hark.until_texts(3)
        assert heard(hark) == ["hello", "two", "three", "four"]
        assert cursor(hark) == came[-1].origin.message_id
        assert len(past.asked) == 1


async def test_what_comes_while_others_are_released_is_released_as_well(tmp_path: Path) -> None:
    past = Past(reached=True)
    await begun(tmp_path, past)
    told: list[asyncio.Task[None]] = []

    def probe(at: str) -> None:
        """Another message is told while the first commit with a released message is under way."""
        if at == "before" and not told and hark_is_there:
            loop.call_soon_threadsafe(lambda: told.append(asyncio.create_task(live(hark, four))))

    hark_is_there = False
    loop = asyncio.get_running_loop()
    async with remembering(tmp_path, past, hours=2, probe=probe) as hark:
        four = past.say("four", START + 2 * HOUR)
        await live(hark, past.say("three", START + 2 * HOUR))
        hark_is_there = True
        await hark.until_texts(2)
        assert heard(hark) == ["hello", "three", "four"]


async def test_a_break_while_a_history_is_read_is_read_as_well(tmp_path: Path) -> None:
    past = Past()
    await begun(tmp_path, past)
    past.say("two", START + HOUR)

    async def breaks(chat: str) -> None:
        if len(past.asked) == 1:
            past.say("three", START + 2 * HOUR)  # nobody tells
            reconnect(hark)
            await live(hark, past.say("four", START + 2 * HOUR))

    past.on_history = breaks
    async with remembering(tmp_path, past, hours=2) as hark:
        await hark.until_texts(1)
        assert heard(hark) == ["hello", "two", "three", "four"]


async def test_messages_that_are_too_old_are_passed_over_which_is_said_once(tmp_path: Path) -> None:
    past = Past()
    await begun(tmp_path, past, "1", "2")
    past.own |= {past.say("hello you", START, chat).origin.message_id for chat in "12"}
    for hours in (1, 2, 30):
        past.say(f"after {hours}", START + hours * HOUR)
    with capture_logs() as logged:
        async with remembering(tmp_path, past, hours=48) as hark:
            await hark.until_texts(2)
            await caught_up()
            assert heard(hark) == ["hello", "after 30"]
            away = "I was away; messages from before Wed 2026-07-15 03:33 UTC were not read."
            assert sorted(hark.channel.texts())[0] == away
            assert hark.channel.texts("2") == []
            probes = sorted((asked.chat, asked.most) for asked in past.asked if asked.before)
            assert probes == [("1", OWN), ("2", OWN)]
            assert hark.stored.messages("reason", state="dropped") == [("age",)]
    assert [line["chat"] for line in logged if "max_age" in line["event"]] == ["1"]
    async with remembering(tmp_path, past, hours=49) as hark:
        await caught_up()
        assert hark.channel.sent == []


async def test_what_a_platform_delivers_too_late_is_dropped_which_is_said_once(hark: Hark) -> None:
    old = hark.time.now() - 25 * HOUR
    await hark.write("one", "two", sent_at=old)
    await hark.write("/status", "three", sent_at=old)
    await hark.write("now")
    await hark.until_texts(2)
    assert [text[:10] for text in hark.channel.texts()].count("I was away") == 1
    assert hark.stored.messages("reason", state="dropped") == [("age",)] * 4
    assert len(hark.model.requests) == 1


async def test_a_history_is_asked_for_again_while_others_are_read(tmp_path: Path) -> None:
    past = Past()
    await begun(tmp_path, past, "1", "2", "3")
    for chat in "123":
        past.say("two", START + HOUR, chat)
    past.faults = {"1": [NotReadable("429", 20.0), OSError("a fault")], "3": [NotReadable("not allowed there")]}
    with capture_logs() as logged:
        async with remembering(tmp_path, past, hours=2) as hark:
            await live(hark, past.say("three", START + 2 * HOUR), past.say("three", START + 2 * HOUR, "3"))
            await hark.until_texts(1, "2")
            await hark.until_texts(1, "3")
            assert heard(hark, "3") == ["hello", "three"]
            await hark.time.until_pause(20)
            hark.time.advance(20)
            await hark.time.until_pause(2)
            assert heard(hark) == ["hello"]
            hark.time.advance(2)
            await hark.until_texts(1)
            assert heard(hark) == ["hello", "two", "three"]
    lost = [line["chat"] for line in logged if "is lost" in line["event"]]
    assert lost == ["3"]


async def test_a_history_that_fails_again_and_again_holds_nobody_up_for_longer_than_a_minute(tmp_path: Path) -> None:
    past = Past()
    await begun(tmp_path, past)
    past.say("two", START + HOUR)
    past.faults = {"1": [NotReadable("503", 25.0) for _ in range(4)]}
    async with remembering(tmp_path, past, hours=2) as hark:
        await live(hark, past.say("three", START + 2 * HOUR))
        for _ in range(2):
            await hark.time.until_pause(25)
            assert heard(hark) == ["hello"]
            hark.time.advance(25)
        await hark.until_texts(1)
        assert heard(hark) == ["hello", "three"]
        await live(hark, last := past.say("four", START + 2 * HOUR))
        await hark.until_texts(2)
        for _ in range(2):
            await hark.time.until_pause(25)
            hark.time.advance(25)
        await hark.until_texts(3)
        assert heard(hark) == ["hello", "three", "four", "two"]
        await caught_up()
        assert cursor(hark) == last.origin.message_id
        assert len(hark.model.requests) == 3


async def test_only_so_many_conversations_are_read_and_who_wrote_in_others_is_told(tmp_path: Path) -> None:
    past = Past(reached=True)
    await begun(tmp_path, past, "1", "2", "3")
    past.say("missed", START + HOUR, "1")
    past.say("missed", START + 2 * HOUR, "2")
    config = {"catch_up": {"max_conversations": 1}}
    async with remembering(tmp_path, past, hours=3, config=config) as hark:
        await hark.until_texts(1, "2")
        await hark.until_texts(1)
        assert {asked.chat for asked in past.asked} == {"2"}
        assert hark.channel.texts() == [UNREAD]
        await live(hark, past.say("now", START + 3 * HOUR, "1"))
        await hark.until_texts(2)
        assert (heard(hark), heard(hark, "3")) == (["hello", "now"], ["hello"])
        assert hark.channel.texts("3") == []


async def test_who_wrote_long_ago_is_told_with_their_next_message_that_theirs_was_not_read(tmp_path: Path) -> None:
    past = Past(reached=True)
    await begun(tmp_path, past, "1", "2")
    for chat in ("1", "2"):
        past.say("missed", START + 30 * HOUR, chat)
    config = {"catch_up": {"max_conversations": 1}}
    async with remembering(tmp_path, past, hours=31, config=config) as hark:
        await hark.until_texts(1, "2")
        await caught_up()
        assert hark.channel.texts() == []
        for number in range(2):
            await live(hark, past.say(f"now {number}", START + 31 * HOUR, "1"))
            await hark.until_texts(2 + number)
        assert hark.channel.texts().count(UNREAD) == 1
        assert heard(hark) == ["hello", "now 0", "now 1"]


async def test_direct_messages_are_read_first_then_places_that_are_let_in_and_nothing_else(tmp_path: Path) -> None:
    past = Past(reached=True)
    groups = {"allow": {"-1": {"require_mention": False}, "space": {"require_mention": False}}}
    config = {"catch_up": {"max_conversations": 3}, "channels": {"telegram": {"groups": groups}}}

    def in_group(chat: str, at: int) -> None:
        where = Place(channel="telegram", account="bot", chat=chat, kind=ChatKind.GROUP)
        number, space = f"{at * 1000 + len(past.said)}", past.spaces.get(chat, "")
        past.say("missed", at, chat, origin=Origin(place=where, sender="7", message_id=number, space=space))

    await begun(tmp_path, past)
    past.spaces = {"-2": "space"}
    past.say("missed", START + HOUR)
    for hours, chat in enumerate(("-1", "-2", "-7", "-8", "-9"), 2):
        in_group(chat, START + hours * HOUR)
    async with remembering(tmp_path, past, hours=8, config=config) as hark:
        for chat in ("1", "-1", "-2"):
            await hark.until_texts(1, chat)
        await caught_up()
        assert [asked.chat for asked in past.asked if not asked.before][:3] == ["1", "-2", "-1"]
        assert {asked.chat for asked in past.asked} == {"1", "-1", "-2"}
    config["catch_up"] = {"max_conversations": 1}
    past.asked.clear()
    for hours, chat in enumerate(("1", "-1", "-9"), 9):
        if chat == "1":
            past.say("missed again", START + hours * HOUR)
        else:
            in_group(chat, START + hours * HOUR)
    async with remembering(tmp_path, past, hours=13, config=config) as hark:
        await hark.until_texts(1)
        await caught_up()
        assert {asked.chat for asked in past.asked} == {"1"}
        assert hark.channel.texts("-1") == []


async def test_what_the_store_refuses_is_read_from_the_history(tmp_path: Path) -> None:
    past = Past()
    full = False

    def probe(at: str) -> None:
        if full and at == "before":
            raise disk_full()

    async with remembering(tmp_path, past, probe=probe) as hark:
        await caught_up()
        await live(hark, past.say("one", START))
        await hark.until_texts(1)
        full = True
        with pytest.raises(NotAccepted):
            await live(hark, past.say("two", START))
        full = False
        await live(hark, past.say("three", START))
        await hark.time.until_pause(1)
        hark.time.advance(1)
        await hark.until_texts(2)
        assert heard(hark) == ["one", "two", "three"]


async def test_how_far_it_heard_what_is_not_for_it_is_written_in_time(tmp_path: Path) -> None:
    past = Past(reached=True)
    config = {"channels": {"telegram": {"dm": {"policy": "allowlist", "allow_from": ["1"]}}}}
    async with remembering(tmp_path, past, config=config) as hark:
        await caught_up()
        await live(hark, past.say("let me in", START, "666"), past.say("please", START, "666"))
        assert cursor(hark, "666") == past.said[1].origin.message_id
    async with remembering(tmp_path, past, hours=1, config=config) as hark:
        await caught_up()
        assert past.asked == []


async def test_a_stop_that_is_found_hours_later_stops_nothing_that_was_said_since(tmp_path: Path) -> None:
    past = Past(page=3)
    await begun(tmp_path, past)
    for text in ("two", "/stop"):
        past.say(text, START + HOUR)
    hang = Hang()

    async def another_writes(chat: str) -> None:
        if chat == "1":
            await live(hark, past.say("three", START + 2 * HOUR, "2"))
            await hang.entered()

    past.on_history = another_writes
    async with remembering(tmp_path, past, hours=2, config={"sessions": {"dm_scope": "main"}}) as hark:
        hark.model.add(hang, "fine")
        await hark.until_texts(1)
        hang.release()
        await hark.until_texts(1, "2")
        states = dict(zip(hark.stored.texts(), hark.stored.messages("state"), strict=True))
        assert (states["two"], states["three"]) == (("dropped",), ("done",))
        assert hark.channel.texts() == ["Nothing was running. 1 waiting message dropped."]


async def test_no_cursor_passes_a_message_that_may_still_be_refused(tmp_path: Path) -> None:
    """The next one is told while nobody knows whether the one before it can be stored, which it cannot."""
    past = Past()
    async with remembering(tmp_path, past) as hark:
        await caught_up()
        await live(hark, past.say("one", START))
        await hark.until_texts(1)
        before, catch_up = cursor(hark), hark.service.parts.pipeline._catch_up
        keep, known, refused = catch_up.keep, asyncio.Event(), past.say("two", START)

        async def doubtful(items: Sequence[Accepted], mark: Mark | None) -> object:
            if any(isinstance(item, AcceptedMessage) and item.message.text == "two" for item in items):
                catch_up.keep = keep
                await known.wait()
                raise StoreUnavailable("full")
            return await keep(items, mark)

        catch_up.keep = doubtful
        telling = asyncio.create_task(live(hark, refused))
        await asyncio.sleep(0)
        await live(hark, past.say("three", START))
        assert cursor(hark) == before
        known.set()
        with pytest.raises(NotAccepted):
            await telling
        await hark.until_texts(3)
        assert sorted(heard(hark)) == ["one", "three", "two"]
        await caught_up()
        assert cursor(hark) == past.said[-1].origin.message_id


async def test_what_was_missed_waits_for_nothing_more_of_its_sender(tmp_path: Path) -> None:
    past = Past()
    await begun(tmp_path, past)
    past.say("two", START + HOUR)

    async def meanwhile(chat: str) -> None:
        await live(hark, past.say("three", START + 2 * HOUR))

    past.on_history = meanwhile
    async with remembering(tmp_path, past, hours=2, config={"queue": {"debounce_ms": 1000}}) as hark:
        await hark.until_texts(2)
        assert heard(hark) == ["hello", "two", "three"]


async def test_what_several_people_said_in_a_group_meanwhile_is_one_turn(tmp_path: Path) -> None:
    group = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)

    def asks(number: int) -> InboundMessage:
        origin = Origin(place=group, sender=str(number % 3), message_id=f"{(START + HOUR) * 1000 + number}")
        return past.say(f"question {number}", START + HOUR, origin=origin, event_key=f"m:-5:{number}", mentioned=True)

    past = Past(page=100)
    config = {"channels": {"telegram": {"groups": {"policy": "open"}}}, "queue": {"debounce_ms": 1000}}
    async with remembering(tmp_path, past, config=config) as hark:
        await caught_up()
    for number in range(40):
        asks(number)
    past.reached = True
    async with remembering(tmp_path, past, hours=2, config=config) as hark:
        await hark.until_texts(1, "-5")
        assert len(hark.model.requests) == 1
        words = [message.text.rsplit("\n", 1)[-1] for message in hark.model.requests[0].messages]
        assert words == [f"question {number}" for number in range(40)]


async def test_what_a_platform_brings_late_is_one_turn_as_well(tmp_path: Path) -> None:
    """Where nothing can be asked for: what was missed comes by itself."""
    place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
    config = {"channels": {"telegram": {"groups": {"policy": "open"}}}, "queue": {"debounce_ms": 1000}}
    async with running(tmp_path, config=config) as hark:
        late = [
            hark.message(
                f"question {number}",
                origin=Origin(place=place, sender=str(number % 3), message_id=str(number + 1)),
                mentioned=True,
                sent_at=hark.time.now() - HOUR,
            )
            for number in range(40)
        ]
        await hark.accept(*late)
        await hark.until_texts(1, "-5")
        assert len(hark.model.requests) == 1
        assert len(hark.model.requests[0].messages) == 40


async def test_what_is_said_in_a_group_stands_before_the_message_for_the_bot(tmp_path: Path) -> None:
    place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)

    def said(hark: Hark, number: int, text: str, **fields: Any) -> InboundMessage:
        return hark.message(text, origin=Origin(place=place, sender="7", message_id=str(number)), **fields)

    async with running(tmp_path, config={"channels": {"telegram": {"groups": {"policy": "open"}}}}) as hark:
        await hark.accept(said(hark, 1, "the cellar is wet"), said(hark, 2, "again"))
        assert hark.stored.messages() == []
        assert len(hark.stored.everything()["overheard"]) == 2
        await hark.accept(said(hark, 3, "what now?", mentioned=True))
        await hark.until_texts(1, "-5")
        asked = hark.model.requests[0].messages[-1].text
        assert re.findall(r"\(id 7\): (.*)", asked) == ["the cellar is wet", "again"]
        assert asked.index("again") < asked.index("</overheard>") < asked.index("what now?")
        await hark.accept(said(hark, 4, "and now?", mentioned=True))
        await hark.until_texts(2, "-5")
        assert "cellar" not in hark.model.requests[1].messages[-1].text
