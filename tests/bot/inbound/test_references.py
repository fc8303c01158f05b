"""What a message refers to reaches the model with its files, a later copy or edit that tells more counts, once each."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.message import Image
from channels.message import Attachment, Quoted, message_key
from channels.outgoing import Action, Delivery, NotSent, SendResult, Sent
from tests.bot.inbound.test_edits import edit, idle
from tests.bot.inbound.test_groups import said, settings
from tests.service import Hark, running
from tests.standins.script import Hang

PIXELS = b"\xff\xd8\xff pixels"
PHOTO = Attachment(kind="image", ref="photo", name="cat.jpg")
CARD = Attachment(kind="file", ref="card", name="card.txt")


def photo_of(hark: Hark, sender: str) -> dict[str, Any]:
    """A reply to somebody's photo."""
    by = said(hark, "", sender).origin
    return {"replied": Quoted(author="Bob", text="", attachments=(PHOTO,)), "replied_by": by, "reply_to": by.message_id}


def pictures(hark: Hark) -> list[int]:
    """How many pictures each request brought."""
    return [
        sum(isinstance(part, Image) for one in asked.messages for part in one.parts) for asked in hark.model.requests
    ]


def newest(hark: Hark) -> str:
    return "\n".join(one.text for one in hark.model.requests[-1].messages[-3:])


async def test_the_picture_that_is_replied_to_is_shown_unless_its_words_would_not_be(tmp_path: Path) -> None:
    allowed = {"allow": {"-5": {"users": [1, 2]}}}
    async with running(tmp_path, config=settings(allowed)) as hark:
        hark.channel.files["photo"] = PIXELS
        await hark.accept(said(hark, "what is it?", "1", mentioned=True, **photo_of(hark, "3")))
        await hark.until_texts(1, "-5")
        assert (pictures(hark), hark.channel.fetched) == ([0], [])
        await hark.accept(said(hark, "and this?", "1", mentioned=True, **photo_of(hark, "2")))
        await hark.until_texts(2, "-5")
        assert pictures(hark) == [0, 1]
        assert 'of the message replied to or of one before: "cat.jpg": image' in newest(hark)


async def test_what_was_overheard_is_shown_with_its_newest_files_after_a_crash_as_well(tmp_path: Path) -> None:
    files = {"photo": PIXELS, "card": b"the door is blue", **{f"old{n}": b"old" for n in range(9)}}
    async with running(tmp_path, config=settings()) as hark:
        hark.channel.files |= files
        for n in range(9):
            await hark.accept(said(hark, "", "3", attachments=(Attachment(kind="file", ref=f"old{n}"),)))
        passed_on = {"forwarded": Quoted(author="Eve", text="from the news"), "attachments": (CARD,)}
        await hark.accept(said(hark, "", "3", **passed_on), said(hark, "look", "3", attachments=(PHOTO,)))
        hang = Hang()
        hark.model.add(hang)
        await hark.accept(said(hark, "what is it?", "2", mentioned=True))
        await hang.entered()
        assert sorted(hark.channel.fetched) == ["card", "old6", "old7", "old8", "photo"]
        assert pictures(hark) == [1]
        shown = newest(hark)
        assert 'from the news (attached: file "card.txt")' in shown
        assert "the door is blue" in shown
    async with running(tmp_path, config=settings()) as hark:
        await hark.until_texts(1, "-5")
        assert (pictures(hark), hark.channel.fetched) == ([1], [])


@pytest.mark.parametrize(
    ("before", "after", "runs", "answered"),
    [
        ({"text": "what is new"}, {"text": "what is new", "mentioned": True}, 1, True),
        ({"text": "helo", "mentioned": True}, {"text": "hello", "mentioned": True}, 1, True),
        ({"text": "helo"}, {"text": "hello"}, 0, False),
        ({"text": "old"}, {"text": "old", "mentioned": True, "first_sent_at": 1}, 0, False),
        ({"text": "old"}, {"text": "/status", "mentioned": True}, 0, True),
    ],
)
async def test_a_name_that_an_edit_adds_counts_and_a_corrected_word_does_not(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], runs: int, answered: bool
) -> None:
    async with running(tmp_path, config=settings()) as hark:
        first = said(hark, sender="1", **before)
        first = replace(first, event_key=message_key("-5", first.origin.message_id))
        edited = edit(first, **{"first_sent_at": first.sent_at, "sent_at": first.sent_at + 1000} | after)
        await hark.accept(first)
        await hark.until_texts(1 if first.mentioned else 0, "-5")
        await hark.until(lambda: not hark.stored.unfinished())
        await hark.accept(edited)
        await hark.accept(replace(edited, event_key="e:again"), edited)
        await hark.say("end", "9")
        await hark.until(lambda: not hark.stored.unfinished())
        assert (len(hark.model.requests), bool(hark.channel.texts("-5"))) == (runs + 1, answered)
        await hark.accept(said(hark, "more?", "1", mentioned=True))
        await hark.until(lambda: len(hark.model.requests) == runs + 2)
        assert ("<overheard>" in newest(hark)) == (not answered)


async def test_a_later_copy_that_knows_more_completes_the_first(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings() | {"queue": {"debounce_ms": 1000}}) as hark:
        hark.channel.files |= {"photo": PIXELS}
        first = said(hark, "what is it?", "2", mentioned=True)
        whole = replace(first, text="what is it?\na | b", attachments=(PHOTO,))
        await hark.accept(first)
        await hark.accept(whole, first, whole)
        hark.time.advance(1)
        await hark.until_texts(1, "-5")
        await idle(hark)
        assert pictures(hark) == [1]
        assert "what is it?\na | b" in newest(hark)
        await hark.accept(replace(whole, attachments=(replace(PHOTO, ref="another address"),)), first)
        await idle(hark)
        assert len(hark.model.requests) == 1


async def test_what_a_copy_has_more_is_read_after_a_run_has_taken_the_first(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        hark.channel.files |= {"photo": PIXELS}
        hang = Hang()
        hark.model.add(hang, "I see none")
        first = said(hark, "what is it?", "2", mentioned=True)
        await hark.accept(first)
        await hang.entered()
        await hark.accept(replace(first, attachments=(PHOTO,)), replace(first, attachments=(PHOTO,)))
        hang.release()
        await hark.until(lambda: len(hark.model.requests) == 2)
        await idle(hark)
        assert pictures(hark) == [0, 1]


async def test_a_picture_waits_for_its_words(tmp_path: Path) -> None:
    async with running(tmp_path, config={"queue": {"debounce_ms": 1000}}) as hark:
        hark.channel.files |= {"photo": PIXELS}
        await hark.write("", attachments=(PHOTO,))
        hark.time.advance(0.5)
        await hark.write("what is it?")
        hark.time.advance(1)
        await hark.until_texts(1)
        await idle(hark)
        assert pictures(hark) == [1]


async def test_a_flooded_reaction_holds_no_answer_and_comes_when_it_may(tmp_path: Path) -> None:
    refused = list[str]()

    async def send(delivery: Delivery) -> SendResult:
        if delivery.action is Action.REACT and not refused:
            refused.append(delivery.body)
            return NotSent(25.0, "Too Many Requests")
        return Sent("9")

    seen = {"channels": {"telegram": {"dm": {"policy": "open"}, "ack": {"emoji": "👀"}}}}
    async with running(tmp_path, config=seen) as hark:
        hark.channel.on_send = send
        hang = Hang()
        hark.model.add(hang, "here it is")
        await hark.write("hello")
        await hark.until(lambda: refused and 25.0 in hark.time.asked)
        hang.release()
        await hark.until(lambda: any(one.action is Action.SEND for one in hark.channel.sent))
        hark.time.advance(25)
        await hark.delivered()
        assert [one.body for one in hark.channel.sent if one.action is Action.REACT] == ["👀", ""]


async def test_lost_manners_are_said_once_for_a_turn(tmp_path: Path) -> None:
    async def send(delivery: Delivery) -> SendResult:
        return Sent("9", ("thread", "reply"))

    async with running(tmp_path) as hark:
        hark.channel.on_send = send
        hark.channel.rendered = lambda text: text.split("|")
        assert (await hark.say("hello", answers=["one|two"])).texts == [
            "one",
            "two",
            "I couldn't write in that topic or thread, so I've answered here.",
        ]


async def test_who_is_forgotten_leaves_no_file_that_others_referred_to(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        hark.channel.files |= {"photo": PIXELS, "card": b"the door is blue"}
        await hark.say("hello", "3")
        await hark.accept(said(hark, "look", "3", attachments=(CARD,)))
        await hark.accept(said(hark, "what is it?", "2", mentioned=True, **photo_of(hark, "3")))
        await hark.until_texts(1, "-5")
        await idle(hark)

        def kept() -> list[str]:
            return [path.name for path in tmp_path.rglob("*") if path.name.endswith(("cat.jpg", "card.txt"))]

        assert len(kept()) == 2
        await hark.service.parts.forget.forget_person("telegram:3")
        assert kept() == []
        assert "card.txt" not in str(hark.stored.messages("payload"))
