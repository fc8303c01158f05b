"""Groups in the real service: who is heard, what is answered where, with which tools, and what bots may do."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.persistence.inbox import AcceptedMessage
from bot.store.people import MOST_BOTS
from channels.message import ChatKind, ChatMoved, InboundKind, InboundMessage, Origin, Place, Quoted
from channels.outgoing import Delivery, Moved, SendResult, Sent
from channels.telegram.settings import Telegram
from tests.scripted_model import texts
from tests.service import Hark, Json, running
from tests.standins.script import Hang
from tests.watch import lanes_idle

CHAT = "-5"


def settings(groups: Json | None = None, **telegram: Any) -> Json:
    return {"channels": {"telegram": {"groups": {"allow": {CHAT: {}}} | (groups or {}), **telegram}}}


def said(hark: Hark, text: str, sender: str = "2", thread: str = "", chat: str = CHAT, **fields: Any) -> InboundMessage:
    """Something that was said in the group."""
    about = {name: fields.pop(name) for name in ("by_bot", "space") if name in fields}
    message = hark.message(text, sender, **fields)
    place = Place(channel="telegram", account="bot", chat=chat, kind=ChatKind.GROUP, thread=thread)
    origin = Origin(place=place, sender=sender, message_id=message.origin.message_id, **about)
    return replace(message, origin=origin)


async def hear(hark: Hark, *messages: InboundMessage) -> list[str]:
    """What is answered in the group until somebody else has been answered."""
    sent = len(hark.channel.sent)
    await hark.accept(*messages)
    await hark.say("and you?", "1")
    await lanes_idle()
    await hark.until(lambda: not hark.stored.unfinished(), "the end of everything")  # commands are no lane's
    return [delivery.body for delivery in hark.channel.sent[sent:] if delivery.place.chat != "1"]


async def test_what_is_not_for_it_starts_nothing(hark: Hark) -> None:
    assert await hear(hark, said(hark, "what a day"), said(hark, "/stop"), said(hark, "@ada?", names_others=True)) == []
    assert len(hark.model.requests) == 1
    assert len(hark.stored.sessions()) == 1
    assert len(await hear(hark, said(hark, "hello", mentioned=True))) == 1
    quoted = Quoted(author="Hark", text="x", by_me=True)
    assert len(await hear(hark, said(hark, "really?", replied=quoted))) == 1


async def test_who_is_not_let_in_reaches_no_model_is_told_nothing_and_is_named_once(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings({"allow": {CHAT: {"users": [2]}}})) as hark:
        strangers = [said(hark, f"hello {n}", "3", mentioned=True) for n in range(3)]
        elsewhere = [said(hark, "/status", sender, chat="-6", mentioned=True) for sender in ("1", "2", "3")]
        with capture_logs() as logged:
            assert await hear(hark, *strangers, *elsewhere) == []
        named = [line for line in logged if line["event"] == "a group was not let in"]
        assert [line["chat"] for line in named] == ["-6"]
        kept = hark.stored.messages("event_key", state="dropped")
        assert sorted(kept) == [("x:-6",), ("x:-6:1",), ("x:3",)]
        for person in ("1", "2"):
            assert len(await hear(hark, said(hark, "hello", person, mentioned=True))) == 1


async def test_it_follows_a_thread_it_spoke_in_also_after_a_restart_and_no_other(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        assert await hear(hark, said(hark, "one", thread="7")) == []
        assert len(await hear(hark, said(hark, "two", thread="7", mentioned=True))) == 1
        assert len(await hear(hark, said(hark, "three", thread="7"))) == 1
        assert await hear(hark, said(hark, "four", thread="8"), said(hark, "five")) == []
        assert await hear(hark, said(hark, "@ada six", thread="7", names_others=True)) == []
    async with running(tmp_path, config=settings()) as hark:
        assert len(await hear(hark, said(hark, "seven", thread="7"))) == 1
        assert await hear(hark, said(hark, "eight", thread="8")) == []


async def test_it_follows_a_thread_from_the_question_on(hark: Hark) -> None:
    """What comes before the answer is for it, too: in the same batch, and while it works."""
    hang = Hang()
    hark.model.add(hang)
    await hark.accept(said(hark, "one", thread="7", mentioned=True), said(hark, "two", thread="7"))
    await hang.entered()
    await hark.accept(said(hark, "three", thread="7"), said(hark, "else", thread="8"))
    hang.release()
    await lanes_idle()
    asked = " ".join(texts(hark.model.requests[-1], "user"))
    assert all(word in asked for word in ("one", "two", "three"))
    assert "else" not in asked
    assert {"one", "two", "three"} <= set(hark.stored.texts()), "for it, and not only overheard"


@pytest.fixture
async def hark(tmp_path: Path) -> AsyncIterator[Hark]:
    """A service with the usual group."""
    async with running(tmp_path, config=settings()) as made:
        yield made


@pytest.mark.parametrize(("follow", "own", "joined"), [("started", 1, 0), ("joined", 1, 1), ("never", 0, 0)])
async def test_which_threads_it_follows(tmp_path: Path, follow: str, own: int, joined: int) -> None:
    async with running(tmp_path, config=settings(threads={"follow": follow})) as hark:
        assert len(await hear(hark, said(hark, "hello", mentioned=True))) == 1
        root = hark.stored.deliveries("platform_id", chat=CHAT)[-1][0]
        assert len(await hear(hark, said(hark, "about that", thread=root))) == own
        assert len(await hear(hark, said(hark, "hello", thread="77", mentioned=True))) == 1
        assert len(await hear(hark, said(hark, "go on", thread="77"))) == joined


async def test_bots_are_ignored_or_let_in_until_only_bots_talk(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        assert await hear(hark, said(hark, "beep", "8", mentioned=True, by_bot=True)) == []
    group = {"require_mention": False}
    async with running(tmp_path / "b", config=settings(group, allow_bots=True)) as hark:
        with capture_logs() as logged:
            for n in range(MOST_BOTS + 2):
                answers = await hear(hark, said(hark, "beep", "8", thread=str(n), by_bot=True))
                assert len(answers) == (n < MOST_BOTS)
        assert len([line for line in logged if line["event"].startswith("bots talked")]) == 1
        assert [reason for (reason,) in hark.stored.messages("reason", state="dropped")] == ["bots"] * 2
    async with running(tmp_path / "b", config=settings(group, allow_bots=True)) as hark:
        assert await hear(hark, said(hark, "beep", "8", by_bot=True)) == [], "a restart begins no new loop"
        assert await hear(hark, said(hark, "@ada look", names_others=True)) == [], "a person, though not to the bot"
        assert len(await hear(hark, said(hark, "beep", "8", by_bot=True))) == 1


async def test_a_bot_is_no_owner_whatever_its_id(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings(allow_bots=True)) as hark:
        (answer,) = await hear(hark, said(hark, "!pairing list", "1", mentioned=True, by_bot=True))
        assert "Nobody" not in answer
        (answer,) = await hear(hark, said(hark, "!pairing list", "1"))
        assert "Nobody" in answer


async def test_an_answer_that_opens_a_thread_is_accepted_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Telegram, "opens_thread", lambda self, message: message.mentioned)
    async with running(tmp_path, config=settings()) as hark:
        question = said(hark, "hello", mentioned=True)
        assert len(await hear(hark, question)) == 1
        thread = question.origin.message_id
        assert hark.stored.deliveries("thread", chat=CHAT) == [(thread,)]
        assert hark.stored.sessions("session_key", session_key=f"agent:main:telegram:group:{CHAT}:thread:{thread}")
        assert len(await hear(hark, said(hark, "go on", thread=thread))) == 1
        await hear(hark, said(hark, "/status", mentioned=True))
        assert hark.stored.messages("session_key", kind="command") == [(f"agent:main:telegram:group:{CHAT}",)]


@pytest.mark.parametrize(
    ("shared", "keys"),
    [
        ("chat", {CHAT}),
        ("thread", {CHAT, f"{CHAT}:thread:7"}),
        ("person", {f"{CHAT}%2F2", f"{CHAT}%2F3"}),
    ],
)
async def test_whose_conversation_it_is(tmp_path: Path, shared: str, keys: set[str]) -> None:
    async with running(tmp_path, config=settings({"session": shared})) as hark:
        for sender, thread in (("2", ""), ("2", "7"), ("3", ""), ("3", "7")):
            await hear(hark, said(hark, "hello", sender, thread, mentioned=True))
        found = {key for (key,) in hark.stored.sessions("session_key")} - {"agent:main:telegram:direct:1"}
        assert found == {f"agent:main:telegram:group:{key}" for key in keys}


async def test_a_group_has_its_own_prompt_and_tools(tmp_path: Path) -> None:
    allow = {
        CHAT: {"prompt": "Be brief.", "tools": {"allow": ["re*"]}},
        "s": {"prompt": "Sing.", "tools": {"deny": ["read"]}},
    }
    async with running(tmp_path, config=settings({"allow": allow})) as hark:
        await hear(hark, said(hark, "one", mentioned=True))
        await hear(hark, said(hark, "two", chat="-6", space="s", mentioned=True))
        by_words = {request.messages[-1].text.rpartition("\n")[2]: request for request in hark.model.requests}
        group, direct, space = (by_words[words] for words in ("one", "and you?", "two"))
        assert [tool.name for tool in group.tools] == ["read"]
        assert {tool.name for tool in direct.tools} >= {"read", "write"}
        assert {tool.name for tool in space.tools} == {tool.name for tool in direct.tools} - {"read", "schedule"}
        assert "Be brief." in group.system
        assert "Sing." in space.system
        assert "Be brief." not in direct.system + space.system
    changed = {CHAT: {"prompt": "Be long.", "tools": {"allow": ["read"]}}}
    async with running(tmp_path, config=settings({"allow": changed})) as hark:
        await hear(hark, said(hark, "three", mentioned=True))
        (request,) = (one for one in hark.model.requests if "Be long." in one.system)
        assert "one" in texts(request, "user")[0]
    async with running(tmp_path, config=settings({"policy": "disabled"})) as hark:
        item = AcceptedMessage(message=said(hark, "before"), session_key=f"agent:main:telegram:group:{CHAT}")
        await hark.service.parts.pipeline.accept_one(item)
        await hark.until(lambda: hark.model.requests)
        await lanes_idle()
        assert hark.model.requests[0].tools == ()


@pytest.mark.parametrize("isolated", [False, True])
async def test_beats_in_a_group_keep_its_rules(tmp_path: Path, isolated: bool) -> None:
    beats = {"every": "30m", "session": f"agent:main:telegram:group:{CHAT}", "isolated": isolated}
    allow = {CHAT: {"prompt": "Be brief.", "tools": {"allow": ["re*"]}}}
    async with running(tmp_path, config=settings({"allow": allow}) | {"heartbeat": beats}) as hark:
        (tmp_path / "workspace" / "HEARTBEAT.md").write_text("- look after the garden\n")
        await hear(hark, said(hark, "one", mentioned=True))
        hark.model.add("The tomatoes are dry.")
        await hark.service.parts.dispatcher.beats.begin("now")
        assert (await hark.until_texts(2, CHAT))[1] == "The tomatoes are dry."
        request = hark.model.requests[-1]
        assert "Be brief." in request.system
        assert [tool.name for tool in request.tools] == ["read"]
        assert len(request.messages) == (1 if isolated else 3)


@pytest.mark.parametrize("told_by", ["an event", "a refused send"])
async def test_a_group_whose_id_changes_stays_what_it_was(tmp_path: Path, told_by: str) -> None:
    new = "-1005"
    async with running(tmp_path, config=settings()) as hark:
        await hear(hark, said(hark, "remember the blue door", mentioned=True))
        if told_by == "an event":
            moved = ChatMoved(channel="telegram", account="bot", old_chat=CHAT, new_chat=new)
            await hark.service.parts.pipeline.accept([moved, said(hark, "one", chat=new, mentioned=True), moved], None)
        else:

            async def send(delivery: Delivery) -> SendResult:
                return Moved(new) if delivery.place.chat == CHAT else Sent("1")

            hark.channel.on_send = send
            await hark.accept(said(hark, "one", mentioned=True))
        await hark.until_texts(1, new)
        await hear(hark, said(hark, "two", chat=new, mentioned=True))
    async with running(tmp_path, config=settings()) as hark:
        await hear(hark, said(hark, "three", chat=new, mentioned=True))
        asked = [" ".join(texts(request, "user")) for request in hark.model.requests]
        assert any(all(word in words for word in ("blue door", "one", "two", "three")) for words in asked)


@pytest.mark.parametrize("kind", [InboundKind.MESSAGE, InboundKind.COMMAND])
async def test_commands_in_a_group(kind: InboundKind, hark: Hark) -> None:
    for text in ("!status", "/status"):
        (shown,) = await hear(hark, said(hark, text, mentioned=text[0] == "/", kind=kind))
        assert "**This conversation** idle" in shown
    assert await hear(hark, said(hark, "/status@other_bot"), said(hark, "!dance"), said(hark, "/status")) == []


async def test_the_model_is_told_who_speaks_where(hark: Hark) -> None:
    heard = said(hark, "and this?", mentioned=True, replied=Quoted(author="Bob", text="17 °C"))
    told = replace(heard.origin, sender_name="Ada", chat_name="Kitchen")
    assert len(await hear(hark, replace(heard, origin=told))) == 1
    (asked,) = (one for one in hark.model.requests if "and this?" in one.messages[-1].text)
    assert asked.messages[-1].text.splitlines() == [
        f'[Tue 2026-07-14 03:33 UTC] "Ada" (id {told.sender}) in chat {told.place.chat}:',
        '<replied-to from="Bob">',
        "17 °C",
        "</replied-to>",
        "and this?",
    ]
    assert "Kitchen" not in f"{asked.system}{asked.messages[-1].text}"


async def test_an_owner_who_names_it_where_it_is_not_let_in_is_told_how_once(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        await hark.say("hello", "1")
        for n in range(2):
            heard = said(hark, f"hello {n}", "1", chat="-6", mentioned=True)
            await hark.accept(said(hark, "hello", "2", chat="-6", mentioned=True), said(hark, "hey", "1", chat="-6"))
            await hark.accept(replace(heard, origin=replace(heard.origin, chat_name="Kitchen")))
        told = (await hark.until_texts(2, "1"))[1]
        await hark.delivered()
        assert (len(hark.channel.texts("1")), hark.channel.texts("-6")) == (2, [])
        assert "You named me on Telegram in the chat Kitchen (-6), which is not let in" in told
        assert 'write `"-6": {}` below `channels.telegram.groups.allow` in the configuration' in told
        assert hark.stored.deliveries("body", channel="console") == [(told,)]
    async with running(tmp_path, config=settings()) as hark:
        await hark.accept(said(hark, "again", "1", chat="-6", mentioned=True))
        await hark.delivered()
        assert hark.channel.texts("1") == []
    async with running(tmp_path / "b", config=settings({"policy": "disabled"})) as hark:
        await hark.say("hello", "1")
        await hark.accept(said(hark, "hello", "1", mentioned=True))
        await hark.delivered()
        assert len(hark.channel.texts("1")) == 1


# /activation in the real service: what is answered in a group or a thread, as an owner sets it from there.


async def activate(hark: Hark, mode: str, thread: str = "") -> None:
    (answer,) = await hear(hark, said(hark, f"!activation {mode}", "1", thread))
    assert answer == f"Activation is {mode}."


async def heard(hark: Hark, thread: str = "") -> list[bool]:
    """Whether a message is answered that does not name the bot, one that does, and a command."""
    plain, named = said(hark, "hello", thread=thread), said(hark, "hello", thread=thread, mentioned=True)
    return [bool(await hear(hark, one)) for one in (plain, named, said(hark, "!status", thread=thread))]


@pytest.mark.parametrize(
    ("mode", "answered"),
    [("mention", [False, True, True]), ("always", [True, True, True]), ("off", [False, False, True])],
)
@pytest.mark.parametrize("require_mention", [True, False])
async def test_it_answers_what_was_set_also_after_a_restart(
    tmp_path: Path, mode: str, answered: list[bool], require_mention: bool
) -> None:
    config = settings({"require_mention": require_mention})
    async with running(tmp_path, config=config) as hark:
        assert await heard(hark) == [not require_mention, True, True]
        await activate(hark, mode)
        assert await heard(hark) == answered
    async with running(tmp_path, config=config) as hark:
        assert await heard(hark) == answered
        (status,) = await hear(hark, said(hark, "!status"))
        assert f"**Activation** {mode}" in status
        assert await hear(hark, said(hark, "!activation", "1")) == [f"Activation is {mode}."]


async def test_a_thread_that_it_takes_part_in_is_quieted_and_no_other(hark: Hark) -> None:
    for thread in ("7", "8"):
        assert len(await hear(hark, said(hark, "hello", thread=thread, mentioned=True))) == 1
    await activate(hark, "mention", "7")
    assert await heard(hark, "7") == [False, True, True]
    assert await heard(hark, "8") == [True, True, True]
    assert await heard(hark) == [False, True, True]
    await hear(hark, said(hark, "the door is blue", thread="7"))
    await hear(hark, said(hark, "what colour?", thread="7", mentioned=True))
    asked = [text for request in hark.model.requests for text in texts(request, "user") if "what colour?" in text]
    assert "the door is blue" in asked[0], "what it does not answer is overheard"


async def test_only_owners_set_it_and_only_among_others(hark: Hark) -> None:
    hark.model.add("What is that?")
    await hear(hark, said(hark, "/activation always", "2", mentioned=True))
    assert await heard(hark) == [False, True, True]
    sent = len(hark.channel.texts())
    await hark.write("/activation off")
    assert "Directly I always answer" in (await hark.until_texts(sent + 1))[sent]
    assert len((await hark.say("hello")).texts) == 1


async def test_what_is_for_somebody_else_is_not_answered_whatever_is_set(hark: Hark) -> None:
    await activate(hark, "always")
    other = (said(hark, "@ada?", names_others=True), said(hark, "/stop@other_bot"))
    assert await hear(hark, *other) == []


async def test_settings_that_cannot_be_read_are_as_if_nothing_was_set(hark: Hark) -> None:
    await activate(hark, "off")
    broken = "UPDATE session SET settings='{' WHERE session_key LIKE '%group%'"
    await hark.service.parts.store.writer.write(lambda db: db.execute(broken))  # type: ignore[attr-defined]
    item = AcceptedMessage(message=said(hark, "hello"), session_key=f"agent:main:telegram:group:{CHAT}")
    (answer,) = await hark.service.parts.store.inbox.accept([replace(item, follows="shut")])
    assert answer.state == "overheard"  # type: ignore[union-attr]
