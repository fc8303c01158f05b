"""What a platform refuses of the manners of a message costs the manners, and never the content."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from channels.message import ChatKind, Place
from channels.outgoing import Action, OutgoingFile, Refused, Sent
from tests.deliveries import delivery
from tests.standins.discord_objects import HARK
from tests.standins.slack_shapes import BOT
from tests.standins.telegram_updates import BOT_ID
from tests.watch import ManualTime, Watch
from tests.wire.platforms import ROOMS, Side
from tests.wire.sink import Clock, RecordingSink

pytestmark = pytest.mark.xdist_group("wire-platforms")
VOICE, PHOTO = ("a.ogg", "audio/ogg", "hello"), ("a.png", "image/png", "")
TALL = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (1280).to_bytes(4, "big") + (9000).to_bytes(4, "big") + bytes(9)
SOUND = b"OggS" + bytes(60)
SEND = {"telegram": "sendMessage", "slack": "chat.postMessage", "discord": "POST /channels/*/messages"}


@dataclass(frozen=True, slots=True)
class Row:
    """refusals: what the platform answers one after the other; none: what its rules answer. lost: what is given up."""

    platform: str
    name: str
    lost: tuple[str, ...]
    refusals: tuple[Any, ...] = ()
    direct: bool = False
    file: tuple[str, str, str] | None = None
    more: dict[str, Any] = field(default_factory=dict)


def bad(words: str, method: str = "sendMessage") -> dict[str, Any]:
    return {"method": method, "status": 400, "description": f"Bad Request: {words}"}


def code(number: int, words: str = "", status: int = 400) -> dict[str, Any]:
    return {"name": SEND["discord"], "status": status, "code": number, "message": words}


TOPIC, REPLY = {"thread": "7"}, {"reply_to": "41"}
ROWS = (
    Row("telegram", "a topic that was deleted", ("thread",), more={"thread": "99"}),
    Row("telegram", "a topic of a direct chat", ("thread",), direct=True, more={"thread": "99"}),
    Row("telegram", "a closed topic, answered with a reply", ("thread",), more={"thread": "8", **REPLY}),
    Row("telegram", "a closed general topic", ("reply",), (bad("TOPIC_CLOSED"),), more=REPLY),
    Row("telegram", "a reply to a message that is gone from a topic", ("reply",), more=TOPIC | {"reply_to": "99"}),
    Row("telegram", "a reply that is refused", ("reply",), (bad("REPLY_MESSAGE_ID_INVALID"),), more=REPLY),
    Row("telegram", "a screenshot of 1280 x 9000", ("photo",), file=PHOTO),
    Row("telegram", "a cut picture", ("photo",), (bad("IMAGE_PROCESS_FAILED", "sendPhoto"),), file=PHOTO),
    Row("telegram", "no photos", ("photo",), (bad("not enough rights to send photos", "sendPhoto"),), file=PHOTO),
    Row("telegram", "no voice messages", ("voice",), direct=True, file=VOICE),
    Row("telegram", "a picture for a deleted topic", ("thread", "photo"), file=PHOTO, more={"thread": "99"}),
    Row("slack", "a thread that is gone", ("thread",), more={"thread": "1.000001"}),
    Row(
        "slack", "a notice that cannot be answered", ("thread",), ("cannot_reply_to_message",), more={"thread": "root"}
    ),
    Row(
        "slack", "no threads there", ("thread",), ("restricted_action_non_threadable_channel",), more={"thread": "root"}
    ),
    Row("slack", "a file for a thread that is gone", ("thread",), file=PHOTO, more={"thread": "1.000001"}),
    Row("discord", "a reply that may not be read", ("reply",), (code(160002, status=403),), more={"reply_to": "root"}),
    Row("discord", "a locked thread", ("thread",), (code(160005, "This thread is locked"),), more={"thread": "root"}),
    Row("discord", "no voice messages", ("voice",), (code(50173),), file=VOICE),
    Row("discord", "neither", ("voice", "reply"), (code(50013), code(50013)), file=VOICE, more={"reply_to": "root"}),
)


async def _sent(side: Side, row: Row, tmp_path: Path) -> Any:
    """Send what the row says, by its channel."""
    account = {"telegram": str(BOT_ID), "slack": BOT, "discord": str(HARK.id)}[row.platform]
    clock, sink = Clock(), RecordingSink((row.platform, account))
    root = side.say("root", room=side.room)
    if row.platform == "telegram":  # the rules of this world
        side.server.closed_topics.add((side.room.id, 8))
        side.server.no_voice.add(int(side.alice))
    more = {name: root.id if value == "root" else value for name, value in row.more.items()}
    if row.platform == "discord" and "thread" in more:
        side.thread(root)
    said = side.say("hello") if row.direct else root
    chat = side.alice if row.direct else side.id_of(said.room)
    kind = ChatKind.DIRECT if row.direct else ChatKind.GROUP if row.platform == "telegram" else ChatKind.CHANNEL
    place = Place(channel=row.platform, account=account, chat=chat, kind=kind, thread=more.pop("thread", ""))
    channel = side.channel(clock.times)
    await channel.start(sink)
    await sink.until(lambda: sink.ready)
    if row.file is not None:
        name, mime, says = row.file
        (tmp_path / name).write_bytes(SOUND if says else TALL)
        more |= {"action": Action.FILE, "file": OutgoingFile(str(tmp_path / name), name, mime, says=says)}
    for one in row.refusals:
        side.server.fail_next(SEND["slack"], one) if isinstance(one, str) else side.server.fail_next(**one)
    body = "" if row.file else channel.render("the answer")[0]
    sent = await channel.send(delivery(body, place, **more))
    await channel.close()
    return sent


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.platform}: {row.name}")
async def test_the_content_arrives_without_the_manners_that_are_refused(row: Row, tmp_path: Path) -> None:
    side = ROOMS[row.platform](ManualTime(Watch()))
    async with side:
        sent = await _sent(side, row, tmp_path)
        assert isinstance(sent, Sent), sent
        assert sent.lost == row.lost
        where = None if row.direct else side.room
        if row.file is None:
            assert side.posts(where, {"7": 7}.get(row.more.get("thread", "")))[-1:] == ["the answer"]
        elif row.platform == "telegram":
            assert [one.method for one in side.server.sent] == ["sendDocument"]
        else:
            assert [name for name, _ in side.files()] == [row.file[0]]


@pytest.mark.parametrize("words", ["Bad Request: chat not found", "Forbidden: bot was blocked by the user"])
async def test_where_nothing_arrives_it_is_tried_once(words: str, tmp_path: Path) -> None:
    side = ROOMS["telegram"](ManualTime(Watch()))
    async with side:
        refusal = {"method": "sendPhoto", "status": 403 if "Forb" in words else 400, "description": words}
        row = Row("telegram", "gone", (), (refusal,), file=PHOTO)
        assert isinstance(await _sent(side, row, tmp_path), Refused)
        assert side.server.sent == []


async def test_what_is_said_below_a_post_is_a_reply_to_it(tmp_path: Path) -> None:
    side = ROOMS["telegram"](ManualTime(Watch()))
    async with side:
        for number, more in enumerate(({"thread": "c41"}, {"thread": "c41", "reply_to": "42"})):
            sent = await _sent(side, Row("telegram", "", (), more=more), tmp_path)
            assert isinstance(sent, Sent), sent
            assert [(one.reply_to, one.thread_id) for one in side.server.sent][number:] == [(41 + number, None)]
            side.server.allow_repeat("the answer")
