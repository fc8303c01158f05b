"""Strangers and their codes, in the real service: given once, good once, for an hour, and only to few."""

import re
from pathlib import Path

import pytest

from bot import wording
from bot.persistence.values import Person
from channels.message import Attachment, ChatKind, InboundKind, Origin, Place
from tests.scripted_model import texts
from tests.service import Hark, Json, running, session_of

PAIRING: Json = {"channels": {"telegram": {"dm": {"policy": "pairing"}}}}
CODE = re.compile(r"`([A-HJKMNP-Z2-9]{8})`")
HOUR = 3600


async def code_of(hark: Hark, sender: str, text: str = "let me in", **fields: object) -> str:
    """What a stranger is given for a message."""
    sent = len(hark.channel.texts(sender))
    await hark.write(text, sender=sender, **fields)
    found = CODE.search((await hark.until_texts(sent + 1, sender))[sent])
    assert found is not None
    return found[1]


async def command(hark: Hark, text: str, sender: str = "1") -> str:
    sent = len(hark.channel.texts(sender))
    await hark.write(text, sender=sender)
    return (await hark.until_texts(sent + 1, sender))[sent]


async def test_a_stranger_is_let_in_by_a_code_and_what_they_wrote_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        image = Attachment(kind="image", ref="r" * 5000)
        code = await code_of(hark, "6", "what is for lunch? " + "ä" * 9000, attachments=(image,))
        await hark.write("hello?", "hello??", sender="6")
        assert hark.model.requests == []
        assert hark.stored.sessions() == []
        assert code not in str(hark.stored.everything()["person"])
        held = hark.stored.messages("state", "payload", sender="6", state="held")
        assert len(held) == 1
        assert len(held[0][1].encode()) < 4096 + 700
        assert await command(hark, "/pairing list") == "- telegram 6"
        assert await command(hark, f"/pairing approve {code.lower()}") == "telegram 6: may write to me now."
        assert (await hark.until_texts(3, "6"))[1] == "You are let in. Welcome!"
        (asked,) = texts(hark.model.requests[0], "user")
        assert "what is for lunch?" in asked
        await hark.until(lambda: hark.ends(session_of("6"), 0), "the end of the first turn")
        assert (await hark.say("and now?", sender="6")).texts != []
        assert await command(hark, "/pairing list") == "Nobody waits to be let in."
    async with running(tmp_path, config=PAIRING) as hark:
        assert (await hark.say("after a restart?", sender="6")).texts != []
        await hark.write("somebody else", sender="7")
        assert CODE.search((await hark.until_texts(1, "7"))[0])


async def test_a_code_is_good_once(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        code = await code_of(hark, "6")
        assert "no such code" in await command(hark, "/pairing approve ABCDEFGH")
        assert "no such code" in await command(hark, "/pairing approve")
        assert "may write" in await command(hark, f"/pairing approve {code}")
        for again in ("approve", "deny"):
            assert "used before" in await command(hark, f"/pairing {again} {code}")
        assert (await hark.say("still in?", sender="6")).texts != []


async def test_it_is_good_for_an_hour_and_so_is_the_message(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        code = await code_of(hark, "6", "old words")
        hark.time.advance(HOUR - 1)
        await hark.write("anybody?", sender="6")
        hark.time.advance(1)
        assert "may write" not in await command(hark, f"/pairing approve {code}")
        assert await command(hark, "/pairing list") == "Nobody waits to be let in."
        assert len(hark.channel.texts("6")) == 1
        again = await code_of(hark, "6", "new words")
        assert again != code
        assert hark.stored.texts(state="held") == ["new words"]
        hark.time.advance(HOUR)
        await hark.service.parts.store.prune()
        assert hark.stored.texts(state="held") == []
        assert sorted(hark.stored.texts(reason="expired")) == ["new words", "old words"]


async def test_only_few_are_given_a_code_and_the_rest_is_told_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        codes = [await code_of(hark, sender) for sender in ("4", "5", "6")]
        await hark.write("me, too", "please", sender="7")
        assert len(set(codes)) == 3
        await command(hark, f"/pairing deny {codes[0]}")
        await code_of(hark, "8")
        assert hark.channel.texts("7") == []
        assert len(hark.stored.messages(sender="7", state="dropped", reason="access")) == 1
        await hark.write("again", sender="4")
        await command(hark, "/status")
        assert len(hark.channel.texts("4")) == 1, "who was denied is told nothing more"
        assert hark.model.requests == []


async def test_what_is_delivered_again_gets_no_second_code_and_no_second_answer(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        message = hark.message("hello", "6")
        await hark.accept(message, message)
        await hark.accept(message)
        (shown,) = await hark.until_texts(1, "6")
        found = CODE.search(shown)
        assert found is not None
        await command(hark, f"/pairing approve {found[1]}")
        await hark.until_texts(3, "6")
        await hark.accept(message)
        await hark.say("and?", sender="6")
        assert len(hark.model.requests) == 2


async def test_a_process_that_ends_right_after_the_approval_answers_at_its_next_start(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        codes = [await code_of(hark, "6", "hello"), await code_of(hark, "7", "/status")]
        pairing = hark.service.parts.pairing
        pairing.begin = lambda *_: None  # the process ends first
        for code in codes:
            assert await pairing.settle(code, "allowed")
        await hark.delivered()
    async with running(tmp_path, config=PAIRING) as hark:
        await hark.until_texts(1, "6")
        assert "**This conversation**" in (await hark.until_texts(1, "7"))[0]
        assert len(hark.model.requests) == 1


async def test_a_command_that_waited_is_carried_out_and_an_edit_asks_for_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        await hark.write("hello, edited", sender="5", kind=InboundKind.EDIT)
        code = await code_of(hark, "6", "/start")
        await command(hark, f"/pairing approve {code}")
        assert (await hark.until_texts(3, "6"))[2] == wording.hello("Hark")
        assert hark.channel.texts("5") == []
        assert hark.model.requests == []


async def test_who_is_made_an_owner_is_one_everywhere(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        code = await code_of(hark, "6")
        settled = await hark.service.parts.pairing.settle(code, "owner")
        assert settled is not None
        assert (await hark.until_texts(3, "6"))[1] == "You are an owner of this bot now."
        assert "**Runs**" in await command(hark, "/status", "6")
        assert await command(hark, "/pairing list", "6") == "Nobody waits to be let in."
    async with running(tmp_path, config=PAIRING) as hark:
        assert "**Runs**" in await command(hark, "/status", "6")


@pytest.mark.parametrize("text", ["/pairing list", "/pairing approve ABCDEFGH", "!pairing list"])
async def test_for_others_the_command_does_not_exist(tmp_path: Path, text: str) -> None:
    async with running(tmp_path) as hark:
        hark.model.add("What is that?")
        assert (await hark.say(text, sender="2")).texts == ["What is that?"]
        assert "pairing" not in await command(hark, "/help", "2")
        await hark.write(text.replace("!", "/"), sender="2", kind=InboundKind.COMMAND)
        assert "not there any more" in (await hark.until_texts(3, "2"))[2]
        assert all(info.name != "pairing" for info in hark.service.parts.pipeline.commands())


async def test_a_code_lets_in_to_one_account_and_to_no_group(tmp_path: Path) -> None:
    config: Json = {
        "channels": {"telegram": {"dm": {"policy": "pairing"}, "groups": {"allow": {"-5": {"users": [2]}}}}}
    }
    async with running(tmp_path, config=config) as hark:
        await command(hark, f"/pairing approve {await code_of(hark, '6')}")
        await hark.until_texts(3, "6")
        place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
        await hark.write("hello", origin=Origin(place=place, sender="6"), mentioned=True)
        await hark.say("hello", sender="6")
        assert hark.stored.messages("state", sender="6", reason="member") == [("dropped",)]
        assert hark.channel.texts("-5") == []
        assert len(hark.stored.sessions(session_key=session_of("6"))) == 1


def test_a_name_that_a_stranger_chose_cannot_write_in_a_terminal() -> None:
    person = Person(channel="telegram", account="b", sender="6", standing="pending", name="\x1b[2J Ada\u202e\n  L")
    assert wording.stranger(person) == "telegram 6 2J Ada L"
