"""Answers that the provider ended before the model had: at the limit of output they go on, twice at most."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.context import CUT_NOTE, UNSAID_NOTE
from agent.events import MessageEnd, MessageStart, Outcome, ToolExecutionEnd
from agent.tools.conversation import STAY_SILENT
from bot import wording
from bot.people.access import OWNER
from bot.persistence.approvals import Choice
from tests.agent.test_loop import answer_label, results, tool
from tests.asking import ASKED, AskingTool, approval
from tests.asking import said as said_by
from tests.examples import fewer
from tests.scripted_model import ScriptedModel, texts
from tests.service import Hark, Json, Reply, ScriptedTool, running, session_of
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.request_log import Request
from tests.standins.script import Break, Call, Hang, Say, Stop, Think, Written, remainder
from tests.watch import Watch
from tests.wire.model_clients import KEY, client_of

SMALL_BLOCKS = {"channels": {"telegram": {"streaming": {"min_chars": 1, "max_chars": 64}}}}
WHOLE = (
    "A list:\n\n- the first point, which is long\n- the second\n\n```python\nprint('one')\n\nprint('two')\n```\n\n"
    "And a last paragraph that says in some more words what was meant, and then ends."
)
OVER = Stop("max_tokens")
CUT_OFF = wording.ENDED_EARLY["max_output"]


class Limited:
    """Goes on faithfully, and reaches the limit of output after so many characters, request by request."""

    def __init__(self, whole: str, sizes: Sequence[int]) -> None:
        self.whole = whole
        self.sizes = list(sizes)

    def __call__(self, request: Request) -> Written:
        rest = remainder(self.whole, request.assistant_texts_after("tell me"))
        assert rest is not None, "the transcript does not hold the beginning of the answer"
        if not self.sizes or self.sizes[0] >= len(rest):
            return [Say(rest)]
        return [Say(rest[: self.sizes.pop(0)]), OVER]


def said(hark: Hark) -> str:
    """The model's own words in all that was delivered."""
    return "".join(text for text, step in hark.stored.deliveries("said", "step") if step)


async def shown(hark: Hark, reply: Reply) -> str:
    """What HTTP shows of the turn."""
    view = await hark.service.parts.api.turn(reply.end.run.turn_id)
    assert view is not None
    return view.text


def acting(watch: Watch) -> list[ScriptedTool]:
    async def act(label: str) -> str:
        return label

    return [ScriptedTool("act", act, watch)]


async def test_an_answer_at_the_limit_of_output_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path, config=SMALL_BLOCKS) as hark:
        hark.model.default = Limited(WHOLE, [50, 40])
        reply = await hark.say("tell me")
        assert reply.outcome is Outcome.COMPLETED
        assert (said(hark), await shown(hark, reply)) == (WHOLE, WHOLE)
        assert [request.messages[-1].text for request in hark.model.requests[1:]] == [CUT_NOTE] * 2
        assert texts(hark.model.requests[2], "assistant") == [WHOLE[:50], WHOLE[50:90]]
        ends = reply.of(MessageEnd)
        assert [(end.text, end.stop_reason, end.cut) for end in ends] == [
            (WHOLE[:50], "max_output", True),
            (WHOLE[50:90], "max_output", True),
            (WHOLE[90:], "end", False),
        ]
        assert hark.stored.turns("step") == [(3,)]
        hark.model.default = lambda request: "Yes."
        assert (await hark.say("and then?")).texts == ["Yes."]


@fewer(25)
@given(
    words=st.lists(
        st.sampled_from(["word", "1.", "- x", "`code`", "**a**", "```\n", "\n", "\n\n", "👩‍👩‍👧"]), min_size=5
    ),
    sizes=st.lists(st.integers(1, 60), max_size=2),
)
def test_wherever_it_is_cut_people_see_the_uncut_text(words: list[str], sizes: list[int]) -> None:
    whole = f"Begin {' '.join(words)} end."

    async def check(home: Path) -> None:
        async with running(home, config=SMALL_BLOCKS) as hark:
            hark.model.default = Limited(whole, sizes)
            reply = await hark.say("tell me")
            assert reply.outcome is Outcome.COMPLETED
            assert "".join(said(hark).split()) == "".join(whole.split())
            assert "".join((await shown(hark, reply)).split()) == "".join(whole.split())

    with TemporaryDirectory() as home:
        asyncio.run(check(Path(home)))


async def test_the_third_time_the_answer_ends_and_one_line_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, config=SMALL_BLOCKS) as hark:
        hark.model.default = Limited(WHOLE, [30] * 5)
        reply = await hark.say("tell me")
        assert (len(hark.model.requests), said(hark)) == (3, WHOLE[:90])
        assert (reply.texts[-1], reply.texts.count(CUT_OFF)) == (CUT_OFF, 1)
        assert reply.outcome is Outcome.LIMIT
        assert await shown(hark, reply) == f"{WHOLE[:90].strip()}\n\n{CUT_OFF}"
        assert reply.of(MessageEnd)[-1].cut is False

        reply = await hark.say("tell me again")
        assert len(hark.model.requests) == 6, "each turn has its own two"
        assert WHOLE[:90] == "".join(texts(hark.model.requests[3], "assistant"))


async def test_arguments_without_end_are_asked_for_three_times_and_never_executed(tmp_path: Path) -> None:
    endless = ["x" * 16_384] * 200
    async with AnthropicServer(keys=[KEY]) as server:
        server.default = lambda request: [Say("I act."), Call("act", "".join(endless), chunks=endless)]
        client = client_of("anthropic", server.url)
        async with running(tmp_path, config=SMALL_BLOCKS, tools=acting, client=client) as hark:
            reply = await hark.say("tell me")
            assert (server.count, reply.outcome) == (3, Outcome.LIMIT)
            assert (said(hark), reply.texts[-1]) == ("I act." * 3, CUT_OFF)
            assert hark.stored.calls() == []


async def test_the_cuts_of_a_turn_are_counted_over_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hang = Hang()
        await hark.write("tell me", answers=[(Say("One "), OVER), (Say("two "), OVER), hang])
        await hang.entered()
    async with running(tmp_path) as hark:
        hark.model.add(Say("three"), OVER)
        await hark.until(lambda: hark.ends(session_of("1")))
        await hark.delivered()
        assert len(hark.model.requests) == 1
        assert hark.model.requests[0].messages[-1].text == CUT_NOTE
        assert hark.channel.texts()[-1] == CUT_OFF
        assert said(hark).split() == ["One", "two", "three"]


async def test_a_broken_stream_counts_as_no_cut_of_the_limit(tmp_path: Path) -> None:
    async with running(tmp_path, config=SMALL_BLOCKS) as hark:
        paragraphs = [f"Paragraph {n} of it.\n\n" for n in range(5)]
        hark.model.add(Say(paragraphs[0] + paragraphs[1] + "half"), Break(after_chunks=9))
        for text in paragraphs[2:4]:
            hark.model.add(Say(text), OVER)
        reply = await hark.say("tell me", answers=[Say(paragraphs[4])])
        assert (said(hark), reply.outcome) == ("".join(paragraphs), Outcome.COMPLETED)


async def test_a_call_in_an_answer_at_the_limit_is_not_executed(tmp_path: Path) -> None:
    """Not even one whose arguments can be read: what would have followed is not known."""
    async with running(tmp_path, tools=acting) as hark:
        hark.model.add("I act.", Call("act", {"label": "a"}), Call("act", '{"label": "b'), OVER)
        hark.model.add(Call("act", "{}"), OVER)
        hark.model.add(Call("act", {"label": "c"}))
        hark.model.add("Done.")
        reply = await hark.say("do it")
        assert (reply.texts, reply.outcome) == (["I act.", "Done."], Outcome.COMPLETED)
        assert hark.stored.calls("args") == [('{"label": "c"}',)]
        assert [request.messages[-1].text for request in hark.model.requests[1:3]] == [CUT_NOTE, UNSAID_NOTE]


async def test_an_answer_that_reaches_the_limit_before_it_says_anything(hark: Hark) -> None:
    for _ in range(3):
        hark.model.add(Think("hm, " * 50), OVER)
    reply = await hark.say("hello")
    assert (reply.texts, reply.outcome) == ([CUT_OFF], Outcome.LIMIT)
    assert hark.model.unused == 0
    assert (await hark.say("hello?")).outcome is Outcome.COMPLETED


async def test_at_the_limit_of_steps_nothing_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"max_steps": 1}}, tools=acting) as hark:
        reply = await hark.say("do it", answers=[Call("act"), (Say("So far "), OVER)])
        assert (reply.texts, reply.outcome) == (["So far", CUT_OFF], Outcome.LIMIT)


async def test_a_filtered_answer_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, tools=acting) as hark:
        reply = await hark.say("tell me", answers=[("The first half of", Call("act"), Stop("refusal"))])
        assert reply.texts == ["The first half of", wording.ENDED_EARLY["refusal"]]
        assert reply.outcome is Outcome.COMPLETED
        assert hark.stored.calls() == []
        model: ScriptedModel = hark.model
        assert (await hark.say("why?")).outcome is Outcome.COMPLETED
        assert texts(model.requests[1], "assistant") == ["The first half of"]


# A turn that ends in silence, and what people are told of what was to be changed and was not.

SAID = {"channels": {"telegram": {"streaming": {"min_chars": 10, "max_chars": 64}}}}


async def test_silence_ends_the_turn_without_another_answer(tmp_path: Path) -> None:
    async with running(tmp_path, config=SAID, tools=tool("act", answer_label)) as hark:
        hark.model.add(
            "This stands in a paragraph.\n\nThis was not on its way.",
            Call("act", {"label": "a"}, id="one"),
            Call(STAY_SILENT, {"reason": "nothing to say"}, id="two"),
        )
        reply = await hark.say("(to somebody else)")
        rows = hark.stored.calls("call_id", "state")
        after = await hark.say("hello?", answers=["Yes?"])
    assert reply.texts == ["This stands in a paragraph."]
    assert (reply.outcome, len(reply.of(MessageStart))) == (Outcome.COMPLETED, 1)
    assert rows == [("one", "done"), ("two", "done")]
    assert [(end.call_id, end.state) for end in reply.of(ToolExecutionEnd)] == [("one", "done"), ("two", "done")]
    assert after.texts == ["Yes?"]
    assert [result.call_id for result in results(hark, 2)] == ["one", "two"]


async def test_silence_that_is_called_wrongly_is_none(tmp_path: Path) -> None:
    async with running(tmp_path, config={"tools": {"deny": ["stay_*"]}}) as hark:
        denied = await hark.say("hello", answers=[Call(STAY_SILENT), "It is denied here."])
    async with running(tmp_path) as hark:
        wrong = await hark.say("hello", answers=[Call(STAY_SILENT, '{"reason": '), "So I speak."])
    assert (denied.texts, wrong.texts) == (["It is denied here."], ["So I speak."])


async def test_what_came_meanwhile_is_answered(tmp_path: Path) -> None:
    async def steered(label: str) -> str:
        ((turn_id,),) = hark.stored.turns("turn_id")
        assert await hark.service.parts.api.steer(turn_id, "and this?", OWNER)
        return "done"

    async with running(tmp_path, tools=tool("act", steered)) as hark:
        reply = await hark.say("hello", answers=[(Call(STAY_SILENT), Call("act")), "That, yes."])
        assert texts(hark.model.requests[1], "user")[-1].endswith("and this?")
    assert reply.texts == ["That, yes."]


GOOD = Call("write", {"path": "a.txt", "content": "a"})
BAD = Call("write", {"path": "../a.txt", "content": "a"})
LINE = "(`write` failed: "


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([[BAD]], True),
        ([[BAD], [GOOD]], True),  # another file
        ([[GOOD], [GOOD]], True),  # it exists by then
        ([[GOOD], [GOOD], [Call("write", {"path": "a.txt", "content": "b", "mode": "overwrite"})]], False),
        ([[Call("write", '{"path": ')], [GOOD]], False),
        ([[Call("read", {"path": "../a.txt"})]], False),
        ([[GOOD]], False),
    ],
)
async def test_a_change_that_failed_for_good_is_told(tmp_path: Path, answers: list[list[Call]], told: bool) -> None:
    async with running(tmp_path) as hark:
        for calls in answers:
            hark.model.add(*calls)
        reply = await hark.say("write it down", answers=["All is well."])
        later = await hark.say("hello", answers=["Good day."])
    assert reply.texts[0] == "All is well."
    assert [text.startswith(LINE) for text in reply.texts[1:]] == [True] * told
    assert later.texts == ["Good day."]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ({"command": "printf 'a\\n' | grep b"}, []),
        ({"command": "exit 4", "background": True}, []),
        ({"command": "true", "cwd": "../elsewhere"}, ["(`exec` failed: "]),
        ({"command": "sleep 60", "timeout_seconds": 0.1}, ["(`exec` failed: stopped after its time limit"]),
    ],
)
async def test_an_exit_code_is_a_result_and_no_failure(tmp_path: Path, command: Json, told: list[str]) -> None:
    async with running(tmp_path, config={"tools": {"exec": {"security": "full"}}}) as hark:
        reply = await hark.say("is there a b?", answers=[Call("exec", command), "There is none."])
    assert reply.texts[0] == "There is none."
    assert [text.startswith(line) for text, line in zip(reply.texts[1:], told, strict=True)] == [True] * len(told)


async def test_what_people_denied_is_no_failure(tmp_path: Path) -> None:
    tool = AskingTool()
    tool.changes = True
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}), "As you like."])
        assert await hark.service.parts.requests.decide(await approval(hark), Choice(verdict="denied"), "telegram:1")
        await hark.until(lambda: [end for end in hark.ends(session_of("1")) if end.is_last], "the end of the turn")
        await hark.delivered()
        assert said_by(hark) == [ASKED, "As you like."]
