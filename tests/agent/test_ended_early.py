"""Answers that the provider ended before the model had: at the limit of output they go on, twice at most."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from agent.context import CUT_NOTE, UNSAID_NOTE
from agent.events import MessageEnd, Outcome
from bot import wording
from tests.examples import fewer
from tests.scripted_model import ScriptedModel, texts
from tests.service import Hark, Reply, ScriptedTool, running, session_of
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
        hark.model.add(Say("One "), OVER)
        hark.model.add(Say("two "), OVER)
        hark.model.add(hang)
        await hark.write("tell me")
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
        hark.model.add(Say(paragraphs[4]))
        reply = await hark.say("tell me")
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


async def test_an_answer_that_reaches_the_limit_before_it_says_anything(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        for _ in range(3):
            hark.model.add(Think("hm, " * 50), OVER)
        reply = await hark.say("hello")
        assert (reply.texts, reply.outcome) == ([CUT_OFF], Outcome.LIMIT)
        assert hark.model.unused == 0
        assert (await hark.say("hello?")).outcome is Outcome.COMPLETED


async def test_at_the_limit_of_steps_nothing_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"max_steps": 1}}, tools=acting) as hark:
        hark.model.add(Call("act"))
        hark.model.add(Say("So far "), OVER)
        reply = await hark.say("do it")
        assert (reply.texts, reply.outcome) == (["So far", CUT_OFF], Outcome.LIMIT)


async def test_a_filtered_answer_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, tools=acting) as hark:
        hark.model.add("The first half of", Call("act"), Stop("refusal"))
        reply = await hark.say("tell me")
        assert reply.texts == ["The first half of", wording.ENDED_EARLY["refusal"]]
        assert reply.outcome is Outcome.COMPLETED
        assert hark.stored.calls() == []
        model: ScriptedModel = hark.model
        assert (await hark.say("why?")).outcome is Outcome.COMPLETED
        assert texts(model.requests[1], "assistant") == ["The first half of"]
