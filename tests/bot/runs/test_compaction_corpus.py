"""Long conversations of many kinds, made from a seed: what each request must hold, however often they are summed up."""

import re
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from agent.context import LEFT_OUT
from agent.message import estimate, estimate_text, estimate_tools
from agent.models.base import ModelRequest
from tests.scripted_model import ScriptedModel
from tests.service import Hark, ScriptedTool, running
from tests.standins.script import Call, Fail, Say, Think
from tests.watch import Watch

WINDOW, OUTPUT = 24_000, 1000
TURNS = 30
ASKS, NOTES, HEAD, SHORTENED = (
    "Write a summary",
    "Save now",
    "[Summary of the earlier part",
    "of this old result are not shown",
)
RULES = (
    "Never write to anybody called Mallory.",
    "Always sign with Zoe.",
    "不要删除任何文件。",
    "Frag mich immer, bevor du etwas löschst.",
)
PROSE = (
    "lorem ipsum dolor sit amet, consectetur adipiscing elit. ",
    "这是一段很长的中文对话，用来测试上下文的长度估计。",
    "def f(x: int) -> int:\n    return [y for y in range(x) if y % 2]\n",
    "Ölfässer über Bäche tragen — naïve façade. ",
    "🙂 emoji and text 🎈 ",
)


def identifier(random: Random) -> str:
    number = random.randrange(1000, 9999)
    return random.choice(
        (
            str(UUID(int=random.getrandbits(128))),
            f"{random.getrandbits(160) | 0xA << 156:040x}",
            f"https://host{number}.example/a/b?id={number}&x=%20y",
            f"/srv/data-{number}/Übung_{number}/notes.tar.gz".replace("Ü", "U"),
            f"db{number}.internal.example:5{number}",
            f"10.1.2.{number % 250}:8{number % 1000:03}",
            f"PROJ-{number}",
        )
    )


class Story:
    """What was said so far, by which requests are judged."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rules: list[str] = []
        self.names: list[str] = []
        self.calls = 0

    def prose(self, most: int) -> str:
        return self.random.choice(PROSE) * self.random.randrange(1, most)

    def question(self, number: int) -> str:
        words = [f"<m{number}>", self.prose(20)]
        if self.random.random() < 0.15 and len(self.rules) < len(RULES):
            self.rules.append(RULES[len(self.rules)])
            return f"<m{number}> {self.rules[-1]}"
        if self.random.random() < 0.3 and len(self.names) < 25:
            self.names.append(identifier(self.random))
            words.insert(1, f"It is about {self.names[-1]} .")
        return " ".join(words)

    def answers(self) -> list[list[Any]]:
        """The answers of the model to one message: steps with calls, and words."""
        steps: list[list[Any]] = []
        for _ in range(self.random.choice((0, 0, 1, 2))):
            calls = [Call("do", {"label": f"c{self.calls + n}"}) for n in range(self.random.randrange(1, 4))]
            self.calls += len(calls)
            before = [Think("hm")] * self.random.randrange(2) + [Say("I look.")] * self.random.randrange(2)
            steps.append([*before, *calls])
        return [*steps, [Say(f"Done. {self.prose(30)}")]]

    async def result(self, label: str) -> str:
        return f"{label}: {self.prose(self.random.choice((3, 30, 400)))}"


def texts(request: ModelRequest) -> list[str]:
    return ["".join([message.text, *(part.text for part in message.tool_results)]) for message in request.messages]


def judge(request: ModelRequest, story: Story, number: int) -> None:
    """One request for an answer to the message with this number."""
    said = texts(request)
    fixed = estimate_text(request.system) + estimate_tools(request.tools)
    assert fixed + sum(map(estimate, request.messages)) <= WINDOW - OUTPUT, "it is larger than the window"
    marks = re.findall(r"<m\d+>", "\n".join(one.text for one in request.messages[1:] if one.role == "user"))
    first = [] if HEAD in said[0] else re.findall(r"<m\d+>", said[0])
    shown = first + marks
    assert len(shown) == len(set(shown)), "a message stands there twice"
    newest = f"<m{number}>"
    assert shown[-1] == newest if shown else newest in said[0], "the newest message is missing"
    assert shown == [f"<m{n}>" for n in range(number - len(shown) + 1, number + 1)], "one in between is missing"
    assert sum(HEAD in text for text in said) <= 1
    assert LEFT_OUT not in said[0], "what was summed up is not left out"
    whole = "\n".join(said)
    for wanted in (*story.rules, *story.names):
        assert wanted in whole, f"{wanted} is lost"


def judge_prefixes(requests: list[ModelRequest]) -> None:
    """Between summaries, and where no results were shortened, each request begins with the one before."""
    moved, before, summed_up = 0, requests[0], False
    for after in requests[1:]:
        if not is_main(after):
            summed_up = summed_up or ASKS in after.messages[-1].text
            continue
        if after.messages[: len(before.messages)] != before.messages:
            shortened = [sum(SHORTENED in text for text in texts(one)) for one in (before, after)]
            assert summed_up or shortened[1] > shortened[0], "the prefix has changed"
            moved += 1
        before, summed_up = after, False
    assert moved <= len(requests) / 4, "it changes rarely"


def is_main(request: ModelRequest) -> bool:
    """Whether it is for an answer, and not for notes or a summary."""
    last = request.messages[-1].text
    others = [one.text for one in request.messages if one.role == "user" and NOTES in one.text]
    return ASKS not in last and not others


async def tell(hark: Hark, story: Story) -> None:
    for number in range(TURNS):
        known = len(hark.model.requests)
        question = story.question(number)
        for answer in story.answers():
            hark.model.add(*answer)
        await hark.say(question)
        if story.random.random() < 0.1:
            said = len(hark.channel.texts())
            await hark.write(story.random.choice(("/status", "/compact", "/context")))
            await hark.until_texts(said + 1)
            await hark.delivered()
        for request in hark.model.requests[known:]:
            if is_main(request):
                judge(request, story, number)
    judge_prefixes(hark.model.requests)


@pytest.mark.parametrize("failing", [False, True], ids=["", "summaries fail"])
@pytest.mark.parametrize("seed", [2, 3, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (0, 1, 4, 5, 6, 7))])
async def test_every_request_is_whole(tmp_path: Path, seed: int, failing: bool) -> None:
    story = Story(seed)
    model = ScriptedModel(context_window=WINDOW, max_output=OUTPUT)
    summary = Fail(400, "invalid_request_error") if failing else Say("They talked about this and that.")
    model.whenever(ASKS, summary)

    def tools(watch: Watch) -> list[ScriptedTool]:
        return [ScriptedTool("do", story.result, watch, parallel_safe=True)]

    config = {"compaction": {"keep_recent_tokens": 1500, "reserve_tokens": 2000}}
    async with running(tmp_path, model=model, config=config, tools=tools) as hark:
        await tell(hark, story)
    assert any(HEAD in request.messages[0].text for request in model.requests), "it was summed up"
