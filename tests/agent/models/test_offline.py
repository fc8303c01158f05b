"""The built-in model: what it understands, and that it can be relied on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.context import CUT_NOTE
from agent.images import FILES
from agent.message import Image, Mark, Message, Text, ToolResult, ToolSpec, estimate, estimate_text
from agent.models.base import Answer, ModelRequest, StreamPart, TextDelta
from agent.models.offline import INTRODUCTION, SLOW_SECONDS, OfflineClient, markdown
from agent.models.offline_request import HELP, Call, spoken, understand
from heartbeat.checklist import DEFAULT, compose, job_prompt
from tests.agent.models.makers import request, results, spec

STAMP = "[Sat 2026-11-21 07:30 UTC]\n"
TOOLS = tuple(ToolSpec(name, "", "{}") for name in ("read", "write", "exec"))
EARLIER = (Message("user", ()), Message("assistant", (), "offline/offline"))


def user(text: str) -> Message:
    return Message("user", (Text(STAMP + text),))


class Fixture:
    """A client whose sleeps are counted and whose ids are numbers."""

    def __init__(self, **options: int) -> None:
        self.slept: list[float] = []
        self._ids = iter(range(1_000_000))
        self.client = OfflineClient(spec("offline", **options), self._sleep, lambda: f"id{next(self._ids)}")

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def stream(self, asked: ModelRequest) -> list[StreamPart]:
        return [part async for part in self.client.stream(asked)]

    async def answer(self, *messages: Message, first: bool = False, **options: object) -> Answer:
        """The answer; in the middle of a conversation, if it is not the first one."""
        earlier = () if first else EARLIER
        parts = await self.stream(request(*earlier, *messages, **{"tools": TOOLS, **options}))
        answer = parts[-1]
        assert isinstance(answer, Answer)
        assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == answer.message.text
        return answer

    async def says(self, text: str) -> str:
        return (await self.answer(user(text))).message.text


async def test_the_first_answer_says_what_it_is_and_how_to_get_a_real_model() -> None:
    first = (await Fixture().answer(user("hello"), first=True)).message.text
    assert first == f"{INTRODUCTION}\n\nYou said: hello"
    assert all(word in first for word in ("offline", "not a language model", "ANTHROPIC_API_KEY", "Ollama"))
    assert await Fixture().says("hello") == "You said: hello"


async def test_deltas_are_words_and_usage_is_estimated() -> None:
    parts = await Fixture().stream(request(*EARLIER, user("say one two  three"), tools=()))
    assert [part.text for part in parts if isinstance(part, TextDelta)] == ["one ", "two  ", "three"]
    answer = parts[-1]
    assert isinstance(answer, Answer)
    assert (answer.stop_reason, answer.usage.output) == ("end", estimate(answer.message))
    assert answer.usage.input == estimate_text("Be brief.") + sum(map(estimate, (*EARLIER, user("say one two  three"))))


async def test_words_without_the_time_stamp() -> None:
    assert spoken(STAMP + "hi") == "hi"
    assert spoken(STAMP + STAMP + "hi\nyou") == "hi\nyou"
    assert spoken("[Sat 2026-11-21 07:30 +03] Ada B.:\nsay: hi") == "say: hi"
    assert spoken("[not a stamp] hi") == "[not a stamp] hi"
    assert await Fixture().says("") == "You said: (nothing)"
    picture = Message("user", (Image("image/png", "x"),))
    assert "images: 1" in (await Fixture().answer(picture)).message.text
    files = Message("user", (Text(FILES), Image("image/png", "x")), mark=Mark.FILES)
    assert (
        "hello (and sent images: 1)" in (await Fixture().answer(Message("user", (Text("hello"),)), files)).message.text
    )


async def test_help() -> None:
    assert await Fixture().says("help") == HELP
    assert "help me with this" in await Fixture().says("help me with this")


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ("read a.txt", [[Call("read", '{"path": "a.txt"}')]]),
        ("please run `ls -la | wc`", [[Call("exec", '{"command": "ls -la | wc"}')]]),
        ("write hi and bye to to.txt", [[Call("write", '{"content": "hi and bye", "path": "to.txt"}')]]),
        ("Write one\ntwo to a/b.txt", [[Call("write", '{"content": "one\\ntwo", "path": "a/b.txt"}')]]),
        ('call foo with {"a": "x and run y"}', [[Call("foo", '{"a": "x and run y"}', True)]]),
        ("call foo", [[Call("foo", "{}", True)]]),
        ("call foo with {bad", [[Call("foo", "{bad", True)]]),
        (
            'read a and call foo with {"b": 1}, then run c',
            [[Call("read", '{"path": "a"}'), Call("foo", '{"b": 1}', True)], [Call("exec", '{"command": "c"}')]],
        ),
        ("read a then read b and read c", [[Call("read", '{"path": "a"}')],
                                           [Call("read", '{"path": "b"}'), Call("read", '{"path": "c"}')]]),
        ("nothing of that kind, and reading is not reading", []),
    ],
)  # fmt: skip
def test_calls_in_plain_words(words: str, steps: list[list[Call]]) -> None:
    assert understand(words).steps == steps


async def test_calls_step_by_step_and_a_report() -> None:
    fixture = Fixture()
    asked = user("say I begin, read a.txt and run ls then write done to b.txt")
    first = (await fixture.answer(asked)).message
    assert first.text == "I begin"
    assert [(call.call_id, call.name, json.loads(call.arguments)) for call in first.tool_calls] == [
        ("id0", "read", {"path": "a.txt"}),
        ("id1", "exec", {"command": "ls"}),
    ]
    talk = (asked, first, Message("tool", (ToolResult("id0", "read", "A"), ToolResult("id1", "exec", "no", True))))
    second = (await fixture.answer(*talk)).message
    assert (second.text, [call.name for call in second.tool_calls]) == ("", ["write"])
    last = await fixture.answer(*talk, second, Message("tool", (ToolResult("id2", "write", "1\n```2"),)))
    assert last.message.text == "`read` said: A\n\n`exec` failed: no\n\n`write` said:\n\n````\n1\n```2\n````"
    assert last.stop_reason == "end"


async def test_tools_that_are_not_there() -> None:
    only = (ToolSpec("read", "", "{}"),)
    answer = await Fixture().answer(user("run ls"), tools=only)
    assert answer.message.text == "I have no tool named `exec` here, only read."
    assert (await Fixture().answer(user("call exec"), tools=only)).message.tool_calls[0].name == "exec"
    none = await Fixture().answer(user("read a"), tools=())
    assert none.message.text == "`read` is still open: I may not call tools any more."


async def test_when_calls_are_forbidden_it_says_what_is_done_and_what_is_open() -> None:
    fixture = Fixture()
    asked = user("read a then read b")
    first = (await fixture.answer(asked)).message
    talk = (
        asked,
        first,
        results((first.tool_calls[0].call_id, "A")),
        note("Stop calling tools and sum up.", Mark.STEPS),
    )
    answer = await fixture.answer(*talk, allow_calls=False)
    assert answer.message.text == "`read` said: A\n\n`read` is still open: I may not call tools any more."
    assert not answer.message.tool_calls


async def test_slow() -> None:
    fixture = Fixture()
    assert await fixture.says("be slow and say one two three") == "one two three"
    assert fixture.slept == [SLOW_SECONDS] * 3
    assert await fixture.says("say one two three, be slow") == "one two three"


async def test_a_cut_answer_goes_on_after_the_note() -> None:
    fixture = Fixture()
    asked = user("say one two three four")
    assert (await fixture.answer(asked, cut("one two"), note())).message.text == " three four"
    whole = await fixture.answer(asked, cut("one two three four"), note())
    assert (whole.message.parts, whole.stop_reason) == ((), "end")


def cut(text: str) -> Message:
    return Message("assistant", (Text(text),), "offline/offline")


def note(words: str = CUT_NOTE, mark: Mark = Mark.CUT) -> Message:
    return Message("user", (Text(words),), mark=mark)


@given(st.data())
async def test_wherever_it_is_cut_the_joined_text_is_the_whole(data: st.DataObject) -> None:
    """Also when white space at the edges of a piece got lost, and when there are calls after the words."""
    fixture = Fixture()
    asked = user(f"write {data.draw(st.integers(1, 300))} words of Markdown and read a")
    whole = (await fixture.answer(asked)).message
    talk: list[Message] = []
    said = ""
    for _ in range(data.draw(st.integers(1, 3))):
        rest = whole.text[len(said) :]
        piece = rest[: data.draw(st.integers(0, len(rest)))]
        if data.draw(st.booleans()):
            piece = piece.rstrip()
        if piece.strip():
            said += piece
            talk += [cut(piece), note()]
    answer = (await fixture.answer(asked, *talk)).message
    assert said + answer.text == whole.text
    assert [call.name for call in answer.tool_calls] == ["read"]


async def test_another_answer_than_its_own_is_no_beginning() -> None:
    assert (await Fixture().answer(user("say one two"), cut("something else"), note())).message.text == "one two"


async def test_a_cut_before_the_report_of_results() -> None:
    fixture = Fixture()
    asked = user("say hm and read a")
    first = (await fixture.answer(asked)).message
    result = results((first.tool_calls[0].call_id, "some text"))
    answer = await fixture.answer(asked, first, result, cut("`read` said: some"), note())
    assert answer.message.text == " text"


@pytest.mark.parametrize("words", [1, 600, 3000])
def test_long_markdown_has_everything(words: int) -> None:
    text = markdown(words)
    assert words <= len(text.split()) < words + 80
    assert markdown(words) == text
    if words > 300:
        for what in (
            "# Part 1",
            "## Part 2",
            "\n- ",
            "\n1. ",
            "```python",
            "| hour |",
            "🚢",
            "👩‍👩‍👧‍👦",
            "> ",
            "**",
            "](https://",
        ):
            assert what in text


async def test_long_markdown_can_be_asked_for() -> None:
    assert await Fixture().says("write 700 words of Markdown") == markdown(700)
    assert await Fixture().says("long markdown please") == markdown(600)


@pytest.mark.parametrize(
    ("notes", "said"),
    [("- look after the garden", "HEARTBEAT_OK"), ("# Garden\n- [ ] say the tomatoes are dry", "the tomatoes are dry")],
)
async def test_of_a_heartbeat_it_does_what_it_understands(notes: str, said: str) -> None:
    answer = await Fixture().answer(user(compose(DEFAULT, (), notes)), first=True)
    assert answer.message.text == said


async def test_a_job_is_what_it_says() -> None:
    answer = await Fixture().answer(user(job_prompt("mum", "say call mum", None)), first=True)
    assert answer.message.text == "call mum"
