"""Strangers and their codes, in the real service: given once, good once, for an hour, and only to few."""

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from bot import wording
from bot.persistence.errors import StoreUnavailable
from bot.persistence.people import Person
from bot.store.people import MOST_HELD
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


@pytest.fixture
async def hark(tmp_path: Path) -> AsyncIterator[Hark]:
    """A service that people may ask to be let in."""
    async with running(tmp_path, config=PAIRING) as made:
        yield made


async def test_a_stranger_is_let_in_by_a_code_and_what_they_wrote_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        image = Attachment(kind="image", ref="r" * 5000)
        code = await code_of(hark, "6", "what is for lunch? " + "ä" * 9000, attachments=(image,))
        await hark.write("hello?", "hello??", sender="6")
        assert hark.model.requests == []
        assert hark.stored.sessions() == []
        assert code not in str(hark.stored.everything()["person"])
        held = hark.stored.messages("state", "payload", sender="6", state="held")
        assert len(held) == 3
        assert len(held[0][1].encode()) < 4096 + 700
        assert await command(hark, "/pairing list") == "- telegram 6"
        assert await command(hark, f"/pairing approve {code.lower()}") == "telegram 6: may write to me now."
        assert (await hark.until_texts(4, "6"))[1:3] == [wording.KEPT, "You are let in. Welcome!"]
        asked = texts(hark.model.requests[0], "user")
        assert "what is for lunch?" in asked[0]
        assert [one.rpartition("\n")[2] for one in asked[1:]] == ["hello?", "hello??"], "one turn for all"
        await hark.until(lambda: hark.ends(session_of("6"), 0), "the end of the first turn")
        assert (await hark.say("and now?", sender="6")).texts != []
        assert await command(hark, "/pairing list") == "Nobody waits to be let in."
    async with running(tmp_path, config=PAIRING) as hark:
        assert (await hark.say("after a restart?", sender="6")).texts != []
        await hark.write("somebody else", sender="7")
        assert CODE.search((await hark.until_texts(1, "7"))[0])


async def test_a_code_is_good_once(hark: Hark) -> None:
    code = await code_of(hark, "6")
    assert "no such code" in await command(hark, "/pairing approve ABCDEFGH")
    assert "no such code" in await command(hark, "/pairing approve")
    assert "may write" in await command(hark, f"/pairing approve {code}")
    for again in ("approve", "deny"):
        assert "used before" in await command(hark, f"/pairing {again} {code}")
    assert (await hark.say("still in?", sender="6")).texts != []


async def test_it_is_good_for_an_hour_and_so_is_the_message(hark: Hark) -> None:
    code = await code_of(hark, "6", "old words")
    hark.time.advance(HOUR - 1)
    await hark.write("anybody?", sender="6")
    hark.time.advance(1)
    assert "may write" not in await command(hark, f"/pairing approve {code}")
    assert await command(hark, "/pairing list") == "Nobody waits to be let in."
    assert hark.channel.texts("6")[1:] == [wording.KEPT]
    again = await code_of(hark, "6", "new words")
    assert again != code
    assert hark.stored.texts(state="held") == ["new words"]
    hark.time.advance(HOUR)
    await hark.service.parts.store.prune()
    assert hark.stored.texts(state="held") == []
    assert sorted(hark.stored.texts(reason="expired")) == ["anybody?", "new words", "old words"]


async def test_only_few_are_given_a_code_and_the_rest_is_told_nothing(hark: Hark) -> None:
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


async def test_what_is_delivered_again_gets_no_second_code_and_no_second_answer(hark: Hark) -> None:
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


async def test_a_command_that_waited_is_carried_out_and_an_edit_asks_for_nothing(hark: Hark) -> None:
    await hark.write("hello, edited", sender="5", kind=InboundKind.EDIT)
    code = await code_of(hark, "6", "/start")
    await command(hark, f"/pairing approve {code}")
    assert (await hark.until_texts(3, "6"))[2] == wording.hello("Hark")
    assert hark.channel.texts("5") == []
    assert hark.model.requests == []


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("/start what is for lunch?", "what is for lunch?"),
        ("/start\nlunch?\n", "lunch?"),
        ("/start Abc_-123", ""),
        ("/start  ", ""),
        ("/lunch what is there?", "/lunch what is there?"),
    ],
)
async def test_a_question_behind_start_is_answered_and_what_a_link_brings_along_is_none(
    text: str, asked: str, hark: Hark
) -> None:
    code = await code_of(hark, "6", text)
    await command(hark, f"/pairing approve {code}")
    answer = (await hark.until_texts(3, "6"))[2]
    if not asked:
        assert (answer, hark.model.requests) == (wording.hello("Hark"), [])
        return
    assert texts(hark.model.requests[0], "user")[0].partition("\n")[2] == asked


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
async def test_for_others_the_command_does_not_exist(text: str, tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        assert (await hark.say(text, sender="2", answers=["What is that?"])).texts == ["What is that?"]
        assert "pairing" not in await command(hark, "/help", "2")
        await hark.write(text.replace("!", "/"), sender="2", kind=InboundKind.COMMAND)
        assert (await hark.until_texts(3, "2"))[2] == "There is no command `pairing`; /help lists what there is."
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


async def test_a_stranger_is_told_once_that_more_is_kept_and_gets_one_answer_to_the_first(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        code = await code_of(hark, "6", "word 0")
        for n in range(1, 25):
            await hark.write(f"word {n}", sender="6")
        await hark.delivered()
        assert hark.channel.texts("6")[1:] == [wording.KEPT]
        assert len(hark.stored.messages(sender="6", state="held")) == MOST_HELD
        assert len(hark.stored.messages(sender="6", state="dropped", reason="access")) == 1
    async with running(tmp_path, config=PAIRING) as hark:
        assert await command(hark, f"/pairing approve {code}") == "telegram 6: may write to me now."
        await hark.until_texts(2, "6")
        await hark.say("and now?", sender="6")
        first = texts(hark.model.requests[0], "user")
        assert [one.rpartition("\n")[2] for one in first] == [f"word {n}" for n in range(MOST_HELD)]
        assert len(hark.model.requests) == 2


async def test_what_only_they_see_is_answered_each_time(hark: Hark) -> None:
    for n in range(3):
        await hark.write("/status", sender="6", kind=InboundKind.COMMAND, respond=f"handle {n}")
    await hark.until_texts(3, "6")
    sent = [delivery.respond for delivery in hark.channel.sent if delivery.place.chat == "6"]
    assert sent == ["handle 0", "handle 1", "handle 2"]


def told_of(texts: Sequence[str]) -> list[str]:
    """What owners are told of who asks."""
    return [text for text in texts if "to write to me" in text]


async def test_an_owner_is_told_who_asks_at_once_and_then_once_an_hour(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        await hark.say("hello")
        await hark.write("let me in", sender="6")
        (told,) = told_of(await hark.until_texts(2))
        assert told.startswith("Somebody asks to write to me and got a code: telegram 6. `/pairing approve CODE` here")
        assert "`hark pairing approve CODE`" in told
        hark.time.advance(60)
        for sender in ("6", "7", "8"):
            await hark.write("me, too", sender=sender)
        await hark.service.parts.pairing.tell()
        await hark.delivered()
        assert len(told_of(hark.channel.texts())) == 1
    async with running(tmp_path, config=PAIRING) as hark:
        hark.time.advance(HOUR - 1)
        await hark.service.parts.pairing.tell()
        await hark.delivered()
        assert told_of(hark.channel.texts()) == []
        hark.time.advance(1)
        await hark.service.parts.pairing.tell()
        (told,) = told_of(await hark.until_texts(1))
        assert "2 people ask to write to me and got a code: telegram 7, telegram 8." in told
        hark.time.advance(HOUR)
        await hark.service.parts.pairing.tell()
        await hark.delivered()
        assert len(hark.channel.texts()) == 1


async def test_the_sweep_tells_an_owner_whom_a_crash_kept_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        await hark.say("hello")

        async def dies() -> None:
            raise StoreUnavailable("the process ends first")

        hark.service.parts.pipeline.asks = dies
        await code_of(hark, "6")
    monkeypatch.setattr("bot.service.SWEEP_EVERY", 0.0)
    async with running(tmp_path, config=PAIRING) as hark:
        assert len(told_of(await hark.until_texts(1))) == 1


async def test_the_terminal_is_told_as_well_and_alone_where_there_is_no_owner(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        await hark.say("hello")
        await code_of(hark, "6")
        await hark.until_texts(2)
        assert len(told_of(hark.stored.deliveries("body", channel="console", state="sent")[0])) == 1
    async with running(tmp_path / "b", config=PAIRING | {"owners": []}) as hark:
        await code_of(hark, "6")
        ((told,),) = hark.stored.deliveries("body", channel="console", state="sent")
        assert "with `--owner` behind it in a shell as an owner" in told
