"""Who gets in, what is kept of those who do not, and what the model is told about a message, in the real service."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agent.message import Text
from bot.clock import Clock
from bot.compose import composer
from bot.inbound.access import refusal
from channels.base import Mark, NotAccepted
from channels.message import Attachment, ChatKind, InboundKind, InboundMessage, Origin, Place, UnreadEvent
from channels.settings import DirectMessages
from tests.service import Json, running
from tests.standins.script import Hang

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


async def test_groups_wait_for_their_own_rules(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
        await hark.write("hello", origin=Origin(place=place, sender="1"))
        await hark.say("hello")
        assert hark.channel.texts("-5") == []
        assert hark.stored.messages("reason", state="dropped") == [("groups",)]


@given(
    st.sampled_from(list(ChatKind)),
    st.sampled_from(["1", "2", "666", ""]),
    st.sampled_from(["allowlist", "open"]),
    st.booleans(),
)
def test_access_is_decided_by_kind_policy_and_lists(kind: ChatKind, sender: str, policy: str, known: bool) -> None:
    place = Place(channel="telegram", account="bot", chat="1", kind=kind)
    message = InboundMessage(
        origin=Origin(place=place, sender=sender), event_key="m", kind=InboundKind.MESSAGE, text="", sent_at=0
    )
    direct = DirectMessages(policy=policy, allow_from=("2",)) if known else None  # type: ignore[arg-type]
    let_in = refusal(message, direct, {"telegram:1", "slack:666"}) is None
    if kind in (ChatKind.CONSOLE, ChatKind.API):
        assert let_in
    else:
        assert let_in == (kind is ChatKind.DIRECT and known and (policy == "open" or sender in ("1", "2")))


async def test_a_redelivered_message_starts_no_second_run(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        message = hark.message("hello")
        await hark.accept(message, message)
        await hark.accept(message)
        await hark.until_texts(1)
        await hark.say("and now?")
        assert len(hark.model.requests) == 2


async def test_an_unreadable_event_is_kept_and_the_mark_moves_on(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        assert hark.channel.sink is not None
        event = UnreadEvent(channel="telegram", account="bot", event_key="u:7", raw="{…\ud800", error="no message")
        await hark.channel.sink.accept([event, hark.message("hello"), event], Mark("poll", "8"))
        assert await hark.channel.sink.mark("poll") == "8"
        await hark.until_texts(1)
        assert hark.stored.messages("event_key", "reason", state="unread") == [("u:7", "no message")]


async def test_an_edit_replaces_the_words_of_a_message_that_waits(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hang = Hang()
        hark.model.add(hang, "First.")
        await hark.write("first")
        await hang.entered()
        waiting = hark.message("paint it red")
        await hark.accept(waiting)
        edit = {"kind": InboundKind.EDIT, "origin": waiting.origin}
        await hark.write("paint it blue", **edit)
        hang.release()
        await hark.until(lambda: len(hark.model.requests) == 2)
        assert hark.model.requests[1].messages[-1].text.endswith("\npaint it blue")
        await hark.service.parts.lanes.wait_idle()
        await hark.say("and now?")
        assert len(hark.model.requests) == 3


@pytest.mark.parametrize("text", ["Allow once", "/status"])
async def test_a_button_is_carried_out_and_never_shown_to_a_model(tmp_path: Path, text: str) -> None:
    async with running(tmp_path) as hark:
        hang = Hang()
        hark.model.add(hang, "First.")
        await hark.write("first")
        await hang.entered()
        await hark.write(text, kind=InboundKind.BUTTON)
        await hark.until_texts(1)
        hang.release()
        await hark.until_texts(2)
        await hark.service.parts.lanes.sweep()
        await hark.service.parts.lanes.wait_idle()
        assert (await hark.say("and now?")).texts != []
        assert len(hark.model.requests) == 2
        assert text not in "".join(message.text for message in hark.model.requests[1].messages)
        assert len(hark.stored.messages(kind="button", turn_id=None, state="done")) == 1
        assert (await hark.service.parts.store.reads.totals()).waiting == 0


async def test_nothing_is_accepted_once_the_service_stops(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.service.parts.pipeline.close()
        with pytest.raises(NotAccepted):
            await hark.write("hello")
        assert hark.stored.messages() == []


def composed(message: InboundMessage, zone: str, accepted_at: int = 1_784_000_000_000) -> str:
    """The user line of a message, as a service in that time zone writes it."""
    clock = Clock(now=lambda: accepted_at, zone=ZoneInfo(zone))
    made = composer(clock.stamp)(message, accepted_at)
    assert made.role == "user"
    (part,) = made.parts
    assert isinstance(part, Text)
    return part.text


def message(text: str, kind: ChatKind = ChatKind.DIRECT, **fields: object) -> InboundMessage:
    origin = Origin(place=Place(channel="c", account="a", chat="1", kind=kind), sender="1", sender_name="Ada\nLovelace")
    given: Json = {"origin": origin, "event_key": "k", "kind": InboundKind.MESSAGE, "text": text, "sent_at": 0}
    return InboundMessage(**given | fields)


@pytest.mark.parametrize(
    ("zone", "stamp"),
    [
        ("UTC", "Tue 2026-07-14 03:33 UTC"),
        ("Europe/Berlin", "Tue 2026-07-14 05:33 CEST"),
        ("America/New_York", "Mon 2026-07-13 23:33 EDT"),
        ("Asia/Kolkata", "Tue 2026-07-14 09:03 IST"),
    ],
)
def test_a_message_carries_its_local_time(zone: str, stamp: str) -> None:
    assert composed(message("hello"), zone) == f"[{stamp}]\nhello"


def test_the_time_is_when_it_was_sent_where_the_platform_says_so() -> None:
    assert composed(message("hello", sent_at=1_767_225_540_000), "UTC") == "[Wed 2025-12-31 23:59 UTC]\nhello"


def test_a_message_names_its_sender_only_among_others_and_on_one_line() -> None:
    assert composed(message("hello", ChatKind.GROUP), "UTC") == "[Tue 2026-07-14 03:33 UTC] Ada Lovelace:\nhello"


def test_attachments_are_mentioned() -> None:
    files = (Attachment(kind="image", ref="x"), Attachment(kind="file", ref="y", name="plan.pdf"))
    assert composed(message("", attachments=files), "UTC").splitlines()[1:] == [
        "(attached: image; its content cannot be read here)",
        "(attached: file plan.pdf; its content cannot be read here)",
    ]
