"""The `message` tool: what the model does in conversations beside its answer, and what it is told of that."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent.message import ToolResult, estimate_text
from bot.people.access import OWNER
from bot.runs.messaging import PATIENCE
from channels.actions import COMMON, THREAD_CREATE, THREAD_REPLY, ActionFailed, Arguments, ToolAction
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place, message_key
from channels.outgoing import Action, Button, Delivery, NotSent, Refused, SendResult, Unknown
from tests.bot.test_choices import press
from tests.offering import offer
from tests.service import Hark, RecordingChannel, running, session_of
from tests.standins.script import Call

READ = ToolAction("read", "the last messages", (), ("to", "thread", "limit", "before"))
INFO = ToolAction("member_info", "who somebody is", ("person",))
TOPIC = ToolAction("topic_create", "a topic", ("name",), ("to",))
FULL = (*COMMON, THREAD_CREATE, THREAD_REPLY, READ, INFO, TOPIC, ToolAction("pin", "a message", (), ("message_id",)))
ELSEWHERE = "Other people read along here, so look only at this conversation and its threads."
GROUPS = {"channels": {"telegram": {"groups": {"policy": "allowlist", "allow": {"-5": {}, "-6": {}}}}}}


class ActingChannel(RecordingChannel):
    """A platform on which more can be done. performed: what it was asked for. places: what it finds."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.performed: list[tuple[str, Place, Arguments]] = []
        self.places: dict[str, Place] = {}
        self.near: tuple[str, ...] = ()

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        self.performed.append((name, place, arguments))
        if arguments.before == "never":
            raise ActionFailed("The bot lacks the right to read there.")
        return "7 · 10:00 · Bob: hello"

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        if place := self.places.get(wanted):
            return Origin(place=place, sender=place.chat if place.kind is ChatKind.DIRECT else "")
        return self.near


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every account offers everything."""
    offer(monkeypatch, FULL)


@dataclass
class ActingHark(Hark):
    """With that channel."""

    channel: ActingChannel


def service(home: Path, config: Mapping[str, Any] | None = None) -> "AbstractAsyncContextManager[ActingHark]":
    return running(home, config=config, made=ActingChannel)  # type: ignore[return-value]


def place(chat: str, thread: str = "") -> Place:
    kind = ChatKind.GROUP if chat.startswith("-") else ChatKind.DIRECT
    return Place(channel="telegram", account="bot", chat=chat, kind=kind, thread=thread)


def written(hark: Hark, text: str, chat: str, name: str, sender: str = "") -> InboundMessage:
    """A message of somebody with a name, in a chat with a name."""
    message = hark.message(text, sender or chat)
    origin = Origin(
        place=place(chat),
        sender=sender or chat,
        message_id=message.origin.message_id,
        sender_name=name,
        chat_name=name if chat.startswith("-") else "",
    )
    key = message_key(chat, origin.message_id)
    return InboundMessage(
        origin=origin, event_key=key, kind=InboundKind.MESSAGE, text=text, sent_at=message.sent_at, mentioned=True
    )


async def calls(hark: Hark, *asked: dict[str, Any], sender: str = "1") -> list[tuple[str, bool]]:
    """Let the model call the tool so, each in an answer of its own; what it is told, and whether that is an error."""
    known = {result.call_id for result in _results(hark)}
    for arguments in asked:
        hark.model.add(Call("message", arguments))
    hark.model.add("done")
    await hark.say("do it", sender)
    return [(found.text, found.is_error) for found in _results(hark) if found.call_id not in known]


def _results(hark: Hark) -> list[ToolResult]:
    found: dict[str, ToolResult] = {}
    for request in hark.model.requests:
        for message in request.messages:
            found |= {part.call_id: part for part in message.parts if isinstance(part, ToolResult)}
    return list(found.values())


async def test_the_schema_is_small_and_has_what_the_actions_take(tmp_path: Path) -> None:
    async with service(tmp_path) as hark:
        await hark.say("hello")
        (tool,) = [tool for tool in hark.model.requests[0].tools if tool.name == "message"]
    assert estimate_text(tool.description + tool.schema_json) < 700
    assert '"enum":["send","reply","edit","delete","react","upload"' in tool.schema_json
    assert "- send text [to] [thread] [buttons]: a message\n" in tool.description
    assert '"default":""' not in tool.schema_json


@pytest.mark.parametrize(
    "config",
    [
        {"tools": {"deny": ["mess*"]}},
        {"tools": {"allow": ["read"]}},
        {"channels": {"telegram": {"actions": {one.name: False for one in FULL}}}},
    ],
)
async def test_where_it_is_not_offered(tmp_path: Path, config: dict[str, Any]) -> None:
    async with service(tmp_path, config) as hark:
        await hark.say("hello")
        assert "message" not in [tool.name for tool in hark.model.requests[0].tools]


async def test_what_actions_become_here(tmp_path: Path) -> None:
    async with service(tmp_path) as hark:
        (tmp_path / "workspace" / "out.txt").write_text("words")
        told = await calls(
            hark,
            {"action": "send", "text": "**one**", "buttons": ["Tea", "Coffee"]},
            {"action": "reply", "text": "two", "limit": 20, "to": ""},
            {"action": "react", "emoji": "👍"},
            {"action": "upload", "path": "out.txt", "text": "Here."},
            {"action": "upload", "path": "out.txt"},
            {"action": "edit", "message_id": "1", "text": "uno"},
            {"action": "delete", "message_id": "2"},
            {"action": "thread_create", "text": "in a thread"},
            {"action": "thread_reply", "thread": "9", "text": "in another"},
        )
        sent = hark.channel.sent
    assert [text for text, _ in told] == [
        *("Sent, id 1.", "Sent, id 2.", "Done.", "Sent, id 4.", "Sent, id 5.", "Done.", "Done."),
        *("Sent, id 8.", "Sent, id 9."),
    ]
    assert not any(is_error for _, is_error in told)
    shown = [(one.action.value, one.body, one.target, one.reply_to, one.place.thread) for one in sent]
    assert shown == [
        ("send", "**one**", "", "", ""),
        ("send", "two", "", "1", ""),
        ("react", "👍", "1", "", ""),
        ("file", "Here.", "", "", ""),
        ("file", "", "", "", ""),
        ("edit", "uno", "1", "", ""),
        ("delete", "", "2", "", ""),
        ("send", "in a thread", "", "", "1"),
        ("send", "in another", "", "", "9"),
        ("send", "done", "", "", ""),
    ]
    assert sent[0].buttons == (Button("💬 Tea", "Tea"), Button("💬 Coffee", "Coffee"))
    assert all(one.step is None and one.said == one.body for one in sent[:2])
    assert sent[3].file is not None
    assert (sent[3].file.name, sent[3].file.mime) == ("out.txt", "text/plain")


WRONG = (
    ({"action": "send"}, "send needs text."),
    ({"action": "send", "text": "  "}, "send needs text."),
    ({"action": "delete", "text": "x", "message_id": "1"}, "delete takes no text; it takes message_id, to, thread."),
    ({"action": "sned", "text": "x"}, "Wrong arguments for message; it was not called."),
    ({"action": "send", "text": " no_reply\n"}, "That is the sign for saying nothing, no message"),
    ({"action": "send", "text": "HEARTBEAT_OK"}, "That is the sign for saying nothing, no message"),
    ({"action": "edit", "message_id": "777", "text": "x"}, "'777' is no message of yours there"),
    ({"action": "delete", "message_id": "1"}, "'1' is no message of yours"),
    ({"action": "send", "text": "x", "buttons": ["a", "a"]}, "Labels of buttons differ"),
    ({"action": "send", "text": "x", "buttons": ["ü" * 33]}, "Labels of buttons differ, and have 1 to 64 bytes."),
    ({"action": "send", "text": "x", "buttons": ["/approve 7 once"]}, "The label of a button is no command."),
    ({"action": "send", "text": "x", "buttons": [" !approve 7 once"]}, "The label of a button is no command."),
    ({"action": "upload", "path": "none.txt"}, "none.txt"),
    ({"action": "upload", "path": "../state/hark.db"}, "outside the workspace"),
    ({"action": "upload", "path": "large"}, "large: has 1,001 bytes; 1 to 1,000 can be sent there"),
    ({"action": "upload", "path": "large", "text": "x" * 801}, "A caption has at most 800 characters"),
    ({"action": "read", "before": "never"}, "The bot lacks the right to read there."),
    ({"action": "send", "text": "x", "to": "discord:#general"}, "There is no conversation 'discord:#general'"),
)


async def test_mistakes_are_told_in_words_and_send_nothing(tmp_path: Path) -> None:
    async with service(tmp_path) as hark:
        (tmp_path / "workspace" / "large").write_bytes(b"x" * 1001)
        told = await calls(hark, *(arguments for arguments, _ in WRONG))
        assert hark.channel.texts() == ["done"]
    for (arguments, words), (text, is_error) in zip(WRONG, told, strict=True):
        assert words in text, (arguments, text)
        assert is_error


async def test_what_the_channel_is_asked(tmp_path: Path) -> None:
    async with service(tmp_path) as hark:
        pins: tuple[dict[str, Any], ...] = ({"action": "pin"}, {"action": "pin", "message_id": "9"})
        told = await calls(hark, {"action": "read", "limit": 5}, *pins)
        channel = hark.channel
    assert told == [("7 · 10:00 · Bob: hello", False)] * 3
    asked = [(name, where.chat, given.limit, given.message_id) for name, where, given in channel.performed]
    assert asked == [("read", "1", 5, ""), ("pin", "1", 20, "1"), ("pin", "1", 20, "9")]


async def test_the_call_waits_for_its_own_sends_and_tells_what_became_of_them(tmp_path: Path) -> None:
    """Refused; later, by the platform's limits; not in time; nobody knows."""
    answers: dict[str, list[SendResult]] = {
        "refused": [Refused("not enough rights")],
        "later": [NotSent(5.0, "slow")],
        "never": [NotSent(1000.0, "slow")],
        "unknown": [Unknown("no answer")] * 9,
    }

    async def answer(delivery: Delivery) -> SendResult:
        left = answers.get(delivery.body, [])
        hark.channel.on_send = None if not left else answer
        result = left.pop(0) if left else await hark.channel.send(delivery)
        hark.channel.on_send = answer
        return result

    async def told(text: str) -> tuple[str, bool]:
        hark.model.add(Call("message", {"action": "send", "text": text}))
        hark.model.add("done")
        known = len(hark.model.requests)
        await hark.write(text)
        await hark.until(lambda: len(hark.model.requests) > known, "the call")
        if text == "later":
            await hark.time.until_pause(5.0)
            hark.time.advance(5.0)
        if text == "never":
            await hark.time.until_pause(PATIENCE)
            hark.time.advance(PATIENCE)
        await hark.until(lambda: len(hark.model.requests) > known + 1, "the result")
        result = _results(hark)[-1]
        return result.text, result.is_error

    async with service(tmp_path) as hark:
        hark.channel.on_send = answer
        assert await told("refused") == ("Not done: not enough rights.", True)
        assert await told("later") == ("Sent, id 3.", False)
        assert await told("unknown") == ("It may have been done, which nobody knows. Do not repeat it.", False)
        assert await told("never") == ("It will be done as soon as it can. Do not repeat it.", False)
        hark.time.advance(1000.0)
        await hark.delivered()


async def test_what_is_sent_elsewhere_is_told_there_before_the_next_turn(tmp_path: Path) -> None:
    async with service(tmp_path, GROUPS) as hark:
        hark.model.default = "hi"
        await hark.accept(written(hark, "hello", "2", "Bob"), written(hark, "hey", "-5", "Kitchen", "2"))
        await hark.until_texts(1, "2")
        await hark.until_texts(1, "-5")
        hark.channel.places["-6"] = place("-6")
        (tmp_path / "workspace" / "out.txt").write_text("words")
        told = await calls(
            hark,
            {"action": "send", "to": "@bob", "text": "Lunch is ready."},
            {"action": "send", "to": "kitchen", "text": "It is\n</sent> done."},
            {"action": "upload", "to": "-6", "path": "out.txt"},
            {"action": "send", "to": "-5", "thread": "44", "text": "in the topic"},
        )
        assert [text for text, _ in told] == [f"Sent, id {n}." for n in (3, 4, 5, 6)]
        assert hark.channel.texts("2") == ["hi", "Lunch is ready."]
        assert [(one.place.thread, one.body) for one in hark.channel.sent[3:6]] == [
            *(("", "It is\n</sent> done."), ("", ""), ("44", "in the topic")),
        ]
        assert len(hark.stored.turns()) == 3, "nothing of it causes a turn"
        view = await hark.service.parts.api.turn(hark.stored.turns("turn_id", session_key=session_of("1"))[0][0])
        assert view is not None
        assert view.text == "done", "no words of the answer"
        await hark.say("what is it?", "2")
        there = hark.model.requests[-1].messages[-1].text.splitlines()
        assert there[0].startswith("(you wrote here at [Tue 2026-07-14 ")
        assert there[0].endswith("], from another conversation:)")
        assert there[1:4] == ["<sent>", "Lunch is ready.", "</sent>"]
        await hark.say("and now?", "2")
        assert "you wrote" not in hark.model.requests[-1].messages[-1].text, "once"
        await hark.accept(written(hark, "thanks", "-5", "Kitchen", "2"))
        await hark.until_texts(4, "-5")
        told_there = hark.model.requests[-1].messages[-1].text
        assert "<sent>\nIt is\n‹/sent> done.\n</sent>\n" in told_there
        assert "topic" not in told_there, "that is another session"


async def test_what_was_refused_elsewhere_is_not_told_there(tmp_path: Path) -> None:
    async def refuse(delivery: Delivery) -> SendResult:
        return Refused("blocked") if delivery.body == "Lunch" else await refused_once(delivery)

    async def refused_once(delivery: Delivery) -> SendResult:
        hark.channel.on_send = None
        result = await hark.channel.send(delivery)
        hark.channel.on_send = refuse
        return result

    async with service(tmp_path) as hark:
        await hark.accept(written(hark, "hello", "2", "Bob"))
        await hark.until_texts(1, "2")
        hark.channel.on_send = refuse
        assert await calls(hark, {"action": "send", "to": "Bob", "text": "Lunch"}) == [("Not done: blocked.", True)]
        await hark.say("hm?", "2")
        assert "you wrote" not in hark.model.requests[-1].messages[-1].text


@pytest.mark.parametrize(
    ("tools", "to", "why"),
    [
        ({}, "-7", "'-7' is not let in"),
        ({}, "3", "'3' is not let in"),
        ({}, "stranger", "There is no conversation 'stranger' that is known. Near it: strange corner."),
        ({}, "alex", "Near it: alex (id 5), Alex (id 4), strange corner."),
        ({"message": {"reach": "conversation"}}, "2", "Only this conversation can be written to"),
        ({}, "2", ""),
        ({}, "4", ""),
        ({"message": {"reach": "conversation"}}, "1", ""),
    ],
)
async def test_only_where_the_bot_may_speak(tmp_path: Path, tools: dict[str, Any], to: str, why: str) -> None:
    dm = {"policy": "allowlist", "allow_from": ["2", "4", "5"]}
    config = {"channels": {"telegram": {**GROUPS["channels"]["telegram"], "dm": dm}}, "tools": tools}
    async with service(tmp_path, config) as hark:
        channel = hark.channel
        channel.places, channel.near = {"-7": place("-7"), "3": place("3")}, ("strange corner",)
        people = (("2", "Bob"), ("4", "Alex"), ("5", "alex"), ("3", "stranger"))
        await hark.accept(*(written(hark, "hello", chat, name) for chat, name in people))
        for chat in "245":
            await hark.until_texts(1, chat)
        ((text, is_error),) = await calls(hark, {"action": "send", "to": to, "text": "words"})
        assert is_error == bool(why)
        assert why in text
        sent = [one.place.chat for one in hark.channel.sent if one.body == "words"]
        assert sent == ([] if why else [to])


async def test_who_is_let_in_no_more_is_not_even_named(tmp_path: Path) -> None:
    async with service(tmp_path) as hark:
        await hark.accept(written(hark, "hello", "3", "Eve"))
        await hark.until_texts(1, "3")
        await hark.delivered()
    async with service(tmp_path, {"channels": {"telegram": {"dm": {"policy": "allowlist"}}}}) as hark:
        told = await calls(
            hark, {"action": "send", "to": "Ev", "text": "x"}, {"action": "send", "to": "3", "text": "x"}
        )
        assert [text for text, _ in told] == [
            "There is no conversation 'Ev' that is known. Near it: none.",
            "There is no conversation '3' that is known. Near it: none.",
        ]


async def test_direct_messages_of_others_are_not_read_for_anybody_but_an_owner(tmp_path: Path) -> None:
    asked = {"action": "read", "to": "3"}
    async with service(tmp_path, {"tools": {"by_sender": {"telegram:2": {"allow": ["message"]}}}}) as hark:
        await hark.accept(written(hark, "a secret", "3", "Eve"))
        await hark.until_texts(1, "3")
        assert await calls(hark, asked, sender="2") == [(ELSEWHERE, True)]
        assert await calls(hark, asked, sender="1") == [("7 · 10:00 · Bob: hello", False)]


async def test_a_click_on_a_button_of_the_model_is_what_that_person_says_once(tmp_path: Path) -> None:
    async with service(tmp_path) as hark:
        await calls(hark, {"action": "send", "text": "What will you have?", "buttons": ["Tea", "Coffee"]})
        hark.model.default = "As you like."
        await hark.accept(press(hark, "Coffee", "1", "coffee"), press(hark, "Tea", "1", "tea"))
        await hark.accept(press(hark, "Coffee", "1", "coffee"))
        await hark.until(lambda: not hark.stored.unfinished() and "As you like." in hark.channel.texts(), "the answer")
        (edit,) = [one for one in hark.channel.sent if one.action is Action.EDIT]
        chosen = hark.model.requests[-1].messages[-1].text.splitlines()[-1]
        assert hark.channel.texts().count("As you like.") == 1
        assert (edit.target, edit.body) == ("1", f"What will you have?\n\n✓ **{chosen}**")
        assert chosen in ("Tea", "Coffee")
        keys = {(key, kind, state) for key, kind, state in hark.stored.messages("event_key", "kind", "state")}
        other = {"Tea": "coffee", "Coffee": "tea"}[chosen]
        assert {(f"b:{chosen.lower()}", "message", "done"), (f"b:{other}", "button", "done")} <= keys


async def test_a_click_of_a_stranger_reaches_no_model(tmp_path: Path) -> None:
    async with service(tmp_path, {"channels": {"telegram": {"dm": {"policy": "allowlist"}}}}) as hark:
        await calls(hark, {"action": "send", "text": "Which?", "buttons": ["Tea"]})
        click = press(hark, "Tea", "1", "tea")
        await hark.accept(replace(click, origin=replace(click.origin, sender="3")))
        known = len(hark.model.requests)
        await hark.say("and?")
        assert len(hark.model.requests) == known + 1
        assert not [one for one in hark.channel.sent if one.action is Action.EDIT]


async def test_a_long_text_has_its_buttons_on_a_message_of_their_own(tmp_path: Path) -> None:
    async with service(tmp_path) as hark:
        hark.channel.rendered = lambda text: (text[:20], text[20:]) if len(text) > 40 else (text,)
        (told,) = await calls(hark, {"action": "send", "text": "Which of them? " * 4, "buttons": ["Tea"]})
        assert told == ("Sent, id 1, 2, 3.", False)
        first, second, choose, _ = hark.channel.sent
        assert ([one.buttons for one in (first, second)], choose.buttons) == ([(), ()], (Button("💬 Tea", "Tea"),))
        await hark.accept(press(hark, "Tea", "3", "tea"))
        await hark.until(lambda: any(one.action is Action.EDIT for one in hark.channel.sent), "the choice")
        edit = next(one for one in hark.channel.sent if one.action is Action.EDIT)
        assert edit.body == f"{choose.body}\n\n✓ **Tea**"


async def test_what_the_service_itself_said_is_not_edited(tmp_path: Path) -> None:
    """Nor deleted: a request for an approval would say something else than what is approved."""
    async with service(tmp_path) as hark:
        await hark.write("/help")
        await hark.until_texts(1)
        await hark.delivered()
        told = await calls(hark, {"action": "edit", "message_id": "1", "text": "x"})
        assert "is no message of yours" in told[0][0]
        told = await calls(hark, {"action": "edit", "message_id": "2", "text": "not yet done"})
        assert told == [("Done.", False)], "its own answer"


async def test_over_http_and_for_other_channels_it_has_to_be_named(tmp_path: Path) -> None:
    """The session that all share has the tool; what has no conversation to write into names one."""
    tools = {"message": {"reach": "all"}, "untrusted": {"person": "allow"}}
    every = {"sessions": {"dm_scope": "main"}, "tools": tools}
    async with service(tmp_path, every) as hark:
        await hark.accept(written(hark, "hello", "2", "Bob"))
        await hark.until_texts(1, "2")
        asks: tuple[dict[str, Any], ...] = (
            {"action": "send", "text": "x"},
            {"action": "send", "text": "y", "to": "Bob"},
            {"action": "send", "text": "z", "to": "telegram:Bob"},
        )
        for arguments in asks:
            hark.model.add(Call("message", arguments))
        hark.model.add("done")
        here = Place(channel="http", account="", chat="x", kind=ChatKind.API)
        view = await hark.service.parts.api.submit("go", "agent:main:main", here, OWNER)
        assert view is not None
        await hark.until(lambda: hark.stored.turns(turn_id=view.turn_id, state="done"), "its end")
        told = [result.text for result in _results(hark)]
        assert told[0] == "Nothing can be sent into this conversation; name another one with `to`."
        assert told[1] == "Name the channel as well, as in `<channel>:#general`."
        assert told[2].startswith("Sent, id ")
        assert hark.channel.texts("2")[-1] == "z"
        done = await hark.service.parts.api.turn(view.turn_id)
        assert done is not None
        assert done.text == "done"
