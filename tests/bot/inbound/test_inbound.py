"""Who gets in, what is kept of those who do not, and what the model is told about a message, in the real service."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from channels.base import Mark, NotAccepted
from channels.message import Attachment, ChatKind, InboundKind, Origin, Place, UnreadEvent
from tests.service import Hark, Json, running
from tests.watch import lanes_idle

ALLOWLIST: Json = {"channels": {"telegram": {"dm": {"policy": "allowlist", "allow_from": ["2"]}}}}


async def test_a_stranger_is_told_nothing_and_costs_one_small_message(tmp_path: Path) -> None:
    async with running(tmp_path, config=ALLOWLIST, channel={"typing_seconds": 5}) as hark:
        attachment = Attachment(kind="file", ref="r" * 5000, name="n" * 5000)
        for n in range(50):
            await hark.write(f"{n} " + "ä" * 9000, sender="666", attachments=(attachment,))
        for text in ("/help", "/status", "/stop"):
            await hark.write(text, sender="666")
        assert (await hark.say("hello", sender="2")).texts != []
        assert hark.channel.texts("666") == []
        assert ("working", "666") not in hark.channel.log
        assert len(hark.model.requests) == 1
        kept = hark.stored.messages("state", "reason", "session_key", "payload", sender="666")
        ((state, reason, key, payload),) = kept
        assert (state, reason, key) == ("dropped", "access", None)
        assert "ää" in payload
        assert len(payload.encode()) < 4096 + 600
        assert len(hark.stored.sessions()) == 1


async def test_owners_and_the_list_get_in(tmp_path: Path) -> None:
    async with running(tmp_path, config=ALLOWLIST) as hark:
        for person in ("1", "2"):
            assert len((await hark.say("hello", sender=person)).texts) == 1


async def test_a_stranger_is_named_once_in_the_log(tmp_path: Path) -> None:
    async with running(tmp_path, config=ALLOWLIST) as hark:
        with capture_logs() as logged:
            for sender in ("666", "666", "777", "2", "666"):
                await hark.write("hello", sender=sender)
            place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
            await hark.write("hello", origin=Origin(place=place, sender="888"))
        named = [(line["channel"], line["id"]) for line in logged if line["event"] == "a stranger was not let in"]
        assert named == [("telegram", "666"), ("telegram", "777")]


async def test_only_so_many_strangers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.inbound.pipeline.NAMED", 3)
    async with running(tmp_path, config=ALLOWLIST) as hark:
        with capture_logs() as logged:
            for sender in ("61", "62", "63", "64", "65", "61"):
                await hark.write("hello", sender=sender)
        named = [line["id"] for line in logged if line["event"] == "a stranger was not let in"]
        assert named == ["61", "62", "63"]


async def test_groups_wait_for_their_own_rules(hark: Hark) -> None:
    place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
    await hark.write("hello", origin=Origin(place=place, sender="1"))
    await hark.say("hello")
    assert hark.channel.texts("-5") == []
    assert hark.stored.messages("reason", state="dropped") == [("groups",)]


async def test_a_redelivered_message_starts_no_second_run(hark: Hark) -> None:
    message = hark.message("hello")
    await hark.accept(message, message)
    await hark.accept(message)
    await hark.until_texts(1)
    await hark.say("and now?")
    assert len(hark.model.requests) == 2


async def test_an_unreadable_event_is_kept_and_the_mark_moves_on(hark: Hark) -> None:
    assert hark.channel.sink is not None
    event = UnreadEvent(channel="telegram", account="bot", event_key="u:7", raw="{…\ud800", error="no message")
    await hark.channel.sink.accept([event, hark.message("hello"), event], Mark("poll", "8"))
    assert await hark.channel.sink.mark("poll") == "8"
    await hark.until_texts(1)
    assert hark.stored.messages("event_key", "reason", state="unread") == [("u:7", "no message")]


async def test_an_edit_replaces_the_words_of_a_message_that_waits(hark: Hark) -> None:
    hang = await hark.hanging("first", then="First.")
    waiting = hark.message("paint it red")
    await hark.accept(waiting)
    edit = {"kind": InboundKind.EDIT, "origin": waiting.origin}
    await hark.write("paint it blue", **edit)
    hang.release()
    await hark.until(lambda: len(hark.model.requests) == 2)
    assert hark.model.requests[1].messages[-1].text.endswith("\npaint it blue")
    await lanes_idle()
    await hark.say("and now?")
    assert len(hark.model.requests) == 3


@pytest.mark.parametrize("text", ["/gone", "/status"])
async def test_a_button_is_carried_out_and_never_shown_to_a_model(text: str, hark: Hark) -> None:
    hang = await hark.hanging("first", then="First.")
    await hark.write(text, kind=InboundKind.BUTTON)
    await hark.until_texts(1)
    hang.release()
    await hark.until_texts(2)
    await hark.service.parts.lanes.sweep()
    await lanes_idle()
    assert (await hark.say("and now?")).texts != []
    assert len(hark.model.requests) == 2
    assert text not in "".join(message.text for message in hark.model.requests[1].messages)
    assert len(hark.stored.messages(kind="button", turn_id=None, state="done")) == 1
    assert (await hark.service.parts.store.reads.totals()).waiting == 0


async def test_nothing_is_accepted_once_the_service_stops(hark: Hark) -> None:
    await hark.service.parts.pipeline.close()
    with pytest.raises(NotAccepted):
        await hark.write("hello")
    assert hark.stored.messages() == []
