"""Code that needs more than three messages: its first lines are shown, and the whole of it is one file."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bot.replies.long_code import first_lines, name_of
from channels.outgoing import Action, Code, Delivery, NotSent, OutgoingFile, ReplyBlock, SendResult, Sent
from channels.stream.chunker import Chunker
from tests.bot.replies.test_showing import Previewing, shown, streaming
from tests.bot.test_shown_twice import ended, tried_again
from tests.service import Json, ScriptedTool, running
from tests.standins.script import Call, Continuer, Hang, Say

LINES = [f"value_{n} = {n}  # of many" for n in range(60)]
CODE = "\n".join(LINES)
INDENTED = "\n   ".join(LINES)
BEFORE, BEHIND = "Here is the whole program.", "Run it with care."
ANSWER = f"{BEFORE}\n\n```python\n{CODE}\n```\n\n{BEHIND}"
CHANNEL: Json = {"block_chars": 400, "file_bytes": 100_000}


def chunked(text: str, size: int, file_bytes: int = 10_000) -> list[ReplyBlock]:
    """The blocks of a text on a platform whose messages have 400 characters."""
    chunker = Chunker(100, 300, 400, joined=True, messages=lambda one: -(-len(one) // 400), file_bytes=file_bytes)
    blocks = [block for at in range(0, len(text), size) for block in chunker.feed(text[at : at + size])]
    return blocks + chunker.end()


@pytest.mark.parametrize("size", [1, 7, 1000, 10_000])
@pytest.mark.parametrize(
    ("text", "content", "around"),
    [
        (ANSWER, CODE, [BEFORE, BEHIND]),
        (f"~~~\n{CODE}\n~~~", CODE, []),
        (
            f"1. First:\n   ```py\n   {CODE.replace(chr(10), chr(10) + '   ')}\n   ```\n2. Then.",
            CODE,
            ["First", "Then"],
        ),
        (f"{BEFORE}\n```\n{CODE}", CODE, [BEFORE]),  # it is never closed
    ],
)
def test_it_is_one_block_however_it_streams(text: str, content: str, around: Sequence[str], size: int) -> None:
    blocks = chunked(text, size)
    assert [block.code.content.rstrip("\n") for block in blocks if block.code] == [content]
    others = [block for block in blocks if not block.code]
    assert len(others) == len(around)
    assert all(words in block.text for words, block in zip(around, others, strict=True))
    assert text.startswith("".join(block.said for block in blocks))
    assert blocks == chunked(text, 13)


@pytest.mark.parametrize(("lines", "file_bytes"), [(40, 10_000), (60, 1000), (60, 0)])
def test_what_is_shorter_or_too_large_for_a_file_is_cut_as_ever(lines: int, file_bytes: int) -> None:
    text = f"{BEFORE}\n\n```python\n{CODE[: lines * 25]}\n```\n\n{BEHIND}"
    assert chunked(text, 50, file_bytes) == chunked(text, 50, 0)
    assert not any(block.code for block in chunked(text, 50, file_bytes))


def test_nothing_of_it_comes_before_it_is_closed() -> None:
    chunker = Chunker(100, 300, 400, joined=True, messages=lambda one: -(-len(one) // 400), file_bytes=10_000)
    blocks = chunker.feed(ANSWER.partition("\n```\n")[0])
    assert not any("value" in block.text for block in blocks)


def test_the_rest_of_code_that_was_cut_is_a_file_too() -> None:
    after = ANSWER[: ANSWER.index(LINES[5])]
    chunker = Chunker(300, 400, 400, after, messages=lambda one: -(-len(one) // 400), file_bytes=10_000)
    rest = ANSWER.removeprefix(after).replace("\n```", f"\n{CODE}\n```")
    code, behind = [*chunker.feed(rest), *chunker.end()]
    assert code.code is not None
    assert code.code.content == "\n".join([*LINES[5:], *LINES, ""])
    assert code.said + behind.said == rest
    assert behind.text == BEHIND


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ("python", "code-2.py"),
        ("", "code-2.txt"),
        ("go", "code-2.go"),
        ("C++", "code-2.cpp"),
        ("brainfuck", "code-2.txt"),
        ('py title="src/../app.py"', "app.py"),
        ("main.rs", "main.rs"),
        ("js {1,3}", "code-2.js"),
        ("../../etc/passwd", "code-2.txt"),
    ],
)
def test_its_name(info: str, name: str) -> None:
    assert name_of(Code("```", info, CODE), 2) == name


def test_the_first_lines_are_one_message() -> None:
    shown = first_lines(Code("```", "python", CODE), "code-1.py", lambda text: 1)
    assert shown == "```python\n" + "\n".join(LINES[:15]) + "\n```\n(The whole code, 60 lines, is in `code-1.py`.)"
    narrow = first_lines(Code("````", "", "```" * 3000), "code-1.txt", lambda text: -(-len(text) // 200))
    assert len(narrow) <= 200
    assert narrow.startswith("````\n```")


def seen(sent: Sequence[Delivery]) -> list[str]:
    """What came, with the names of files."""
    return [one.file.name if one.file else one.body for one in sent]


def content(file: OutgoingFile | None) -> str:
    """What is in a file that was sent."""
    assert file is not None
    with file.open() as opened:
        return opened.read().decode()


def assert_whole(sent: Sequence[Delivery]) -> None:
    """Check that all of the answer came, in its order."""
    before, first, name, behind = seen(sent)
    assert (before, name, behind) == (BEFORE, "code-1.py", BEHIND)
    assert first.endswith("(The whole code, 60 lines, is in `code-1.py`.)")
    assert LINES[5] in first
    assert content(sent[2].file).rstrip("\n") == CODE
    assert sent[2].file is not None
    assert sent[2].file.mime == "text/plain"


class Narrow(Previewing):
    """A platform whose messages have 400 characters, which sends files."""

    def render(self, text: str) -> Sequence[str]:
        return [text[at : at + 400] for at in range(0, len(text), 400)]


@pytest.mark.parametrize("mode", ["block", "preview", "off"])
async def test_it_is_sent_in_the_order_of_the_answer(tmp_path: Path, mode: str) -> None:
    async with running(tmp_path, config=streaming(mode=mode), channel=CHANNEL, made=Narrow) as hark:
        await hark.say("?", answers=[Say(ANSWER, chunks=11)])
        await hark.delivered()
        messages = [one for one in hark.channel.sent if one.action is not Action.EDIT]
        sent = [replace(one, body=body) for one, body in zip(messages, shown(hark.channel), strict=True)]
        assert_whole(sent)
        assert "".join(said for (said,) in hark.stored.deliveries("said")) == ANSWER
        assert sent[1].source == sent[2].source
        await hark.say("sure?", answers=["Yes."])
        assert CODE in [message.text for message in hark.model.requests[-1].messages][1]


async def test_where_no_files_are_sent_it_comes_in_messages(tmp_path: Path) -> None:
    given = CHANNEL | {"actions": frozenset({Action.SEND})}
    async with running(tmp_path, channel=given, made=Narrow) as hark:
        await hark.say("?", answers=[ANSWER])
        assert len(hark.channel.sent) > 4
        assert all(line in "".join(hark.channel.texts()) for line in LINES)


async def test_a_file_that_was_planned_before_a_crash_is_sent_once_and_the_answer_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.service.OUTBOX_GRACE", 0.0)
    beginning, end = ANSWER[: -len(BEHIND)], "And so on."

    async def busy(delivery: Delivery) -> SendResult:
        return NotSent(30.0, "429") if delivery.file else Sent(str(len(hark.channel.sent) + 1))

    sent: list[Delivery] = []
    config = streaming(min_chars=20, idle_ms=1)
    async with running(tmp_path, config=config, channel=CHANNEL, made=Narrow) as hark:
        hark.channel.on_send = busy
        more = "\n\n".join(f"{n} {BEHIND * 10}" for n in range(4))
        await hark.write("?", answers=[(Say(beginning + more, chunks=[beginning, more]), Hang())])
        await hark.until(lambda: any(file for (file,) in hark.stored.deliveries("file")))
    sent += hark.channel.sent
    async with running(tmp_path, config=config, channel=CHANNEL, made=Narrow) as hark:
        hark.model.add(end)
        hark.time.advance(60)
        await ended(hark)
        sent += hark.channel.sent
        told = "".join(one.text for one in hark.model.requests[0].messages if one.role == "assistant")
        assert CODE in told
    names = seen(sent)
    assert names[0] == BEFORE
    assert names.count("code-1.py") == 1
    assert names.index("code-1.py") == 2
    assert names[-1].endswith(end)
    assert content(sent[2].file).rstrip("\n") == CODE
    assert sum(LINES[5] in one for one in names) == 1


async def test_code_whose_stream_breaks_comes_whole_and_once(tmp_path: Path) -> None:
    text = ANSWER.replace(CODE, f"{CODE}\n{CODE}")
    pieces = len(Say(text).pieces())
    async with running(tmp_path, config=streaming(min_chars=20), channel=CHANNEL, made=Narrow) as hark:
        hark.model.default = Continuer(text, "?", cuts=[pieces * 2 // 3])
        await hark.write("?")
        await tried_again(hark)
        await ended(hark)
        parts = [content(one.file).rstrip("\n") for one in hark.channel.sent if one.file]
        assert parts == [f"{CODE}\n{CODE}"]
        assert seen(hark.channel.sent)[-1] == BEHIND


async def test_a_file_that_was_sent_beside_code_is_not_sent_again_after_a_restart(tmp_path: Path) -> None:
    async def hang(label: str) -> str:
        await asyncio.Event().wait()
        return label

    given: Json = {"channel": CHANNEL, "made": Narrow, "tools": lambda watch: [ScriptedTool("act", hang, watch)]}
    async with running(tmp_path, **given) as hark:
        (tmp_path / "workspace" / "plot.png").write_bytes(b"x")
        await hark.write("?", answers=[(Say(f"{ANSWER}\nMEDIA: plot.png"), Call("act", {"label": "a"}))])
        await hark.until(lambda: hark.stored.calls(state="running"))
        await hark.delivered()
        assert [one for one in seen(hark.channel.sent) if len(one) < 10] == ["code-1.py", "plot.png"]
    async with running(tmp_path, **given) as hark:
        hark.model.add("MEDIA: plot.png\nThat was all.")
        await ended(hark)
        assert seen(hark.channel.sent) == ["That was all."]
