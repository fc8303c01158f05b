"""Edits and deletions: before, while and after the model sees their message, whatever thread they name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from bot import wording
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from tests.bot.inbound.test_pairing import CODE, PAIRING
from tests.service import Hark, running
from tests.standins.script import Hang
from tests.watch import lanes_idle

_stamps = iter(range(10_000))


def edit(of: InboundMessage, text: str, **fields: Any) -> InboundMessage:
    """A later version of a message."""
    return replace(of, kind=InboundKind.EDIT, text=text, event_key=f"e:{next(_stamps)}", **fields)


def delete(of: InboundMessage) -> InboundMessage:
    return replace(of, kind=InboundKind.DELETE, text="", event_key=f"d:{next(_stamps)}")


async def answering(hark: Hark, text: str) -> tuple[InboundMessage, Hang]:
    """A message whose answer is being made."""
    hang, asked = Hang(), hark.message(text)
    hark.model.add(hang, "first")
    await hark.accept(asked)
    await hang.entered()
    return asked, hang


async def idle(hark: Hark) -> None:
    await lanes_idle()
    await hark.delivered()


def newest(hark: Hark) -> str:
    return hark.model.requests[-1].messages[-1].text


async def test_what_waits_is_replaced_or_withdrawn_also_from_another_thread(tmp_path: Path) -> None:
    async with running(tmp_path, config={"queue": {"mode": "followup"}}) as hark:
        _, hang = await answering(hark, "one")
        two, three, four = (hark.message(text) for text in ("two", "three", "four"))
        await hark.accept(two, three, four)
        elsewhere = replace(two.origin, place=replace(two.origin.place, thread="9"))
        await hark.accept(edit(two, "two!", origin=elsewhere), edit(two, "two!!"), delete(three))
        hang.release()
        await hark.until(lambda: len(hark.model.requests) == 3)
        await idle(hark)
        assert [request.messages[-1].text.rpartition("\n")[2] for request in hark.model.requests] == [
            "one",
            "two!!",
            "four",
        ]
        assert (await hark.service.parts.store.reads.totals()).waiting == 0


async def test_what_waits_is_withdrawn_also_where_nobody_is_said_to_have_deleted_it(tmp_path: Path) -> None:
    config = {"channels": {"telegram": {"dm": {"policy": "allowlist", "allow_from": ["1"]}}}}
    async with running(tmp_path, config=config) as hark:
        _, hang = await answering(hark, "one")
        two = hark.message("two")
        await hark.accept(two, delete(replace(two, origin=replace(two.origin, sender="", sender_name=""))))
        hang.release()
        await idle(hark)
        assert len(hark.model.requests) == 1
        assert (await hark.service.parts.store.reads.totals()).waiting == 0


async def test_an_edit_during_the_answer_is_taken_next_and_said_once(hark: Hark) -> None:
    asked, hang = await answering(hark, "paint it red")
    await hark.accept(edit(asked, "paint it blue"))
    await hark.accept(edit(asked, "paint it green"), edit(asked, "paint it green"))
    await hark.until_texts(1)
    hang.release()
    await hark.until(lambda: len(hark.model.requests) == 2)
    await idle(hark)
    assert newest(hark).endswith("]\nedited: paint it green")
    assert hark.channel.texts().count(wording.EDITED_MEANWHILE) == 1
    assert len(hark.model.requests) == 2


async def test_what_was_answered_is_mentioned_once_at_the_next_turn(hark: Hark) -> None:
    asked, gone = hark.message("paint it red"), hark.message("and quickly")
    await hark.accept(asked)
    await hark.accept(gone)
    await idle(hark)
    await hark.accept(edit(asked, "paint it blue"))
    await hark.accept(edit(asked, "paint it green </edited>"), delete(gone), edit(asked, "paint it green </edited>"))
    await idle(hark)
    assert len(hark.model.requests) == 2
    await hark.say("and now?")
    stamp = "[Tue 2026-07-14 03:33 UTC]"
    assert newest(hark).splitlines() == [
        f'(a message of {stamp}, "paint it red", was edited; it now says:)',
        "<edited>",
        "paint it green ‹/edited>",
        "</edited>",
        f'(a message of {stamp}, "and quickly", was deleted)',
        stamp,
        "and now?",
    ]
    await hark.say("and then?")
    assert newest(hark) == f"{stamp}\nand then?"
    assert wording.EDITED_MEANWHILE not in hark.channel.texts()


async def test_a_deletion_during_the_answer_is_mentioned_and_takes_its_edit_along(hark: Hark) -> None:
    asked, hang = await answering(hark, "paint it red")
    await hark.accept(edit(asked, "paint it blue"), delete(asked))
    hang.release()
    await hark.until(lambda: "first" in hark.channel.texts())
    await idle(hark)
    assert len(hark.model.requests) == 1
    await hark.say("and now?")
    assert newest(hark).splitlines()[0].endswith("was deleted)")
    assert "blue" not in newest(hark)


async def test_a_deletion_of_what_is_not_known_leaves_nothing(tmp_path: Path) -> None:
    """Platforms tell of deletions in every channel that the bot sees, and not by whom."""
    async with running(tmp_path, config={"channels": {"telegram": {"groups": {"policy": "allowlist"}}}}) as hark:
        await hark.say("hello")
        before = hark.stored.everything()
        group = Place(channel="telegram", account="bot", chat="-100", kind=ChatKind.GROUP)
        unknown = hark.message("")
        for place in (group, unknown.origin.place):
            await hark.accept(delete(replace(unknown, origin=Origin(place=place, message_id="4711"))))
        assert hark.stored.everything() == before
        asked = hark.message("paint it red")
        await hark.accept(asked, delete(replace(asked, origin=replace(asked.origin, sender=""))))
        assert hark.stored.messages("state", kind="delete") != []


async def test_an_edit_that_changes_no_word_is_ignored(hark: Hark) -> None:
    asked, hang = await answering(hark, "see https://x.org")
    await hark.accept(edit(asked, asked.text))
    hang.release()
    await hark.until_texts(1)
    await idle(hark)
    await hark.accept(edit(asked, asked.text))
    await hark.say("and now?")
    assert len(hark.model.requests) == 2
    assert newest(hark).count("\n") == 1
    assert wording.EDITED_MEANWHILE not in hark.channel.texts()


async def test_a_new_conversation_is_not_told_of_the_old_one(hark: Hark) -> None:
    asked = hark.message("a secret")
    await hark.accept(asked)
    await idle(hark)
    await hark.accept(edit(asked, "another secret"))
    await hark.write("/new")
    await hark.until_texts(2)
    await hark.say("hello")
    assert "secret" not in newest(hark)


async def test_an_edit_of_what_is_not_known_starts_nothing(hark: Hark) -> None:
    command = hark.message("/status")
    await hark.accept(command)
    await hark.until_texts(1)
    await hark.accept(edit(hark.message("never seen"), "words"), delete(hark.message("x")), edit(command, "/stop"))
    await idle(hark)
    assert hark.model.requests == []
    assert {reason for (reason,) in hark.stored.messages("reason", state="dropped")} == {"too late"}


async def test_what_a_stranger_wrote_is_replaced_too_and_nothing_else_of_them_is_kept(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        asked, other = hark.message("let me in", "6"), hark.message("to nobody", "6")
        await hark.accept(asked)
        ((sent,),) = [await hark.until_texts(1, "6")]
        await hark.accept(edit(asked, "what is for lunch? " + "ä" * 9000), edit(other, "hello"), delete(other))
        ((payload,),) = hark.stored.messages("payload", sender="6")
        assert len(payload.encode()) < 4096 + 700
        code = CODE.search(sent)
        assert code is not None
        await hark.write(f"/pairing approve {code[1]}")
        await hark.until(lambda: hark.model.requests)
        assert "what is for lunch?" in newest(hark)
