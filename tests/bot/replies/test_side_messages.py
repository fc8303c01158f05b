"""What a session shows besides answers: calls of tools by /verbose, the model's reasoning by /reasoning."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot import wording
from bot.replies.showing import Typing
from channels.message import ChatKind, InboundMessage, Origin, Place
from channels.outgoing import Action
from tests.asking import AskingTool, SendingTool, approval
from tests.service import Hark, Json, RecordingChannel, ScriptedTool, running
from tests.standins.script import Break, Call, Fail, Gate, Hang, Say, Think
from tests.watch import LoopTime, Watch

GROUP = "-5"
CONFIG = {"channels": {"telegram": {"groups": {"allow": {GROUP: {}}}}}}
LONG = "\n\n".join(f"Step {n}. " + "It has to be thought about. " * 20 for n in range(6))


async def does(label: str) -> str:
    return f"did {label}"


def tools(watch: Watch) -> list[ScriptedTool]:
    return [ScriptedTool("act", does, watch)]


def in_group(hark: Hark, text: str, sender: str) -> InboundMessage:
    message = hark.message(text, sender, mentioned=True)
    place = Place(channel="telegram", account="bot", chat=GROUP, kind=ChatKind.GROUP)
    return replace(message, origin=Origin(place=place, sender=sender, message_id=message.origin.message_id))


async def command(hark: Hark, text: str, sender: str = "1", chat: str = "") -> str:
    """What a command is answered, in a direct conversation or in a group."""
    chat = chat or sender
    count = len(hark.channel.texts(chat))
    await hark.accept(hark.message(text, sender) if chat == sender else in_group(hark, text, sender))
    return (await hark.until_texts(count + 1, chat))[count]


def words(quotes: Sequence[str]) -> list[str]:
    """What quotes say together."""
    return "\n".join(quotes).replace("> ", "").replace(">", "").split()


async def test_what_is_set_is_said_shown_and_kept(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        for text, said in (
            ("/verbose", "Verbose is off."),
            ("/verbose on", "Verbose is on."),
            ("/verbose", "Verbose is on."),
            ("/reasoning", "Reasoning is off."),
            ("/reasoning stream", "Reasoning is stream."),
            ("/reasoning on", "Reasoning is on."),
        ):
            assert await command(hark, text) == said
        for text in ("/verbose loud", "/reasoning 7"):
            assert "I did not understand" in await command(hark, text)
        assert "- **Verbose** on\n- **Reasoning** on\n" in await command(hark, "/status")
        assert "Verbose" not in await command(hark, "/status", "2")
        await command(hark, "/new")
        assert await command(hark, "/verbose") == "Verbose is on."
    async with running(tmp_path) as hark:
        hark.model.add(Think("So it is."), "yes")
        assert (await hark.say("?")).texts == ["> So it is.", "yes", "10 tokens in, 5 out"]
        assert await command(hark, "/reasoning off") == "Reasoning is off."
        assert (await hark.say("?", answers=[(Think("So it is."), "yes")])).texts == ["yes", "10 tokens in, 5 out"]


async def test_calls_of_a_batch_are_one_message_without_a_sound_before_they_run(tmp_path: Path) -> None:
    shown: list[str] = []

    async def look(label: str) -> str:
        shown.extend(body for (body,) in hark.stored.deliveries("body"))
        return label

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", look, watch)]) as hark:
        hark.model.add("I look.", Call("act", {"label": "one"}))
        hark.model.add("done")
        assert (await hark.say("?")).texts == ["I look.", "done"]
        await command(hark, "/verbose on")
        shown.clear()
        hark.model.add("I look.", Call("act", {"label": "one"}), Call("act", {"label": "two"}), Call("nothing"))
        hark.model.add("done")
        reply = await hark.say("?")
        lines = "🔧 `act: one`\n🔧 `act: two`\n🔧 `nothing`"
        assert reply.texts == ["I look.", lines, "done", "20 tokens in, 10 out"]
        assert shown[-2:] == ["I look.", lines]
        assert [sent.silent for sent in hark.channel.sent[-4:]] == [False, True, True, True]
        assert hark.stored.deliveries("said", "step", body=lines) == [("", None)]
        turn = await hark.service.parts.store.reads.turn(reply.end.run.turn_id)
        assert turn is not None
        assert turn.text == "I look.\n\ndone"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ('{"command": "ls -la *", "timeout": 3}', "🔧 `exec: ls -la *`"),
        ('{"content": "words", "path": "a.md"}', "🔧 `exec: a.md`"),
        ('{"command": "echo `id`\\nrm x"}', "🔧 `exec: echo 'id'`"),
        ('{"command": "\\ud800\\u202e a"}', "🔧 `exec: a`"),
        (f'{{"command": "{"x" * 200}"}}', f"🔧 `exec: {'x' * 65}…`"),
        ("{broken", "🔧 `exec`"),
        ("", "🔧 `exec`"),
        ('{"command": "login --password hunter2 now"}', "🔧 `exec: login --password ... now`"),
        ('{"command": "API_KEY=\'hunter2\' make"}', "🔧 `exec: API_KEY='...' make`"),
        (
            '{"command": "curl -H \\"Authorization: Bearer hunter2\\""}',
            '🔧 `exec: curl -H "Authorization: Bearer ..."`',
        ),
        ('{"command": "curl https://me:hunter2@host/x"}', "🔧 `exec: curl https://...@host/x`"),
        ('{"command": "use sk-live-0123456789abcdefghijkl"}', "🔧 `exec: use ...`"),
    ],
)
def test_a_call_is_one_line_without_markup_and_secrets(arguments: str, line: str) -> None:
    assert wording.call("exec", arguments) == line


async def test_whoever_is_no_owner_sees_names_only(tmp_path: Path) -> None:
    async with running(tmp_path, config=CONFIG, tools=tools) as hark:
        for sender, chat in (("2", "2"), ("1", GROUP)):
            assert await command(hark, "/verbose on", sender, chat) == "Verbose is on."
            hark.model.add(Call("act", {"label": "one"}))
            hark.model.add("done")
            count = len(hark.channel.texts(chat))
            await hark.accept(hark.message("?", sender) if chat == sender else in_group(hark, "?", sender))
            assert (await hark.until_texts(count + 2, chat))[count:] == ["🔧 `act`", "done"]


async def test_in_groups_owners_decide_about_reasoning(tmp_path: Path) -> None:
    async with running(tmp_path, config=CONFIG) as hark:
        hark.model.add("What is that?")
        assert await command(hark, "/reasoning on", "2", GROUP) == "What is that?"
        assert await command(hark, "/reasoning", "1", GROUP) == "Reasoning is off."
        assert await command(hark, "/reasoning on", "1", GROUP) == "Reasoning is on."
        assert await command(hark, "/reasoning on", "2") == "Reasoning is on."


@pytest.mark.parametrize(
    ("answers", "on", "stream"),
    [
        ([[Think("a\n\nb"), "yes"]], ["> a\n> \n> b", "yes"], None),
        ([[Think(" \n"), "yes"]], ["yes"], None),
        ([[Think("a"), "NO_REPLY"]], [], None),
        ([[Think("a"), Call("stay_silent")]], [], None),
        ([[Think("a"), Say("yes", chunks=3), Think("b")]], ["> ab", "yes"], None),
        (
            [[Think("a"), Call("act", {"label": "x"})], [Think("b"), "yes"]],
            ["> a\n> \n> b", "yes"],
            ["> a", "> b", "yes"],
        ),
        ([[Think("a"), Call("act", {"label": "x"})], [Think("b"), "NO_REPLY"]], [], ["> a"]),
        ([[Think("a"), "one", Call("act", {"label": "x"})], ["two"]], ["> a", "one", "two"], None),
    ],
)
async def test_reasoning_stands_before_the_words_of_its_answer(
    tmp_path: Path, answers: Sequence[Sequence[Any]], on: Sequence[str], stream: Sequence[str] | None
) -> None:
    async with running(tmp_path, tools=tools) as hark:
        for mode, texts in (("on", on), ("stream", on if stream is None else stream)):
            await command(hark, f"/reasoning {mode}")
            for answer in answers:
                hark.model.add(*answer)
            reply = await hark.say(mode)
            assert reply.texts == texts, mode
            asides = [sent for sent in hark.channel.sent if sent.body.startswith(">")]
            assert all(sent.silent and not sent.said and sent.step is None for sent in asides)


async def test_long_reasoning_is_one_message_or_comes_while_it_is_written(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path) as hark:
        await command(hark, "/reasoning on")
        quote, answer = (await hark.say("?", answers=[(Think(LONG), "yes")])).texts
        assert (quote[:9], quote[-1], answer) == ("> Step 0.", "…", "yes")
        assert 1400 < len(quote) < 1500
        await command(hark, "/reasoning stream")
        await hark.write("?", answers=[(Think(LONG, chunks=7, gate=gate), "yes")])
        gate.let(6)
        early = (await hark.until_texts(7))[4:]
        assert hark.model.active == 1
        gate.open()
        await hark.until(lambda: len(hark.stored.turns(state="done")) == 2)
        await hark.delivered()
        *quotes, answer = hark.channel.texts()[4:]
        assert quotes[: len(early)] == early
        assert answer == "yes"
        assert words(quotes) == LONG.split()


async def test_reasoning_stands_before_a_preview(tmp_path: Path) -> None:
    gate = Gate()
    text = "The answer begins here and is long enough. The end."
    config = {"channels": {"telegram": {"streaming": {"mode": "preview"}}}}
    async with running(tmp_path, config=config) as hark:
        for mode in ("on", "stream"):
            await command(hark, f"/reasoning {mode}")
            hark.model.add(Think("So it is."), Say(text, chunks=[text[:42], text[42:]], gate=gate))
            sent = len(hark.channel.sent)
            await hark.write("?")
            gate.let(1)
            assert (await hark.until_texts(sent + 2))[sent:] == ["> So it is.", text[:42]]
            gate.let(1)
            await hark.until(lambda sent=sent: len(hark.channel.sent) == sent + 3)  # type: ignore[misc]
            assert (hark.channel.sent[-1].action, hark.channel.sent[-1].body) == (Action.EDIT, text)
            await hark.until(lambda: not hark.stored.turns(state="running"))


@pytest.mark.parametrize("restarts", [True, False])
async def test_what_was_shown_is_not_shown_again(tmp_path: Path, restarts: bool) -> None:
    """A service that ends while the model thinks, or a stream that breaks: the same answer is begun anew."""
    thoughts = Think(LONG, chunks=[LONG[:1500], LONG[1500:]])
    async with running(tmp_path) as hark:
        await command(hark, "/reasoning stream")
        hark.model.add(thoughts, Hang() if restarts else Break())
        if not restarts:
            hark.model.add(thoughts, "yes")
        await hark.write("?")
        await hark.until_texts(2)
        if not restarts:
            await hark.until(lambda: hark.model.active == 0)
            hark.time.advance(30)
            await hark.until(lambda: hark.stored.turns(state="done"))
            await hark.delivered()
    shown = hark.channel.texts()[1:]
    if restarts:
        async with running(tmp_path) as hark:
            hark.model.add(thoughts, "yes")
            await hark.until(lambda: hark.stored.turns(state="done"))
            await hark.delivered()
        shown += hark.channel.texts()
    *quotes, answer = shown
    assert words(quotes) == LONG.split()
    assert answer == "yes"


async def test_reasoning_between_two_blocks_does_not_part_them(tmp_path: Path) -> None:
    first = "These words fill more than one block of sixty-four characters. And they go on, and on, and on, and on"
    rest = " behind what the model thinks between them."
    config = {"channels": {"telegram": {"streaming": {"min_chars": 1, "max_chars": 64}}}}
    async with running(tmp_path, config=config) as hark:
        await command(hark, "/reasoning stream")
        reply = await hark.say("?", answers=[(Say(first), Think(LONG), Say(rest))])
        asides = [text.startswith(">") for text in reply.texts]
        assert asides != sorted(asides)
        assert asides != sorted(asides, reverse=True)
        turn = await hark.service.parts.store.reads.turn(reply.end.run.turn_id)
        assert turn is not None
        assert turn.text == first + rest


async def test_what_a_tool_has_said_needs_no_reasoning(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [SendingTool(lambda: hark.service, whole=True)]) as hark:
        await command(hark, "/reasoning on")
        hark.model.add(Call("send", {"label": "The report is ready: 4 pages, 2 tables."}))
        hark.model.add(Think("It is said."), "The report is ready: 4 pages, 2 tables.")
        assert (await hark.say("?")).texts == ["The report is ready: 4 pages, 2 tables."]


# The sign of work: while a run works, and never once its last block is on its way.

PLACE = Place(channel="telegram", account="bot", chat="1", kind=ChatKind.DIRECT)
TYPING: Json = {"typing_seconds": 5}


async def test_it_is_renewed_while_the_run_works_and_ends_with_its_last_block(tmp_path: Path) -> None:
    time = LoopTime()
    async with running(tmp_path, channel=TYPING) as hark:
        gate = Gate()
        await hark.write("hello", answers=[Say("There.", chunks=1, gate=gate)])
        await gate.reached()
        for shown in (1, 2, 3):
            await hark.until(lambda shown=shown: len(hark.channel.log) == shown)
            await time.advance(5.1)
        gate.open()
        await hark.until_texts(1)
        await time.advance(20)
        assert hark.channel.log[-1] == ("send", "There.")
        assert hark.channel.log.count(("send", "There.")) == 1


async def test_it_ends_before_a_sentence_about_a_failure_and_at_a_stop(tmp_path: Path) -> None:
    time = LoopTime()
    async with running(tmp_path, channel=TYPING) as hark:
        await hark.say("hello", answers=[Fail(404)])
        await time.advance(20)
        assert [kind for kind, _ in hark.channel.log] == ["working", "send"]
        await hark.hanging("hello")
        await hark.until(lambda: len(hark.channel.log) == 3)
        await hark.write("/stop")
        await hark.until_texts(2)
        await time.advance(20)
        assert [kind for kind, _ in hark.channel.log] == ["working", "send", "working", "send"]


async def test_a_channel_whose_sign_hangs_or_fails_holds_nothing_up(tmp_path: Path) -> None:
    async with running(tmp_path, channel=TYPING) as hark:
        release = asyncio.Event()

        async def hang(place: Place) -> None:
            await release.wait()
            raise OSError("typing is broken")

        hark.channel.on_working = hang
        assert len((await hark.say("hello")).texts) == 1
        assert len((await hark.say("hello")).texts) == 1
        release.set()
        assert len((await hark.say("hello")).texts) == 1


async def test_no_call_begins_after_the_stop_and_one_under_way_is_not_cancelled() -> None:
    time = LoopTime()
    channel = RecordingChannel(Watch(), typing_seconds=5)
    under_way, finished = asyncio.Event(), asyncio.Event()

    async def slow(place: Place) -> None:
        await under_way.wait()
        finished.set()

    channel.on_working = slow
    with Typing(channel, PLACE, lambda error: None) as typing:
        await channel.watch.until(lambda: channel.log)
        typing.stop()
    under_way.set()
    await asyncio.wait_for(finished.wait(), 5)
    await time.advance(20)
    assert channel.log == [("working", "1")]


async def test_a_channel_without_a_sign_is_left_alone() -> None:
    channel = RecordingChannel(Watch())
    with Typing(channel, PLACE, lambda error: None), Typing(None, PLACE, lambda error: None):
        await asyncio.sleep(0)
    assert channel.log == []


# The reaction to a message says what the bot is doing with it, where that is configured.

ACK = {"channels": {"telegram": {"ack": {"emoji": "👀", "states": {"done": "👌"}}}}}


def changes(hark: Hark) -> list[str]:
    return [what for kind, what in hark.channel.log if kind == "react"]


def planned(hark: Hark) -> list[str]:
    return [sent.body for sent in hark.channel.sent if sent.action is Action.REACT]


async def test_it_follows_the_run(tmp_path: Path) -> None:
    async def act(label: str) -> str:
        await hark.until(lambda: changes(hark) == ["👀>🤔 on 1"], "the sign of thinking")
        await hark.time.until_pause(1.5)
        hark.time.advance(1.5)
        await hark.until(lambda: changes(hark)[-1:] == ["🤔>⚡ on 1"], "the sign of a tool")
        return label

    async with running(tmp_path, config=ACK, tools=lambda watch: [ScriptedTool("act", act, watch)]) as hark:
        await hark.write("hello", answers=[Call("act", {"label": "it"}), "There."])
        await hark.until(lambda: planned(hark) == ["👀", "", "👌"], "the end")
    assert changes(hark) == ["👀>🤔 on 1", "🤔>⚡ on 1"]


async def test_it_says_that_a_person_is_awaited(tmp_path: Path) -> None:
    asking = AskingTool()
    async with running(tmp_path, config=ACK, tools=lambda watch: [asking]) as hark:
        await hark.write("hello", answers=[Call("ask", {"label": "shut it"})])
        await approval(hark)
        await hark.until(lambda: changes(hark)[-1:] != [] and changes(hark)[-1].endswith(">🙏 on 1"), "the sign")
        assert planned(hark) == ["👀"]


async def test_a_failure_stays(tmp_path: Path) -> None:
    async with running(tmp_path, config=ACK) as hark:
        await hark.write("hello", answers=[Fail(404)])
        await hark.until(lambda: planned(hark) == ["👀", "", "😢"], "the end")


@pytest.mark.parametrize(("ack", "last"), [({"emoji": "👀"}, ""), ({"scope": "all"}, "There.")])
async def test_it_stays_as_it_is_where_nothing_is_configured(tmp_path: Path, ack: dict[str, object], last: str) -> None:
    async with running(tmp_path, config={"channels": {"telegram": {"ack": ack}}}) as hark:
        await hark.write("hello", answers=["There."])
        await hark.until(lambda: hark.channel.sent and hark.channel.sent[-1].body == last, "the end")
        await hark.delivered()
    assert changes(hark) == []
